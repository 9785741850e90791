/* SPDX-License-Identifier: BSD-3-Clause */
/* Where io_uring is forbidden; what ONECOPY_ASYNC says. This process must not have asked for either
 * before. */
#include "graph/world_test.h"
#include "support/refuse.h"

#include <stdio.h>
#include <sys/wait.h>

enum { BYTES = 4 << 20 };

/* In a process of its own, as a filter stays, and as the library asks once: io_uring_setup() fails.
 */
static int without_uring(int error)
{
	struct world world;
	int err;

	if (!oct_refuse(SYS_io_uring_setup, error))
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
			oct_skip("no seccomp filter can be set");
		assert_int_equal(status, 0);
	}
}

/* In a process of its own, as options are read once: who is `auto` for a message of that size. */
static int auto_is(const char *asked, enum oc_graph_executor executor)
{
	struct oc_graph *graph;
	struct world world;
	int err;

	setenv("ONECOPY_ASYNC", asked, 1);
	/* Socketpairs are not for the module. */
	if (executor == OC_GRAPH_KMOD)
		executor = OC_GRAPH_URING;
	if (executor == OC_GRAPH_URING && oc_graph_uring_refusal())
		executor = OC_GRAPH_THREAD;
	world_begin(&world, 2, false);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_CHAIN, r, 2, 0, 1000, 0), 0);
		world_buffers(&world, r, 1000, 0);
		world_prepare(&world, r, graph);
	}
	memset(world.buffer[0][0].base, 7, 1000);
	err = world_run(&world, OC_GRAPH_AUTO);
	if (err || memcmp(world.buffer[0][0].base, world.buffer[1][0].base, 1000) ||
	    oc_graph_executor(world.run[0]) != executor ||
	    oc_graph_executor(world.run[1]) != executor)
		return 1;
	world_end(&world);
	return 0;
}

TEST(the_executor_that_is_asked_for_is_that_of_auto)
{
	static const struct {
		const char *asked;
		enum oc_graph_executor executor;
	} rows[] = { { "auto", OC_GRAPH_CALLER }, /* of so few bytes */
		     { "caller", OC_GRAPH_CALLER },
		     { "thread", OC_GRAPH_THREAD },
		     { "uring", OC_GRAPH_URING },
		     { "kmod", OC_GRAPH_KMOD } };

	fflush(stdout);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(auto_is(rows[i].asked, rows[i].executor));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}
