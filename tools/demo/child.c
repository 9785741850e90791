// SPDX-License-Identifier: BSD-3-Clause
/*
 * One command: its own process group, output into files, a time limit. The demo is the subreaper of
 * all it starts, since mpirun puts every rank into a group of its own: what outlives a killed
 * mpirun becomes our child and is killed too.
 */
#include "demo.h"
#include "descendants.h"
#include "stock_environment.h"

#include <argz.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#define TAIL_LINES 15
#define GRACE_MS 5000 /* from SIGTERM to SIGKILL: mpirun ends its ranks in between */

static volatile sig_atomic_t interrupted;

static void out_of_memory(void)
{
	fprintf(stderr, "onecopy-demo: no memory\n");
	exit(1);
}

void demo_args_add(struct demo_args *args, const char *format, ...)
{
	char *text;
	va_list list;

	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		out_of_memory();
	va_end(list);
	if (argz_add(&args->argz, &args->len, text))
		out_of_memory();
	free(text);
}

int demo_args_add_words(struct demo_args *args, const char *words)
{
	wordexp_t split;

	if (wordexp(words, &split, WRDE_NOCMD | WRDE_UNDEF)) {
		fprintf(stderr, "onecopy-demo: cannot split '%s' into words as a shell would\n",
			words);
		return -1;
	}
	for (size_t i = 0; i < split.we_wordc; i++)
		demo_args_add(args, "%s", split.we_wordv[i]);
	wordfree(&split);
	return 0;
}

void demo_args_free(struct demo_args *args)
{
	free(args->argz);
	*args = (struct demo_args){ 0 };
}

static void note_interrupt(int signal)
{
	interrupted = signal;
}

void demo_child_setup(void)
{
	struct sigaction action = { .sa_handler = note_interrupt };
	char dropped[1024];

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	descendants_adopt();
	if (stock_environment(dropped, sizeof(dropped)))
		fprintf(stderr,
			"onecopy-demo: dropped from the environment, since one side must run without "
			"onecopy: %s\n",
			dropped);
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* In the child: never returns. */
static void become(const struct demo *demo, char **argv)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(demo->files.out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int err = open(demo->files.err, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	setpgid(0, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Waits for the child's end. Returns poll's result: 0 when the time is up. */
static int wait_for(int pidfd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
	double deadline = now_s() + timeout_ms * 1e-3;
	int n;

	do {
		double left_ms = (deadline - now_s()) * 1e3;

		n = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (n < 0 && errno == EINTR && !interrupted);
	return n;
}

/* Sets *status as waitpid does; returns a sentence's end if the child had to be killed. */
static const char *supervise(pid_t pid, int timeout_s, int *status)
{
	const char *why = NULL;
	int pidfd = pidfd_open(pid, 0);

	if (pidfd < 0) {
		why = "could not be watched (pidfd_open failed: Linux 5.3 or newer is needed)";
	} else if (wait_for(pidfd, timeout_s * 1000) != 1) {
		why = interrupted ? "was interrupted" : "did not end in time and was killed";
	}
	if (why) {
		interrupted = 0;
		kill(-pid, SIGTERM);
		if (pidfd >= 0)
			wait_for(pidfd, GRACE_MS);
		kill(-pid, SIGKILL);
	}
	waitpid(pid, status, 0);
	if (pidfd >= 0)
		close(pidfd);
	descendants_end();
	return why;
}

char *demo_read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t len = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &len, '\0', file) < 0) {
		free(text);
		text = ferror(file) ? NULL : strdup("");
	}
	fclose(file);
	return text;
}

static void print_tail(const char *path, const char *what)
{
	char *text = demo_read_text(path);
	size_t len = text ? strlen(text) : 0;
	char *from = text + len;

	for (int lines = 0; from > text; from--)
		if (from[-1] == '\n' && from != text + len && ++lines == TAIL_LINES)
			break;
	if (len)
		fprintf(stderr, "--- the end of its %s ---\n%s%s", what, from,
			text[len - 1] == '\n' ? "" : "\n");
	free(text);
}

void demo_tail(const struct demo *demo, const struct demo_args *args)
{
	char *shown = malloc(args->len ? args->len : 1);

	if (shown) {
		memcpy(shown, args->argz, args->len);
		argz_stringify(shown, args->len, ' ');
		fprintf(stderr, "the command was: %s\n", shown);
	}
	free(shown);
	print_tail(demo->files.out, "standard output");
	print_tail(demo->files.err, "standard error");
	fprintf(stderr, "(files kept in %s)\n", demo->files.folder);
}

int demo_child_run(const struct demo *demo, const struct demo_args *args, double *wall_s)
{
	char **argv = calloc(argz_count(args->argz, args->len) + 1, sizeof(*argv));
	double start = now_s();
	int status = 0;

	if (!argv)
		out_of_memory();
	argz_extract(args->argz, args->len, argv);

	pid_t pid = fork();

	if (pid == 0)
		become(demo, argv);
	free(argv);
	if (pid < 0) {
		fprintf(stderr, "onecopy-demo: fork: %s\n", strerror(errno));
		return -1;
	}
	setpgid(pid, pid);

	const char *why = supervise(pid, demo->opt.timeout_s, &status);

	*wall_s = now_s() - start;
	if (!why && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;

	if (why)
		fprintf(stderr, "\nonecopy-demo: a run %s after %.1f s\n", why, *wall_s);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "\nonecopy-demo: a run was killed by signal %d (%s)\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "\nonecopy-demo: a run failed with exit status %d\n",
			WEXITSTATUS(status));
	return -1;
}
