// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/child.h"

#include "lab/harness/clock.h"
#include "lab/harness/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

/* An interrupt that comes just before poll() is seen so late. */
enum { POLL_MS = 500, KILL_AFTER_S = 5 };

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

void child_heed_signals(bool once)
{
	static const int numbers[] = { SIGINT, SIGTERM };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = once ? SA_RESETHAND : 0 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction now;

		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
	}
}

bool child_interrupted(void)
{
	return interrupted;
}

void child_forget_interrupt(void)
{
	interrupted = 0;
}

void child_args_add(struct child_args *args, const char *text)
{
	char *copy = args->n < CHILD_MAX_ARGS ? strdup(text) : NULL;

	/* Too long a command, or no memory: child_run refuses it, so nobody else has to check. */
	if (!copy) {
		args->n = CHILD_MAX_ARGS + 1;
		return;
	}
	args->argv[args->n++] = copy;
	args->argv[args->n] = NULL;
}

void child_args_add_long(struct child_args *args, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	child_args_add(args, text);
}

int child_args_add_words(struct child_args *args, const char *line)
{
	wordexp_t words;
	size_t i;

	if (wordexp(line, &words, WRDE_NOCMD | WRDE_UNDEF))
		return -EINVAL;
	for (i = 0; i < words.we_wordc; i++)
		child_args_add(args, words.we_wordv[i]);
	wordfree(&words);
	return 0;
}

/* Append one argument, quoted where a shell would read it otherwise. */
static size_t append_quoted(char *text, size_t used, size_t chars, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./,:=+@%";
	bool quote = arg[0] == '\0' || arg[strspn(arg, plain)] != '\0';

	used += (size_t)snprintf(text + used, chars - used, "%s%s", used ? " " : "",
				 quote ? "'" : "");
	for (; *arg && used < chars; arg++) {
		used += (size_t)snprintf(text + used, chars - used, *arg == '\'' ? "'\\''" : "%c",
					 *arg);
	}
	if (quote && used < chars)
		used += (size_t)snprintf(text + used, chars - used, "'");
	return used;
}

const char *child_args_text(const struct child_args *args)
{
	static char text[CHILD_TAIL_CHARS];
	size_t used = 0;
	int i;

	text[0] = '\0';
	for (i = 0; i < CHILD_MAX_ARGS && args->argv[i] && used < sizeof(text); i++)
		used = append_quoted(text, used, sizeof(text), args->argv[i]);
	return text;
}

void child_args_destroy(struct child_args *args)
{
	int i;

	for (i = 0; i < CHILD_MAX_ARGS && args->argv[i]; i++)
		free(args->argv[i]);
	memset(args, 0, sizeof(*args));
}

/* In the child. Does not return. */
static void become(const struct child_args *args, int tail)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* Its own group, so that all it starts can be ended with it; and it ends when we do. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(nothing, STDIN_FILENO) < 0 || dup2(tail, STDOUT_FILENO) < 0 ||
	    dup2(tail, STDERR_FILENO) < 0)
		_exit(CHILD_NO_OUTPUT);
	execvp(args->argv[0], args->argv);
	dprintf(STDERR_FILENO, "'%s' cannot be executed: %s.\n", args->argv[0], strerror(errno));
	_exit(CHILD_NOT_FOUND);
}

/* Hands on the lines that end in what was read; what is longer than a line may be is cut. */
static void hand_on(const struct child_args *args, struct child_result *result, const char *text)
{
	size_t used = strlen(result->line);

	for (; args->line && *text; text++) {
		if (*text != '\n' && used + 1 < sizeof(result->line)) {
			result->line[used++] = *text;
		} else if (*text == '\n') {
			result->line[used] = '\0';
			args->line(args->context, result->line);
			used = 0;
		}
	}
	result->line[used] = '\0';
}

/* Append to the tail what is there to read. Returns false at the end of the output. */
static bool read_output(int fd, const struct child_args *args, struct child_result *result)
{
	size_t used = strlen(result->tail), keep;
	char chunk[1024];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	if (used + (size_t)n >= sizeof(result->tail)) {
		keep = sizeof(result->tail) - 1 - (size_t)n;
		memmove(result->tail, result->tail + used - keep, keep);
		used = keep;
	}
	memcpy(result->tail + used, chunk, (size_t)n);
	result->tail[used + (size_t)n] = '\0';
	hand_on(args, result, result->tail + used);
	return true;
}

/* Read and wait until it has ended or @until. Returns whether it has ended. */
static bool watch(const struct child_args *args, pid_t pid, struct pollfd ready[2], double until,
		  bool heed_interrupt, struct child_result *result)
{
	double left_ms;

	while ((left_ms = (until - now_s()) * 1e3) > 0 && !(heed_interrupt && interrupted)) {
		if (poll(ready, 2, left_ms < POLL_MS ? (int)left_ms + 1 : POLL_MS) <= 0)
			continue;
		if (ready[0].revents) {
			/* At the end of the output: not to be looked at any more. */
			if (!read_output(ready[0].fd, args, result))
				ready[0].fd = -1;
			continue;
		}
		/* Its children may hold the pipe open longer than it lives. */
		if (waitpid(pid, &result->status, WNOHANG) == pid) {
			/* What it said between the two looks of one poll(). */
			while (ready[0].fd >= 0 && read_output(ready[0].fd, args, result)) {
			}
			return true;
		}
	}
	return false;
}

/* Until it has ended or has been ended; 0 or as child_run. */
static int supervise(const struct child_args *args, pid_t pid, int pidfd, int fd, long timeout_s,
		     struct child_result *result)
{
	struct pollfd ready[2] = { { .fd = fd, .events = POLLIN },
				   { .fd = pidfd, .events = POLLIN } };

	if (watch(args, pid, ready, now_s() + (double)timeout_s, true, result))
		return WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0 ? 0 : -ECHILD;
	result->timed_out = !interrupted;
	kill(-pid, SIGTERM);
	if (!watch(args, pid, ready, now_s() + KILL_AFTER_S, false, result)) {
		kill(-pid, SIGKILL);
		waitpid(pid, &result->status, 0);
	}
	return interrupted ? -EINTR : -ETIMEDOUT;
}

int child_run(const struct child_args *args, long timeout_s, struct child_result *result)
{
	double start = now_s();
	int fds[2], pidfd, err;
	pid_t pid;

	memset(result, 0, sizeof(*result));
	if (args->n == 0 || args->n > CHILD_MAX_ARGS)
		return -E2BIG;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fcntl(fds[0], F_SETFL, O_NONBLOCK); /* what is there, however long its children hold it */
	pid = fork();
	if (pid == 0)
		become(args, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		err = -errno;
		goto out;
	}
	/* Here too: it may have to be ended before it has come to do so itself. */
	setpgid(pid, pid);
	pidfd = pidfd_open(pid, 0);
	if (pidfd >= 0) {
		err = supervise(args, pid, pidfd, fds[0], timeout_s, result);
		close(pidfd);
	} else {
		err = -errno;
		kill(-pid, SIGKILL);
		waitpid(pid, &result->status, 0);
	}
	result->seconds = now_s() - start;
	descendants_end();
out:
	close(fds[0]);
	return err;
}
