/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreground.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

/* As a shell does: the sentence and the exit status for a command that cannot be run. */
static int explain(const char *name, int error)
{
	if (error == ENOENT) {
		say("%s: command not found; %s", name,
		    strchr(name, '/') ? "is the path right, and the interpreter of a "
					"script there?" :
					"give its path, or add its directory to PATH");
		return EXIT_NOT_FOUND;
	}
	say("%s cannot be run: %s", name, strerror(error));
	return EXIT_CANNOT_RUN;
}

static void (*before)(int) = SIG_DFL;

void foreground_heed_children(void)
{
	before = signal(SIGCHLD, SIG_DFL);
}

int foreground_become(char **argv)
{
	signal(SIGCHLD, before);
	execvp(argv[0], argv);
	return explain(argv[0], errno);
}

/* In the child: tells the parent through the pipe when the command cannot be run. */
static void run_in_child(char **argv, const sigset_t *mask, pid_t parent, int report)
{
	int error;

	/* Should we be killed without a chance to forward it, the job must not stay behind. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGCHLD, before);
	execvp(argv[0], argv);
	error = errno;
	if (write(report, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_CANNOT_RUN);
	_exit(EXIT_NOT_FOUND);
}

/*
 * What the terminal sends (si_code SI_KERNEL) has reached the whole foreground group, so the
 * command has it already, and mpirun takes a second SIGINT as an order to abort at once.
 */
static int forward_until_end(pid_t pid, const sigset_t *signals)
{
	for (;;) {
		siginfo_t info;
		int status;
		int number = sigwaitinfo(signals, &info);

		if (number < 0)
			continue;
		if (number != SIGCHLD) {
			if (info.si_code <= 0)
				kill(pid, number);
			continue;
		}
		if (waitpid(pid, &status, WNOHANG) != pid)
			continue;
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
	}
}

int foreground_run(char **argv, int *started)
{
	sigset_t signals, before;
	int report[2], error = 0, status = 0;
	pid_t parent = getpid();
	pid_t pid;

	*started = 0;
	if (pipe2(report, O_CLOEXEC))
		return explain(argv[0], errno);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&signals, forwarded[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_in_child(argv, &before, parent, report[1]);
	if (pid < 0)
		error = errno;
	close(report[1]);
	/* End of file as soon as the exec has closed the child's end. */
	if (pid > 0 && read(report[0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(report[0]);

	if (pid > 0) {
		status = forward_until_end(pid, &signals);
		*started = error == 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error ? explain(argv[0], error) : status;
}
