// SPDX-License-Identifier: BSD-3-Clause
#include "collective.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lab/harness/options.h"

void collective_list_default(struct collective_list *list)
{
	static const enum oc_collective by_default[] = {
		OC_BCAST,    OC_SCATTER, OC_GATHER,    OC_ALLGATHER,
		OC_ALLTOALL, OC_REDUCE,	 OC_ALLREDUCE, OC_BARRIER,
	};

	list->n = sizeof(by_default) / sizeof(by_default[0]);
	memcpy(list->at, by_default, sizeof(by_default));
}

static const char *collective_word(unsigned int i)
{
	return i < OC_COLLECTIVES ? oci_collective_name((enum oc_collective)i) : NULL;
}

/* Without the MPI_ in front. */
static const char *own_name(const char *word)
{
	return strncasecmp(word, "MPI_", 4) ? word : word + 4;
}

static bool find(const char *name, enum oc_collective *collective)
{
	const char *one;

	for (unsigned int i = 0; (one = collective_word(i)) != NULL; i++) {
		if (strcasecmp(name, one))
			continue;
		*collective = (enum oc_collective)i;
		return true;
	}
	return false;
}

bool collective_is_nonblocking(const char *word, enum oc_collective *collective)
{
	const char *name = own_name(word);

	return tolower((unsigned char)*name) == 'i' && find(name + 1, collective);
}

enum oc_collective collective_take(const char *word)
{
	enum oc_collective collective;

	if (find(own_name(word), &collective))
		return collective;
	if (collective_is_nonblocking(word, &collective))
		usage("'%s' is a form of %s, whose name is expected here", word,
		      oci_collective_name(collective));
	/* Which says what is valid. */
	return word_take(word, "a collective of onecopy", collective_word, "");
}

void take_sizes(void *list, const char *text)
{
	size_list_take("--sizes", text, 1, list);
}

void collective_list_add(struct collective_list *list, enum oc_collective collective)
{
	int i = 0;

	while (i < list->n && list->at[i] != collective)
		i++;
	list->at[i] = collective;
	list->n += i == list->n;
}

void take_collectives(void *place, const char *text)
{
	struct collective_list *list = place;
	char *copy = strdup(text), *rest = copy, *word;

	if (!copy)
		usage("no memory for the collectives");
	list->n = 0;
	while ((word = strsep(&rest, ",")))
		collective_list_add(list, collective_take(word));
	free(copy);
}

size_t collective_send_bytes(const struct collective_call *call)
{
	bool is_root = call->rank == call->root;

	if (call->collective == OC_BCAST && !is_root)
		return 0;
	return call->bytes * oci_send_blocks(call->collective, (size_t)call->ranks, is_root);
}

size_t collective_recv_bytes(const struct collective_call *call)
{
	bool is_root = call->rank == call->root;

	if (call->collective == OC_BCAST)
		return is_root ? 0 : call->bytes;
	if (oci_is_exclusive(call->collective) && call->rank == 0)
		return 0;
	return call->bytes * oci_recv_blocks(call->collective, (size_t)call->ranks, is_root);
}

/* splitmix64's finaliser: nearby inputs give unrelated keys. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The key of the block that rank @from sends and rank @to gets; @to is 0 where all get the same. */
static uint64_t block_key(const struct collective_call *call, int from, int to)
{
	return mix(call->seed ^ mix((uint64_t)from << 32 | (uint64_t)to));
}

/*
 * Word i of a block is key + i * step: an addition a word, so that rewriting the source costs about
 * what a memset does, and any shift, swap or repetition of bytes shows.
 */
static const uint64_t word_step = 0x9e3779b97f4a7c15ULL;

static void pattern_fill(unsigned char *out, size_t bytes, uint64_t key)
{
	size_t words = bytes / sizeof(key), i;
	uint64_t word;

	for (i = 0; i < words; i++) {
		word = key + i * word_step;
		memcpy(out + i * sizeof(word), &word, sizeof(word));
	}
	word = key + words * word_step;
	memcpy(out + words * sizeof(word), &word, bytes % sizeof(word));
}

/* The first byte of @found that differs from @expected; they are known to differ. */
static void locate(const void *expected, const void *found, size_t offset,
		   struct collective_error *error)
{
	const unsigned char *e = expected, *f = found;
	size_t i;

	for (i = 0; e[i] == f[i]; i++) {
	}
	*error = (struct collective_error){ offset + i, e[i], f[i] };
}

static int pattern_verify(const unsigned char *in, size_t bytes, uint64_t key, size_t offset,
			  struct collective_error *error)
{
	size_t done, n;
	uint64_t word = key;

	for (done = 0; done < bytes; done += n, word += word_step) {
		n = bytes - done < sizeof(word) ? bytes - done : sizeof(word);
		if (memcmp(in + done, &word, n)) {
			locate(&word, in + done, offset + done, error);
			return -EBADMSG;
		}
	}
	return 0;
}

/*
 * Reductions add whole numbers below 1024 as floats. Sums over fewer than 2^14 ranks stay below
 * 2^24, where a float still holds every whole number, so the sum is exact in any order and the
 * check needs no tolerance.
 */
static uint32_t addend(uint64_t key, size_t i)
{
	return ((uint32_t)key + (uint32_t)i * 2654435761U) >> 22;
}

static void floats_fill(float *out, size_t n, uint64_t key)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (float)addend(key, i);
}

static int floats_verify(const struct collective_call *call, const float *in,
			 struct collective_error *error)
{
	uint64_t *keys = malloc((size_t)call->ranks * sizeof(*keys));
	size_t n = call->bytes / sizeof(*in), i;
	/* Whose numbers are added, and which of theirs. */
	int ranks = oci_is_exclusive(call->collective) ? call->rank :
		    oci_is_prefix(call->collective)    ? call->rank + 1 :
							 call->ranks;
	size_t first = oci_sends_each(call->collective) ? (size_t)call->rank * n : 0;
	int rank, err = 0;

	if (!keys)
		return -ENOMEM;
	for (rank = 0; rank < ranks; rank++)
		keys[rank] = block_key(call, rank, 0);
	for (i = 0; i < n && !err; i++) {
		uint32_t sum = 0;
		float expected;

		for (rank = 0; rank < ranks; rank++)
			sum += addend(keys[rank], first + i);
		expected = (float)sum;
		/* By bytes: a -0 where 0 belongs, or a NaN, is wrong too. */
		if (memcmp(&in[i], &expected, sizeof(expected))) {
			locate(&expected, &in[i], i * sizeof(expected), error);
			err = -EBADMSG;
		}
	}
	free(keys);
	return err;
}

void collective_fill(const struct collective_call *call, void *send)
{
	size_t bytes = collective_send_bytes(call), at;
	int to;

	if (oci_is_reduction(call->collective)) {
		floats_fill(send, bytes / sizeof(float), block_key(call, call->rank, 0));
		return;
	}
	for (at = 0, to = 0; at < bytes; at += call->bytes, to++) {
		pattern_fill((unsigned char *)send + at, call->bytes,
			     block_key(call, call->rank, to));
	}
}

int collective_verify(const struct collective_call *call, const void *recv,
		      struct collective_error *error)
{
	size_t bytes = collective_recv_bytes(call), at;
	int from, to, err = 0;

	if (bytes == 0)
		return 0;
	if (oci_is_reduction(call->collective))
		return floats_verify(call, recv, error);
	/* A block for each rank is addressed; the others send everyone the same. */
	to = oci_sends_each(call->collective) ? call->rank : 0;
	from = oci_is_rooted(call->collective) && !oci_receives_each(call->collective) ?
		       call->root :
		       0;
	for (at = 0; at < bytes && !err; at += call->bytes, from++) {
		err = pattern_verify((const unsigned char *)recv + at, call->bytes,
				     block_key(call, from, to), at, error);
	}
	return err;
}
