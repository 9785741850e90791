/* SPDX-License-Identifier: BSD-3-Clause */
/* Where io_uring is forbidden. This process must not have asked for it before. */
#include "graph/world_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { BYTES = 4 << 20 };

/* In a process of its own, as a filter stays, and as the library asks once: io_uring_setup() fails.
 */
static int without_uring(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	struct world world;
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 77;
	if (!oc_graph_uring_refusal() || !strstr(oc_graph_uring_refusal(), "seccomp"))
		return 1;
	world_begin(&world, 3, false);
	for (uint32_t r = 0; r < 3; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_BINARY, r, 3, 0, BYTES, 65536), 0);
		world_buffers(&world, r, BYTES, 0);
		world_prepare(&world, r, graph);
	}
	memset(world.buffer[0][0].base, 5, BYTES);
	err = world_run(&world, OC_GRAPH_URING);
	if (err || oc_graph_executor(world.run[1]) != OC_GRAPH_THREAD ||
	    memcmp(world.buffer[0][0].base, world.buffer[2][0].base, BYTES))
		return 2;
	world_end(&world);
	return 0;
}

TEST(where_io_uring_is_forbidden_a_thread_runs_the_graph)
{
	static const int errors[] = { ENOSYS, EPERM };

	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(without_uring(errors[i]));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(status, 0);
	}
}
