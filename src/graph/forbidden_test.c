/* SPDX-License-Identifier: BSD-3-Clause */
/* Where io_uring is forbidden; what ONECOPY_ASYNC says. This process must not have asked for either
 * before. */
#include "graph/world_test.h"
#include "support/refuse.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BYTES = 4 << 20 };

/* In a process of its own, as a filter stays, and as the library asks once: that call fails. */
static int without_uring(long call, int error)
{
	struct world world;
	int err;

	if (!oct_refuse(call, error))
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
	static const struct {
		long call;
		int error;
	} rows[] = { { SYS_io_uring_setup, ENOSYS },
		     { SYS_io_uring_setup, EPERM },
		     { SYS_io_uring_enter, EPERM } };

	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(without_uring(rows[i].call, rows[i].error));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			oct_skip("no seccomp filter can be set");
		assert_int_equal(status, 0);
	}
}

/* ---- limits of a process, in one of its own ----------------------------------------------------
 */

/* Larger than all buffers of the sockets, in both directions. */
static int crossing(struct world *world, enum oc_graph_executor executor)
{
	enum { LARGE = 64 << 20 };
	int err;

	world_begin(world, 2, false);
	for (uint32_t r = 0; r < 2; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_create(&graph), 0);
		assert_int_equal(oc_graph_send(graph, 1 - r, 0, 0, LARGE), 0);
		assert_int_equal(oc_graph_recv(graph, 1 - r, 1, 0, LARGE), 1);
		world_buffers(world, r, LARGE, LARGE);
		world_prepare(world, r, graph);
		memset(world->buffer[r][0].base, (int)r + 3, LARGE);
	}
	err = world_run(world, executor);
	return err || memcmp(world->buffer[0][0].base, world->buffer[1][1].base, LARGE) ||
	       memcmp(world->buffer[1][0].base, world->buffer[0][1].base, LARGE);
}

/* The kernel's threads for requests that block are as many as the process may have. */
static int few_threads(void)
{
	const struct rlimit two = { 2, 2 };
	struct world world;

	if (oc_graph_uring_refusal())
		return 77;
	/* root has as many as it wants. */
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 77;
	if (setrlimit(RLIMIT_NPROC, &two) || crossing(&world, OC_GRAPH_URING))
		return 1;
	return 0;
}

static int no_descriptor(void)
{
	const struct rlimit none = { 0, 0 };
	struct world world;
	struct oc_graph *graph;

	if (oc_graph_uring_refusal())
		return 77;
	world_begin(&world, 2, false);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_CHAIN, r, 2, 0, BYTES, 65536), 0);
		world_buffers(&world, r, BYTES, 0);
		world_prepare(&world, r, graph);
	}
	memset(world.buffer[0][0].base, 9, BYTES);
	if (setrlimit(RLIMIT_NOFILE, &none) || world_run(&world, OC_GRAPH_URING) ||
	    oc_graph_executor(world.run[1]) != OC_GRAPH_THREAD)
		return 1;
	return memcmp(world.buffer[0][0].base, world.buffer[1][0].base, BYTES) != 0;
}

static void apart(int (*body)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		oct_skip("io_uring is forbidden here, or to be another user");
	assert_int_equal(status, 0);
}

TEST(a_process_that_may_have_few_threads_does_not_wait_for_ever)
{
	apart(few_threads);
}

TEST(without_a_descriptor_left_a_thread_runs_the_graph)
{
	apart(no_descriptor);
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
