/* SPDX-License-Identifier: BSD-3-Clause */
/* Where io_uring is forbidden; what ONECOPY_ASYNC says. This process must not have asked for either
 * before. */
#include "graph/world_test.h"
#include "support/refuse.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BYTES = 4 << 20 };

/* In a process of its own: filters and limits stay, and the library asks once. 77: not here. */
static void apart(int (*body)(const void *row), const void *row, const char *skipped)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		_exit(body(row));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		oct_skip("%s", skipped);
	assert_int_equal(status, 0);
}

static void prepare_bcast(struct world *world, uint32_t ranks, bool tcp, size_t bytes,
			  size_t segment)
{
	struct oc_graph *graph;

	world_begin(world, ranks, tcp);
	for (uint32_t r = 0; r < ranks; r++) {
		assert_int_equal(
			oc_graph_bcast(&graph, OC_GRAPH_BINARY, r, ranks, 0, bytes, segment), 0);
		world_buffers(world, r, bytes, 0);
		world_prepare(world, r, graph);
	}
	memset(world->buffer[0][0].base, 5, bytes);
}

/* 0: all have the bytes, by that executor. */
static int is_wrong(const struct world *world, int error, size_t bytes,
		    enum oc_graph_executor executor)
{
	for (uint32_t r = 1; r < world->size && !error; r++)
		error = memcmp(world->buffer[0][0].base, world->buffer[r][0].base, bytes) ||
			oc_graph_executor(world->run[r]) != executor;
	return error != 0;
}

struct refused {
	long call;
	int error;
};

/* How often the text is in what was written to the descriptor. */
static int count_text(int fd, const char *text)
{
	char written[4096] = "";
	int times = 0;

	if (pread(fd, written, sizeof(written) - 1, 0) < 0)
		return -1;
	for (const char *at = strstr(written, text); at; at = strstr(at + 1, text))
		times++;
	return times;
}

/* It is said once, and the thread has run both graphs. */
static int without_uring(const void *row)
{
	const struct refused *refused = row;
	int log = memfd_create("log", 0), wrong = 0;

	if (!oct_refuse(refused->call, refused->error))
		return 77;
	setenv("ONECOPY_ASYNC", "uring", 1);
	if (dup2(log, STDERR_FILENO) < 0 || !oc_graph_uring_refusal() ||
	    !strstr(oc_graph_uring_refusal(), "seccomp"))
		return 1;
	for (int turn = 0; turn < 2; turn++) {
		struct world world;

		prepare_bcast(&world, 3, false, BYTES, 65536);
		wrong |= is_wrong(&world, world_run(&world, OC_GRAPH_AUTO), BYTES, OC_GRAPH_THREAD);
		world_end(&world);
	}
	if (count_text(log, "seccomp") != 1 || count_text(log, "a thread runs graphs instead") != 1)
		return 3;
	return 2 * wrong;
}

TEST(where_io_uring_is_forbidden_a_thread_runs_the_graph)
{
	static const struct refused rows[] = { { SYS_io_uring_setup, ENOSYS },
					       { SYS_io_uring_setup, EPERM },
					       { SYS_io_uring_enter, EPERM } };

	for (int i = 0; i < 3; i++)
		apart(without_uring, &rows[i], "no seccomp filter can be set");
}

/* Larger than all buffers of the sockets, in both directions. */
static int crossing(struct world *world)
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
	err = world_run(world, OC_GRAPH_URING);
	return err || memcmp(world->buffer[0][0].base, world->buffer[1][1].base, LARGE) ||
	       memcmp(world->buffer[1][0].base, world->buffer[0][1].base, LARGE);
}

/* The kernel's threads for requests that block are as many as the process may have. */
static int few_threads(const void *row)
{
	const struct rlimit two = { 2, 2 };
	struct world world;

	(void)row;
	if (oc_graph_uring_refusal())
		return 77;
	/* root has as many as it wants. */
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 77;
	return setrlimit(RLIMIT_NPROC, &two) || crossing(&world);
}

static int no_descriptor(const void *row)
{
	const struct rlimit none = { 0, 0 };
	struct world world;

	(void)row;
	if (oc_graph_uring_refusal())
		return 77;
	prepare_bcast(&world, 2, false, BYTES, 65536);
	return setrlimit(RLIMIT_NOFILE, &none) ||
	       is_wrong(&world, world_run(&world, OC_GRAPH_URING), BYTES, OC_GRAPH_THREAD);
}

TEST(a_process_that_may_have_few_threads_does_not_wait_for_ever)
{
	apart(few_threads, NULL, "io_uring is forbidden here, or to be another user");
}

TEST(without_a_descriptor_left_a_thread_runs_the_graph)
{
	apart(no_descriptor, NULL, "io_uring is forbidden here");
}

struct asked {
	const char *asked;
	enum oc_graph_executor executor;
	size_t bytes;
	bool tcp;
};

/* Who is `auto` for a message of that size. */
static int auto_is(const void *row)
{
	const struct asked *asked = row;
	enum oc_graph_executor executor = asked->executor;
	struct world world;
	int wrong;

	setenv("ONECOPY_ASYNC", asked->asked, 1);
	/* Socketpairs are not for the module. */
	if (executor == OC_GRAPH_KMOD)
		executor = OC_GRAPH_URING;
	if (executor == OC_GRAPH_URING && oc_graph_uring_refusal())
		executor = OC_GRAPH_THREAD;
	prepare_bcast(&world, 2, asked->tcp, asked->bytes, 0);
	wrong = is_wrong(&world, world_run(&world, OC_GRAPH_AUTO), asked->bytes, executor);
	world_end(&world);
	return wrong;
}

TEST(the_executor_that_is_asked_for_is_that_of_auto)
{
	static const struct asked rows[] = {
		{ "auto", OC_GRAPH_CALLER, 1000, true },
		{ "auto", OC_GRAPH_THREAD, BYTES, true },
		{ "auto", OC_GRAPH_CALLER, BYTES, false },
		{ "caller", OC_GRAPH_CALLER, 1000, false },
		{ "thread", OC_GRAPH_THREAD, 1000, false },
		{ "uring", OC_GRAPH_URING, 1000, false },
		{ "kmod", OC_GRAPH_KMOD, 1000, false },
	};

	for (int i = 0; i < 7; i++)
		apart(auto_is, &rows[i], "");
}
