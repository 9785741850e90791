// SPDX-License-Identifier: BSD-3-Clause
/*
 * Train: texts are sorted by topic; all ranks learn together how, and the sum of their gradients is
 * under way while the next ones are computed.
 *
 * In each step a rank takes a few of its own texts and works out how the weights should change; an
 * MPI_Iallreduce adds that up over the ranks, and is waited for a step later, so gradients are of
 * weights that are one step old (Y. Li and others, "Pipe-SGD: A Decentralized Pipelined SGD
 * Framework for Distributed Deep Net Training", 2018; the code is our own). Texts are as long as
 * texts are: some a hundred times as long as others. So now one rank is ahead, now another, and a
 * sum that stands still while one of them computes holds up the other. With --blocking the same
 * sums are made by MPI_Allreduce at the same places: the weights are the same, bit for bit.
 *
 * Gradients are sent as integers, so their sums are exact in any order. Of each vector that a rank
 * sends or receives it keeps a hash that is linear modulo 2^32 with odd factors: the hashes of what
 * all sent add up to that of what each received, in every step, and one wrong number always shows.
 * Verdicts and times travel by MPI_Send: a broken collective cannot vouch for itself.
 */
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { WORDS = 256, TOPICS = 16, WEIGHTS = WORDS * TOPICS };
/* Of a rank: texts that it learns from, again and again, and those that it is asked about. */
enum { TEXTS = 256, ASKED = 64, SHORTEST = 64, LONGER_BY_BITS = 7, BATCH_MOST = 64 };
#define UNIT 65536.0F /* of a gradient, which is at most BATCH_MOST; the sum of 256 ranks fits */
#define RATE 4.0F
#define RANKS_MOST 256

struct options {
	uint64_t batch, steps;
	bool blocking, json, help;
};

struct text {
	const uint16_t *words;
	size_t length;
	int topic;
};

struct learner {
	struct text text[TEXTS + ASKED];
	uint16_t *words;
	float weights[WEIGHTS], gradient[WEIGHTS];
	/* By turns: what one step sends and receives while the next one computes. */
	int32_t mine[2][WEIGHTS], sum[2][WEIGHTS];
	MPI_Request request[2];
	uint32_t factor[WEIGHTS];
	uint32_t *sent, *received; /* [steps] hashes */
};

struct report {
	double total_s, mpi_s;
	uint64_t weights; /* a hash of all of them */
	int right;	  /* answers */
};

/* ---- texts ------------------------------------------------------------------------------------
 */

/* A number that is a function of all these alone. */
static uint64_t draw(int rank, int text, size_t word)
{
	return mix(((uint64_t)rank * (TEXTS + ASKED) + (uint64_t)text + 1) * 0x9e3779b97f4a7c15ULL +
		   mix(word + 1));
}

/* Of every order of magnitude alike. */
static size_t length_of(int rank, int text)
{
	double part = (double)(draw(rank, text, SIZE_MAX - 1) >> 11) / 9007199254740992.0;

	return (size_t)(SHORTEST * exp2(LONGER_BY_BITS * part));
}

/* A quarter of a text's words are its topic's own. */
static bool write_texts(struct learner *l, int rank)
{
	size_t all = 0;
	uint16_t *at;

	for (int t = 0; t < TEXTS + ASKED; t++)
		all += l->text[t].length = length_of(rank, t);
	at = l->words = malloc(all * sizeof(*at));
	for (int t = 0; at && t < TEXTS + ASKED; t++) {
		struct text *text = &l->text[t];

		text->topic = (int)(draw(rank, t, SIZE_MAX) % TOPICS);
		text->words = at;
		for (size_t w = 0; w < text->length; w++) {
			uint64_t number = draw(rank, t, w);
			unsigned int own = (unsigned int)text->topic * (WORDS / TOPICS) +
					   (unsigned int)(number >> 8) % (WORDS / TOPICS);

			*at++ = (uint16_t)(number % 4 ? (number >> 8) % WORDS : own);
		}
	}
	return at != NULL;
}

/* ---- learning ---------------------------------------------------------------------------------
 */

/* How likely the text is of each topic, by the weights. */
static void judge(const struct learner *l, const struct text *text, float likely[TOPICS])
{
	float score[TOPICS] = { 0 }, largest, all = 0;

	for (size_t w = 0; w < text->length; w++) {
		const float *weights = l->weights + (size_t)text->words[w] * TOPICS;

		for (int t = 0; t < TOPICS; t++)
			score[t] += weights[t];
	}
	largest = score[0];
	for (int t = 1; t < TOPICS; t++)
		largest = score[t] > largest ? score[t] : largest;
	for (int t = 0; t < TOPICS; t++)
		all += likely[t] = expf((score[t] - largest) / (float)text->length);
	for (int t = 0; t < TOPICS; t++)
		likely[t] /= all;
}

/* What these texts would have the weights be less, as integers. */
static void find_gradient(struct learner *l, uint64_t step, uint64_t batch, int32_t *mine)
{
	memset(l->gradient, 0, sizeof(l->gradient));
	for (uint64_t i = 0; i < batch; i++) {
		const struct text *text = &l->text[(step * batch + i) % TEXTS];
		float wrong[TOPICS];

		judge(l, text, wrong);
		wrong[text->topic] -= 1;
		for (int t = 0; t < TOPICS; t++)
			wrong[t] /= (float)text->length;
		for (size_t w = 0; w < text->length; w++) {
			float *gradient = l->gradient + (size_t)text->words[w] * TOPICS;

			for (int t = 0; t < TOPICS; t++)
				gradient[t] += wrong[t];
		}
	}
	for (int i = 0; i < WEIGHTS; i++)
		mine[i] = (int32_t)(l->gradient[i] * UNIT);
}

static uint32_t hash_of(const struct learner *l, const int32_t *vector)
{
	uint32_t hash = 0;

	for (int i = 0; i < WEIGHTS; i++)
		hash += (uint32_t)vector[i] * l->factor[i];
	return hash;
}

static void apply(struct learner *l, const int32_t *sum, float rate)
{
	for (int i = 0; i < WEIGHTS; i++)
		l->weights[i] -= rate * (float)sum[i];
}

static void learn(struct learner *l, const struct options *opt, int ranks, struct report *report)
{
	float rate = RATE / (UNIT * (float)opt->batch * (float)ranks);
	double began = MPI_Wtime();

	for (uint64_t step = 0; step <= opt->steps; step++) {
		int now = step % 2, before = !now;
		double start;

		if (step < opt->steps) {
			find_gradient(l, step, opt->batch, l->mine[now]);
			l->sent[step] = hash_of(l, l->mine[now]);
		}
		start = MPI_Wtime();
		if (step < opt->steps && opt->blocking)
			MPI_Allreduce(l->mine[now], l->sum[now], WEIGHTS, MPI_INT, MPI_SUM,
				      MPI_COMM_WORLD);
		else if (step < opt->steps)
			MPI_Iallreduce(l->mine[now], l->sum[now], WEIGHTS, MPI_INT, MPI_SUM,
				       MPI_COMM_WORLD, &l->request[now]);
		MPI_Wait(&l->request[before], MPI_STATUS_IGNORE);
		report->mpi_s += MPI_Wtime() - start;
		if (step) {
			l->received[step - 1] = hash_of(l, l->sum[before]);
			apply(l, l->sum[before], rate);
		}
	}
	report->total_s = MPI_Wtime() - began;
}

static void ask(const struct learner *l, struct report *report)
{
	uint64_t hash = 0;

	for (int t = TEXTS; t < TEXTS + ASKED; t++) {
		float likely[TOPICS];
		int best = 0;

		judge(l, &l->text[t], likely);
		for (int i = 1; i < TOPICS; i++)
			best = likely[i] > likely[best] ? i : best;
		report->right += best == l->text[t].topic;
	}
	for (int i = 0; i < WEIGHTS; i++) {
		uint32_t bits;

		memcpy(&bits, &l->weights[i], sizeof(bits));
		hash = mix(hash + bits + 0x9e3779b97f4a7c15ULL);
	}
	report->weights = hash;
}

/* ---- what came of it --------------------------------------------------------------------------
 */

/* Rank 0, of all: whether every sum was right, on every rank. `all` are rank 0's own, then added
 * to. */
static bool verify(struct learner *l, const struct options *opt, int ranks, struct report *all)
{
	size_t steps = opt->steps;
	uint32_t *expected = malloc(steps * sizeof(*expected)),
		 *received = malloc((size_t)ranks * steps * sizeof(*received));
	bool right = expected && received;

	if (!right)
		fprintf(stderr, "train: no memory to verify so many steps\n");
	for (size_t s = 0; right && s < steps; s++) {
		expected[s] = l->sent[s];
		received[s] = l->received[s];
	}
	for (int r = 1; expected && received && r < ranks; r++) {
		struct report theirs;

		MPI_Recv(l->sent, (int)steps, MPI_UNSIGNED, r, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Recv(received + (size_t)r * steps, (int)steps, MPI_UNSIGNED, r, 1,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, r, 2, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (size_t s = 0; s < steps; s++)
			expected[s] += l->sent[s];
		all->total_s = fmax(all->total_s, theirs.total_s);
		all->mpi_s += theirs.mpi_s;
		all->right += theirs.right;
		if (theirs.weights != all->weights) {
			fprintf(stderr, "train: ranks 0 and %d have learned different weights\n",
				r);
			right = false;
		}
	}
	for (size_t i = 0; right && i < (size_t)ranks * steps; i++)
		if (received[i] != expected[i % steps]) {
			fprintf(stderr, "train: rank %zu: the sum of step %zu is wrong\n",
				i / steps, i % steps);
			right = false;
		}
	all->mpi_s /= ranks;
	free(expected);
	free(received);
	return right;
}

static void print_report(const struct options *opt, int ranks, const struct report *all, bool right)
{
	const char *form = opt->blocking ? "blocking" : "nonblocking";
	double answers = 100.0 * all->right / (ASKED * ranks);

	if (opt->json) {
		printf("{\"program\":\"train\",\"batch\":%d,\"steps\":%d,\"ranks\":%d,"
		       "\"sums\":\"%s\",\"total_s\":%.9f,\"mpi_s\":%.9f,\"right_percent\":%.1f,"
		       "\"checksum\":\"%016llx\",\"verified\":%s}\n",
		       (int)opt->batch, (int)opt->steps, ranks, form, all->total_s, all->mpi_s,
		       answers, (unsigned long long)all->weights, right ? "true" : "false");
		return;
	}
	printf("train: %d steps of %d texts a rank, sums of %d numbers, %d ranks, %s\n",
	       (int)opt->steps, (int)opt->batch, WEIGHTS, ranks, form);
	printf("total time       %10.4f s\n", all->total_s);
	printf("in MPI           %10.4f s on average of the ranks\n", all->mpi_s);
	printf("%.1f %% of %d texts that were not learned from are sorted right\n", answers,
	       ASKED * ranks);
	printf("checksum         %016llx\n", (unsigned long long)all->weights);
	if (right)
		printf("verified: yes, every sum of every step is right on every rank\n");
	else
		printf("verified: NO, a sum or a weight is wrong\n");
}

static int run(const struct options *opt, int rank, int ranks)
{
	struct learner *l = calloc(1, sizeof(*l));
	struct report report = { 0 };
	bool right = true;

	if (l) {
		l->sent = malloc(opt->steps * sizeof(*l->sent));
		l->received = malloc(opt->steps * sizeof(*l->received));
	}
	if (!l || !l->sent || !l->received || !write_texts(l, rank)) {
		fprintf(stderr, "train: rank %d: no memory; try fewer --steps\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	for (int i = 0; i < WEIGHTS; i++)
		l->factor[i] = (uint32_t)mix((uint64_t)i + 1) | 1;
	l->request[0] = l->request[1] = MPI_REQUEST_NULL;
	MPI_Barrier(MPI_COMM_WORLD);
	learn(l, opt, ranks, &report);
	ask(l, &report);
	if (rank) {
		MPI_Send(l->sent, (int)opt->steps, MPI_UNSIGNED, 0, 0, MPI_COMM_WORLD);
		MPI_Send(l->received, (int)opt->steps, MPI_UNSIGNED, 0, 1, MPI_COMM_WORLD);
		MPI_Send(&report, sizeof(report), MPI_BYTE, 0, 2, MPI_COMM_WORLD);
	} else {
		right = verify(l, opt, ranks, &report);
		print_report(opt, ranks, &report, right);
	}
	free(l->words);
	free(l->sent);
	free(l->received);
	free(l);
	return right ? 0 : 1;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: mpirun -n RANKS train [--batch N] [--steps N] [--blocking] [--json]\n"
		"Sorting texts by topic is learned by all ranks, the sum of a step's gradients being\n"
		"under way while the next ones are computed; every sum is verified. Exit status 1 if\n"
		"one is wrong, 2 for a bad option.\n"
		"  --batch N   texts of each rank in a step, 1 to 64 (default 2)\n"
		"  --steps N   1 to 1000000 (default 3000)\n"
		"  --blocking  the same sums by MPI_Allreduce, for comparison\n"
		"  --json      one line of JSON instead of text\n");
}

int main(int argc, char **argv)
{
	struct options opt = { .batch = 2, .steps = 3000 };
	const struct known_option known[] = {
		{ "batch", .number = &opt.batch, .min = 1, .max = BATCH_MOST },
		{ "steps", .number = &opt.steps, .min = 1, .max = 1000000 },
		{ "blocking", .flag = &opt.blocking },
		{ "json", .flag = &opt.json },
		{ "help", .flag = &opt.help },
		{ 0 },
	};
	int rank, ranks, status = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	/* Each rank reads the same arguments; only rank 0 talks. */
	if (!parse_options(argc, argv, rank == 0, known) || ranks > RANKS_MOST) {
		if (rank == 0 && ranks > RANKS_MOST)
			fprintf(stderr, "train: sums of more than %d ranks do not fit an int\n",
				RANKS_MOST);
		else if (rank == 0)
			usage(stderr);
		status = 2;
	} else if (opt.help) {
		if (rank == 0)
			usage(stdout);
	} else {
		status = run(&opt, rank, ranks);
	}
	MPI_Finalize();
	return status;
}
