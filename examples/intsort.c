// SPDX-License-Identifier: BSD-3-Clause
/*
 * Integer sort: keys are ranked by buckets, as the kernel IS of the NAS Parallel Benchmarks does
 * it.
 *
 * Every rank holds a share of the keys. In an iteration it counts them by buckets, the counts are
 * summed over all ranks (Allreduce), each rank is given a range of buckets so that the shares stay
 * about equal, the ranks tell each other how many keys will come (Alltoall) and exchange the keys
 * themselves (Alltoallv: nearly all bytes of the program); at last each ranks the keys of its range
 * by counting. Papers on large messages inside a node judge by IS, because its messages are the
 * largest of the NAS programs. The code is our own; the classes are those of NAS.
 *
 * Verified in each iteration, outside of the timed part: the keys are in order within each rank and
 * from rank to rank, and they are those that were made, by two sums over the multiset. Each
 * iteration sorts other keys, a pure function of (seed, iteration, number), so bytes that an
 * earlier one left behind are wrong. What the verdict needs travels by MPI_Send: a broken
 * collective cannot vouch for itself.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define BUCKET_BITS 10
#define BUCKETS (1 << BUCKET_BITS)
#define MAX_ITERATIONS 10000

static const struct class
{
	char letter;
	int keys_bits, range_bits; /* 2^n keys, each below 2^m */
} classes[] = {
	{ 'S', 16, 11 }, { 'W', 20, 16 }, { 'A', 23, 19 }, { 'B', 25, 21 }, { 'C', 27, 23 },
};

struct options {
	const struct class *class;
	uint64_t seed;
	int iterations;
	bool json;
	bool help;
};

struct report {
	double total_s, comm_s, exchange_s;
	uint64_t exchange_bytes;   /* that this rank sent to others */
	uint64_t sum[2];	   /* of the multiset: made, and sorted; over all iterations */
	uint64_t squares[2];	   /* once more, by another function */
	uint64_t checksum;	   /* of keys and their places */
	uint64_t made, sorted;	   /* keys */
	uint64_t wrong;		   /* keys that are out of order or of another rank's range */
	uint64_t wrong_iterations; /* at rank 0 */
};

struct sorter {
	const struct options *opt;
	int rank, ranks;
	size_t first, count;  /* of my keys among all */
	int *keys;	      /* mine, as they were made */
	int *by_bucket;	      /* and in the order of their buckets */
	int *received;	      /* those of my range */
	size_t received_room; /* keys */
	size_t received_count;
	int *below;		    /* [range + 1]: how many of them are below a key of my range */
	int range_first, range_end; /* my keys */
	int *send_counts, *send_starts, *recv_counts, *recv_starts; /* by rank */
	int sizes[BUCKETS], sums[BUCKETS];
};

static size_t first_key(const struct options *opt, int ranks, int rank)
{
	return (((size_t)rank << opt->class->keys_bits) + (size_t)ranks - 1) / (size_t)ranks;
}

/* The mean of four uniform numbers, as in IS: most keys are near the middle of the range. */
static int make_key(const struct options *opt, int iteration, size_t number)
{
	uint64_t h =
		mix((opt->seed << 44 ^ (uint64_t)iteration << 30 ^ number) * 0x9e3779b97f4a7c15ULL +
		    0x632be59bd9b4e019ULL);
	uint64_t sum = (h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48);

	/* 18 bits; what a larger range needs below them comes from another number. */
	return (int)(((sum << 13) + (mix(h) & 0x1fff)) >> (31 - opt->class->range_bits));
}

static void make_keys(struct sorter *s, int iteration, struct report *report)
{
	for (size_t i = 0; i < s->count; i++) {
		uint64_t key;

		s->keys[i] = make_key(s->opt, iteration, s->first + i);
		key = (uint64_t)s->keys[i] + 1;
		report->sum[0] += mix(key);
		report->squares[0] += key * key;
	}
	report->made += s->count;
}

/* Counts, and lays the keys out bucket by bucket: what goes to one rank then lies in one piece. */
static void fill_buckets(struct sorter *s)
{
	int shift = s->opt->class->range_bits - BUCKET_BITS;
	int next[BUCKETS], at = 0;

	memset(s->sizes, 0, sizeof(s->sizes));
	for (size_t i = 0; i < s->count; i++)
		s->sizes[s->keys[i] >> shift]++;
	for (int b = 0; b < BUCKETS; b++) {
		next[b] = at;
		at += s->sizes[b];
	}
	for (size_t i = 0; i < s->count; i++)
		s->by_bucket[next[s->keys[i] >> shift]++] = s->keys[i];
}

/*
 * Gives each rank the next buckets, until it and those before it have their part of the keys. Alike
 * on all ranks, as the sums are.
 */
static void share_buckets(struct sorter *s)
{
	int shift = s->opt->class->range_bits - BUCKET_BITS;
	uint64_t total = 1ULL << s->opt->class->keys_bits, before = 0;
	int bucket = 0, at = 0;

	for (int r = 0; r < s->ranks; r++) {
		uint64_t until = total * (uint64_t)(r + 1) / (uint64_t)s->ranks;
		int first = bucket;

		s->send_starts[r] = at;
		while (bucket < BUCKETS && (before < until || r == s->ranks - 1)) {
			before += (uint64_t)s->sums[bucket];
			at += s->sizes[bucket++];
		}
		s->send_counts[r] = at - s->send_starts[r];
		if (r == s->rank) {
			s->range_first = first << shift;
			s->range_end = bucket << shift;
		}
	}
}

static bool make_room(struct sorter *s)
{
	size_t count = 0;

	for (int r = 0; r < s->ranks; r++) {
		s->recv_starts[r] = (int)count;
		count += (size_t)s->recv_counts[r];
	}
	s->received_count = count;
	if (count <= s->received_room)
		return true;
	free(s->received);
	s->received = malloc(count * sizeof(*s->received));
	s->received_room = s->received ? count : 0;
	return s->received;
}

/* Rank of a key = how many keys of all are below it; here, of those in my range. */
static void rank_keys(struct sorter *s, struct report *report)
{
	size_t range = (size_t)(s->range_end - s->range_first);

	memset(s->below, 0, (range + 1) * sizeof(*s->below));
	for (size_t i = 0; i < s->received_count; i++) {
		/* In one comparison; a key that came to the wrong rank must not write elsewhere. */
		size_t place = (size_t)(unsigned int)(s->received[i] - s->range_first);

		if (place < range)
			s->below[place + 1]++;
		else
			report->wrong++;
	}
	for (size_t k = 1; k <= range; k++)
		s->below[k] += s->below[k - 1];
}

static bool sort_keys(struct sorter *s, struct report *report)
{
	double begin = MPI_Wtime(), comm, exchange;

	fill_buckets(s);
	comm = MPI_Wtime();
	MPI_Allreduce(s->sizes, s->sums, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	report->comm_s += MPI_Wtime() - comm;
	share_buckets(s);
	comm = MPI_Wtime();
	MPI_Alltoall(s->send_counts, 1, MPI_INT, s->recv_counts, 1, MPI_INT, MPI_COMM_WORLD);
	report->comm_s += MPI_Wtime() - comm;
	if (!make_room(s))
		return false;
	exchange = MPI_Wtime();
	MPI_Alltoallv(s->by_bucket, s->send_counts, s->send_starts, MPI_INT, s->received,
		      s->recv_counts, s->recv_starts, MPI_INT, MPI_COMM_WORLD);
	exchange = MPI_Wtime() - exchange;
	report->comm_s += exchange;
	report->exchange_s += exchange;
	rank_keys(s, report);
	report->total_s += MPI_Wtime() - begin;
	report->exchange_bytes += (s->count - (size_t)s->send_counts[s->rank]) * sizeof(int);
	return true;
}

/*
 * Puts the keys where their ranks say and looks at the result. What lies before my range comes from
 * the rank before me.
 */
static void verify(struct sorter *s, struct report *report)
{
	struct {
		uint64_t keys;
		int64_t last;
	} before = { 0, -1 };
	size_t range = (size_t)(s->range_end - s->range_first);
	int *sorted = malloc((s->received_count + 1) * sizeof(*sorted));

	if (!sorted) {
		fprintf(stderr, "intsort: rank %d: no memory to verify\n", s->rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return;
	}
	/* A place that stays without a key is out of order, or not of the multiset. */
	memset(sorted, 0xff, s->received_count * sizeof(*sorted));
	for (size_t i = 0; i < s->received_count; i++) {
		size_t place = (size_t)(unsigned int)(s->received[i] - s->range_first);

		if (place < range)
			sorted[s->below[place]++] = s->received[i];
	}
	if (s->rank)
		MPI_Recv(&before, sizeof(before), MPI_BYTE, s->rank - 1, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	for (size_t i = 0; i < s->received_count; i++) {
		uint64_t key = (uint64_t)(int64_t)sorted[i] + 1;

		report->wrong += sorted[i] < before.last;
		before.last = sorted[i];
		report->sum[1] += mix(key);
		report->squares[1] += key * key;
		report->checksum += mix(++before.keys * 0x9e3779b97f4a7c15ULL + key);
	}
	if (s->rank < s->ranks - 1)
		MPI_Send(&before, sizeof(before), MPI_BYTE, s->rank + 1, 1, MPI_COMM_WORLD);
	report->sorted += s->received_count;
	free(sorted);
}

static void add_report(struct report *all, const struct report *one)
{
	all->total_s = one->total_s > all->total_s ? one->total_s : all->total_s;
	all->comm_s += one->comm_s;
	all->exchange_s += one->exchange_s;
	all->exchange_bytes += one->exchange_bytes;
	for (int i = 0; i < 2; i++) {
		all->sum[i] += one->sum[i];
		all->squares[i] += one->squares[i];
	}
	all->checksum += one->checksum;
	all->made += one->made;
	all->sorted += one->sorted;
	all->wrong += one->wrong;
}

static bool is_right(const struct report *r)
{
	return !r->wrong && r->made == r->sorted && r->sum[0] == r->sum[1] &&
	       r->squares[0] == r->squares[1];
}

/* At rank 0 the reports of all; elsewhere mine. One an iteration, so that what is wrong in two of
 * them cannot be right in sum. */
static struct report gather_reports(const struct sorter *s, const struct report *mine)
{
	struct report all = *mine;

	if (s->rank) {
		MPI_Send(mine, sizeof(*mine), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		return all;
	}
	for (int r = 1; r < s->ranks; r++) {
		struct report one;

		MPI_Recv(&one, sizeof(one), MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		add_report(&all, &one);
	}
	if (!is_right(&all))
		fprintf(stderr,
			"intsort: %llu keys out of place, %llu keys of %llu, the same keys: %s\n",
			(unsigned long long)all.wrong, (unsigned long long)all.sorted,
			(unsigned long long)all.made, all.sum[0] == all.sum[1] ? "yes" : "NO");
	all.wrong_iterations = !is_right(&all);
	return all;
}

static void print_report(const struct options *opt, int ranks, const struct report *r)
{
	double keys = (double)(1ULL << opt->class->keys_bits) * opt->iterations;

	if (opt->json) {
		printf("{\"program\":\"intsort\",\"class\":\"%c\",\"seed\":%llu,\"ranks\":%d,"
		       "\"iterations\":%d,\"total_s\":%.9f,\"mpi_s\":%.9f,"
		       "\"exchange_s\":%.9f,\"exchange_bytes\":%llu,\"mkeys_per_s\":%.6f,"
		       "\"checksum\":\"%016llx\",\"verified\":%s}\n",
		       opt->class->letter, (unsigned long long)opt->seed, ranks, opt->iterations,
		       r->total_s, r->comm_s / ranks, r->exchange_s / ranks,
		       (unsigned long long)r->exchange_bytes, 1e-6 * keys / r->total_s,
		       (unsigned long long)r->checksum, r->wrong_iterations ? "false" : "true");
		return;
	}
	printf("intsort: class %c, 2^%d keys below 2^%d, %d iterations, seed %llu, %d ranks\n",
	       opt->class->letter, opt->class->keys_bits, opt->class->range_bits, opt->iterations,
	       (unsigned long long)opt->seed, ranks);
	printf("total time       %10.4f s, %.2f million keys a second\n", r->total_s,
	       1e-6 * keys / r->total_s);
	printf("in collectives   %10.4f s on average of the ranks\n", r->comm_s / ranks);
	printf("in MPI_Alltoallv %10.4f s on average, %.1f MiB to other ranks\n",
	       r->exchange_s / ranks, (double)r->exchange_bytes / (1 << 20));
	printf("checksum         %016llx\n", (unsigned long long)r->checksum);
	if (r->wrong_iterations)
		printf("verified: NO, in %llu iterations of %d\n",
		       (unsigned long long)r->wrong_iterations, opt->iterations);
	else
		printf("verified: yes, order and multiset of the keys in all %d iterations\n",
		       opt->iterations);
}

static bool sorter_create(struct sorter *s)
{
	size_t ranks = (size_t)s->ranks;

	s->first = first_key(s->opt, s->ranks, s->rank);
	s->count = first_key(s->opt, s->ranks, s->rank + 1) - s->first;
	s->received_room = s->count + s->count / 2 + 1;
	s->keys = malloc((s->count + 1) * sizeof(int));
	s->by_bucket = malloc((s->count + 1) * sizeof(int));
	s->received = malloc(s->received_room * sizeof(int));
	s->below = malloc(((1ULL << s->opt->class->range_bits) + 1) * sizeof(int));
	s->send_counts = calloc(4 * ranks, sizeof(int));
	if (!s->keys || !s->by_bucket || !s->received || !s->below || !s->send_counts)
		return false;
	s->send_starts = s->send_counts + ranks;
	s->recv_counts = s->send_starts + ranks;
	s->recv_starts = s->recv_counts + ranks;
	/* No iteration pays for a page's first use. */
	memset(s->by_bucket, 0, (s->count + 1) * sizeof(int));
	memset(s->received, 0, s->received_room * sizeof(int));
	return true;
}

static void sorter_destroy(struct sorter *s)
{
	free(s->keys);
	free(s->by_bucket);
	free(s->received);
	free(s->below);
	free(s->send_counts);
}

static int run(const struct options *opt, int rank, int ranks)
{
	struct sorter s = { .opt = opt, .rank = rank, .ranks = ranks };
	struct report total = { 0 };

	if (!sorter_create(&s)) {
		fprintf(stderr, "intsort: rank %d: no memory; try a smaller --class\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	/* One before those that count, as in IS: connections are made, pages are there. */
	for (int i = 0; i <= opt->iterations; i++) {
		struct report mine = { 0 };
		double before_s = total.total_s;

		make_keys(&s, i, &mine);
		MPI_Barrier(MPI_COMM_WORLD);
		if (!sort_keys(&s, &mine)) {
			fprintf(stderr, "intsort: rank %d: no memory for %zu keys\n", rank,
				s.received_count);
			MPI_Abort(MPI_COMM_WORLD, 1);
			return 1;
		}
		verify(&s, &mine);
		mine = gather_reports(&s, &mine);
		total.wrong_iterations += mine.wrong_iterations;
		if (!i)
			continue;
		add_report(&total, &mine);
		/* The slowest rank's of each iteration, one after the other. */
		total.total_s = before_s + mine.total_s;
	}
	if (!rank)
		print_report(opt, ranks, &total);
	sorter_destroy(&s);
	return total.wrong_iterations ? 1 : 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: mpirun -n RANKS intsort [--class S|W|A|B|C] [--iterations N] [--seed S]\n"
		"                               [--json]\n"
		"Sorts integers by buckets, as IS of the NAS Parallel Benchmarks does; order and\n"
		"multiset are verified. Exit status 1 if they are wrong, 2 for a bad option.\n"
		"  --class C       2^16, 2^20, 2^23, 2^25 or 2^27 keys for S to C (default A)\n"
		"  --iterations N  1 to 10000 (default 10), each with other keys\n"
		"  --seed S        of the keys (default 1)\n"
		"  --json          one line of JSON instead of text\n");
}

static const struct class *class = &classes[2];

static bool parse_class(const char *text)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (text[0] != classes[i].letter || text[1])
			continue;
		class = &classes[i];
		return true;
	}
	if (opterr)
		fprintf(stderr, "intsort: --class: '%s' is not S, W, A, B or C\n", text);
	return false;
}

static bool parse(int argc, char **argv, bool talk, struct options *opt)
{
	uint64_t iterations = (uint64_t)opt->iterations;
	const struct known_option known[] = {
		{ "class", .take = parse_class },
		{ "iterations", .number = &iterations, .min = 1, .max = MAX_ITERATIONS },
		{ "seed", .number = &opt->seed, .max = 1 << 20 },
		{ "json", .flag = &opt->json },
		{ "help", .flag = &opt->help },
		{ 0 },
	};
	bool right = parse_options(argc, argv, talk, known);

	opt->class = class;
	opt->iterations = (int)iterations;
	return right;
}

int main(int argc, char **argv)
{
	struct options opt = { .seed = 1, .iterations = 10 };
	int rank, ranks, status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	if (!parse(argc, argv, rank == 0, &opt)) {
		if (rank == 0)
			usage(stderr);
		status = 2;
	} else if (opt.help) {
		if (rank == 0)
			usage(stdout);
		status = 0;
	} else {
		status = run(&opt, rank, ranks);
	}
	MPI_Finalize();
	return status;
}
