/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_watch [--silence SECONDS] COMMAND [WORD...]: runs a test, and ends it when it hangs, after
 * having said what each of its processes does (watch.h). Its status is the command's, 128 plus the
 * number of the signal that ended it, or 1. Nothing of it is left behind.
 */
#include "support/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/harness/descendants.h"

/* True: it hung. */
static bool await(pid_t pid, double silence_s)
{
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	struct watch *watch = watch_begin(silence_s);
	bool hangs = false;

	while (watch && !hangs && poll(&end, 1, WATCH_LOOK_MS) == 0)
		hangs = watch_look(watch);
	if (hangs)
		watch_report(watch, stderr);
	watch_end(watch);
	close(end.fd);
	return hangs;
}

int main(int argc, char **argv)
{
	double silence_s = 0;
	int status = 0;
	pid_t pid;

	if (argc > 2 && !strcmp(argv[1], "--silence")) {
		silence_s = strtod(argv[2], NULL);
		argv += 2;
		argc -= 2;
	}
	if (argc < 2) {
		fputs("usage: oc_watch [--silence SECONDS] COMMAND [WORD...]\n", stderr);
		return 2;
	}
	descendants_adopt();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[1], argv + 1);
		fprintf(stderr, "oc_watch: %s: %s\n", argv[1], strerror(errno));
		_exit(127);
	}
	if (pid < 0) {
		perror("oc_watch: fork");
		return 1;
	}
	if (await(pid, silence_s)) {
		fprintf(stderr, "oc_watch: %s hangs and is ended\n", argv[1]);
		descendants_end();
		return 1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	descendants_end();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "oc_watch: %s was ended by signal %d (%s)\n", argv[1], WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}
