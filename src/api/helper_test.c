/* SPDX-License-Identifier: BSD-3-Clause */
/* ONECOPY_ASYNC=thread, and =uring, which is the same here: operations go on while nobody calls;
 * what is the program's stays with it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/test.h"
#include "support/thread_team.h"

enum { INTS = 100000, MANY = 20 };

/* Before the options are read, in each program of tests. */
__attribute__((constructor)) static void choose(void)
{
	setenv("ONECOPY_ASYNC", "thread", 0);
}

/* Without malloc, whose locks under a sanitizer a child of fork() may find held. */
static int threads(void)
{
	static const char key[] = "\nThreads:";
	char text[4096], *found;
	int status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = status < 0 ? -1 : read(status, text, sizeof(text) - 1);

	if (status >= 0)
		close(status);
	text[got < 0 ? 0 : got] = '\0';
	found = strstr(text, key);
	return found ? atoi(found + sizeof(key) - 1) : -1;
}

static __thread int applied; /* by this thread */

static void add(void *context, const void *in, void *inout, size_t count)
{
	const int *a = in;
	int *b = inout;

	(void)context;
	applied++;
	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

static const struct oc_op anybody = {
	.apply = add, .bytes = sizeof(int), .commutative = 1, .any_thread = 1
};
static const struct oc_op callers = { .apply = add, .bytes = sizeof(int), .commutative = 1 };

static struct oc_request *start(struct oc_team *team, enum oc_collective collective, int *data,
				int *result, const struct oc_op *op)
{
	struct oc_call call = { .collective = collective,
				.send = data,
				.recv = result,
				.bytes = INTS * sizeof(int),
				.op = op };
	struct oc_request *request = NULL;

	return oc_start(team, &call, &request) ? NULL : request;
}

/* Without a call that drives anything. */
static int peeked(struct oc_request *request, int tries)
{
	int result = 0;

	while (!(result = oc_peek(request)) && tries--)
		usleep(1000);
	return result;
}

static void fill(int *data, int value)
{
	for (int i = 0; i < INTS; i++)
		data[i] = value + i;
}

static int differs(const int *data, int value, int times)
{
	for (int i = 0; i < INTS; i++)
		if (data[i] != times * (value + i))
			return 1;
	return 0;
}

TEST_ON_RANKS(operations_end_while_nobody_calls, 2, 3, 5)
{
	int *data = malloc(INTS * sizeof(int)), *sum = malloc(INTS * sizeof(int)), failed = 0;

	for (int n = 0; n < MANY && !failed; n++) {
		uint32_t root = oc_team_rank(team);

		fill(data, root ? -1 : n);
		failed = peeked(start(team, OC_BCAST, data, data, NULL), -1) != 1 ||
			 differs(data, n, 1);
		if (!failed)
			failed = peeked(start(team, OC_ALLREDUCE, data, sum, &anybody), -1) != 1 ||
				 differs(sum, n, (int)oc_team_size(team));
	}
	free(data);
	free(sum);
	return failed;
}

/* The first step is in the call; the rest must be, too: in that of this thread alone. */
TEST_ON_RANKS(an_operation_of_the_program_runs_in_its_own_calls, 2)
{
	int *data = malloc(INTS * sizeof(int)), *sum = malloc(INTS * sizeof(int)), failed = 0, all;
	struct oc_request *request;

	fill(data, 1);
	for (int n = 0; n < MANY && !failed; n++) {
		oct_meet();
		applied = 0;
		request = start(team, OC_ALLREDUCE, data, sum, &callers);
		/* The helper is there, and has time. */
		usleep(2000);
		failed = !request || oc_wait(request) || differs(sum, 1, 2);
		all = applied;
		applied = 0;
		/* As often as where nobody else could have: a blocking call of the same. */
		if (!failed) {
			struct oc_call call = { .collective = OC_ALLREDUCE,
						.send = data,
						.recv = sum,
						.bytes = INTS * sizeof(int),
						.op = &callers };

			failed = oc_collective(team, &call) || all != applied;
		}
	}
	free(data);
	free(sum);
	return failed;
}

TEST_ON_RANKS(many_are_outstanding_beside_blocking_calls, 2, 4)
{
	int *data = malloc((size_t)MANY * INTS * sizeof(int)), failed = 0;
	struct oc_request *request[MANY];

	for (int n = 0; n < MANY; n++)
		fill(data + n * INTS, oc_team_rank(team) ? -1 : n);
	for (int n = 0; n < MANY && !failed; n++) {
		request[n] = start(team, OC_BCAST, data + n * INTS, data + n * INTS, NULL);
		failed = !request[n] || (n % 3 == 0 && oct_barrier(team));
	}
	for (int n = MANY - 1; n >= 0 && !failed; n--)
		failed = (n % 2 ? oc_wait(request[n]) : peeked(request[n], -1) != 1) ||
			 differs(data + n * INTS, n, 1);
	free(data);
	return failed;
}

#ifdef __SANITIZE_ADDRESS__
static bool is_child;

/* LeakSanitizer asks this at the end of each process. A child of fork() would wait there for ever
 * where the helper, which it does not have, held one of the sanitizer's own locks at that moment.
 */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

static void be_child(void)
{
	is_child = true;
}
#else
static void be_child(void)
{
}
#endif

/* A child has no helper, and ends; its parent's goes on. */
TEST_ON_RANKS(a_child_of_fork_ends, 2)
{
	int *data = malloc(INTS * sizeof(int)), failed = 0;

	for (int n = 0; n < 5 && !failed; n++) {
		struct oc_request *request;
		int status = 1;
		pid_t child;

		fill(data, oc_team_rank(team) ? -1 : n);
		request = start(team, OC_BCAST, data, data, NULL);
		child = fork();
		if (!child) {
			be_child();
			exit(threads() != 1);
		}
		failed = child < 0 || waitpid(child, &status, 0) != child || status ||
			 peeked(request, -1) != 1 || differs(data, n, 1);
	}
	free(data);
	return failed;
}

TEST(it_ends_with_the_last_team)
{
	struct oc_team *team[2];
	struct oc_request *request[2];
	int *data = calloc(2 * (size_t)INTS, sizeof(int)), before = 0;

	/* ThreadSanitizer has a thread of its own from the first one on. */
	for (int times = 0; times < 3; times++) {
		assert_int_equal(oct_local_teams(2, team), 0);
		/* Rank 1 first: it waits for the root. */
		request[1] = start(team[1], OC_BCAST, data + INTS, data + INTS, NULL);
		request[0] = start(team[0], OC_BCAST, data, data, NULL);
		if (times)
			assert_int_equal(threads(), before + 1);
		for (int r = 0; r < 2; r++)
			assert_int_equal(peeked(request[r], -1), 1);
		assert_int_equal(oct_local_end(2, team), 0);
		if (times)
			assert_int_equal(threads(), before);
		before = threads();
	}
	free(data);
}

/* For ThreadSanitizer: ranks are threads, and one helper runs the operations of all. */
static int mix(struct oc_team *team)
{
	uint32_t rank = oc_team_rank(team);
	int *data = malloc(4 * (size_t)INTS * sizeof(int)), failed = 0;
	struct oc_request *request[3];

	for (int n = 0; n < MANY && !failed; n++) {
		fill(data, rank ? -1 : n);
		fill(data + INTS, n);
		request[0] = start(team, OC_BCAST, data, data, NULL);
		request[1] = start(team, OC_ALLREDUCE, data + INTS, data + 2 * INTS, &anybody);
		request[2] = start(team, OC_ALLREDUCE, data + INTS, data + 3 * INTS, &callers);
		failed = !request[0] || !request[1] || !request[2];
		if (!failed && n % 2)
			failed = peeked(request[0], -1) != 1 || oc_wait(request[2]) ||
				 oc_wait(request[1]);
		else if (!failed)
			failed = oc_wait(request[2]) || oc_wait(request[0]) ||
				 peeked(request[1], -1) != 1;
		failed = failed || differs(data, n, 1) || differs(data + 2 * INTS, n, 3) ||
			 differs(data + 3 * INTS, n, 3);
	}
	free(data);
	return failed;
}

TEST(no_access_of_the_helper_is_unordered)
{
	assert_int_equal(oct_thread_team(3, 0, mix), 0);
}

TEST(nor_when_copies_fail_and_are_recovered)
{
	assert_int_equal(oct_thread_team(3, 4, mix), 0);
}
