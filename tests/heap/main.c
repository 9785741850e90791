/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_heap_test SCENARIO: run with libonecopy-heap.so preloaded, see CMakeLists.txt. */
#include "check.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct oci_arena *arena(void)
{
	union {
		void *data;
		oci_arena_fn *function;
	} found = { .data = dlsym(RTLD_DEFAULT, OCI_ARENA_SYMBOL) };

	CHECK(found.function);
	return found.function();
}

bool in_arena(const void *memory, size_t bytes)
{
	const struct oci_arena *here = arena();
	uint64_t offset = (uint64_t)((const uint8_t *)memory - here->base);

	return here->base && offset >= OCI_ARENA_FIRST && offset < here->bytes &&
	       bytes <= here->bytes - offset;
}

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
	const struct scenario *const all[] = { family_scenarios, limit_scenarios, fork_scenarios,
					       beginning_scenarios };

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
