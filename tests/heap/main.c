/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_heap_test SCENARIO: run with libonecopy-heap.so preloaded, see CMakeLists.txt. */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void again(const char *scenario)
{
	execl("/proc/self/exe", "oc_heap_test", scenario, (char *)NULL);
	CHECK(!"the program cannot be run again");
}

void reap(int pid)
{
	int status = -1;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
	const struct scenario *const all[] = { family_scenarios,    limit_scenarios,
					       fork_scenarios,	    meeting_scenarios,
					       beginning_scenarios, stack_scenarios };

	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		for (const struct scenario *s = all[i]; s->name; s++) {
			if (strcmp(s->name, argv[1]))
				continue;
			s->run();
			return 0;
		}
	}
	fprintf(stderr, "usage: oc_heap_test SCENARIO\n");
	return 2;
}
