/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reduction's operation is the program's: it may wait for what another thread holds, and call us.
 * Ranks are two teams of one process, driven by requests.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/test.h"

struct pair {
	struct oc_team *team[2];
};

static void pair_open(struct pair *pair)
{
	assert_int_equal(oct_local_teams(2, pair->team), 0);
}

static void pair_close(struct pair *pair)
{
	assert_int_equal(oct_local_end(2, pair->team), 0);
}

/* An Allreduce of both ranks to its end: what it came to, or -1. */
static int64_t sum_of(struct pair *pair, const struct oc_op *op)
{
	int64_t in[2] = { 40, 2 }, out[2] = { 0, 0 };
	struct oc_request *request[2];

	for (int r = 0; r < 2; r++) {
		struct oc_call call = { .collective = OC_ALLREDUCE,
					.send = &in[r],
					.recv = &out[r],
					.bytes = sizeof(in[r]),
					.op = op };

		if (oc_start(pair->team[r], &call, &request[r]))
			return -1;
	}
	for (int r = 0; r < 2; r++)
		if (oc_wait(request[r]))
			return -1;
	return out[0] == out[1] ? out[0] : -1;
}

static void add(void *context, const void *in, void *inout, size_t count)
{
	const int64_t *a = in;
	int64_t *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

static const struct oc_op plain = { .apply = add, .bytes = 8, .commutative = 1, .id = 1 };

static struct {
	struct pair pair, other;
	pthread_mutex_t lock;
	bool inside; /* a thread is in the operation, the first one that came; atomic */
	int64_t nested;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The first time it waits; the other rank's may then be run by whoever holds the lock. */
static void locks_and_adds(void *context, const void *in, void *inout, size_t count)
{
	if (!__atomic_exchange_n(&shared.inside, true, __ATOMIC_ACQ_REL)) {
		pthread_mutex_lock(&shared.lock);
		pthread_mutex_unlock(&shared.lock);
	}
	add(context, in, inout, count);
}

static void *reduces(void *result)
{
	static const struct oc_op op = { .apply = locks_and_adds, .bytes = 8, .commutative = 1 };

	*(int64_t *)result = sum_of(&shared.pair, &op);
	return NULL;
}

/* The thread that holds what an operation waits for starts, drives and ends its own calls. */
TEST(an_operation_that_waits_holds_up_no_other_thread)
{
	int64_t sum = 0;
	pthread_t thread;

	pair_open(&shared.pair);
	pair_open(&shared.other);
	pthread_mutex_lock(&shared.lock);
	assert_int_equal(pthread_create(&thread, NULL, reduces, &sum), 0);
	while (!__atomic_load_n(&shared.inside, __ATOMIC_ACQUIRE))
		usleep(100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(sum_of(&shared.other, &plain), 42);
	pair_close(&shared.other);
	pthread_mutex_unlock(&shared.lock);
	pthread_join(thread, NULL);
	assert_int_equal(sum, 42);
	pair_close(&shared.pair);
}

static void calls_and_adds(void *context, const void *in, void *inout, size_t count)
{
	oc_progress();
	shared.nested = sum_of(&shared.other, &plain);
	add(context, in, inout, count);
}

static void nested(void)
{
	static const struct oc_op op = { .apply = calls_and_adds, .bytes = 8, .commutative = 1 };

	pair_open(&shared.pair);
	pair_open(&shared.other);
	shared.nested = 0;
	assert_int_equal(sum_of(&shared.pair, &op), 42);
	assert_int_equal(shared.nested, 42);
	pair_close(&shared.pair);
	pair_close(&shared.other);
}

TEST(an_operation_may_call_the_engine)
{
	nested();
	oc_set_threads(0);
	nested();
	oc_set_threads(1);
}

static struct pair several[4];

static void *sums(void *pair)
{
	for (int n = 0; n < 2000; n++)
		if (sum_of(pair, &plain) != 42)
			abort();
	return NULL;
}

/* Each thread meets the requests of the others while they run. */
TEST(reductions_of_several_threads)
{
	enum { THREADS = sizeof(several) / sizeof(several[0]) };
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pair_open(&several[i]);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sums, &several[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		pair_close(&several[i]);
	assert_null(oci_engine.first);
	assert_int_equal(oci_engine.pending, 0);
}
