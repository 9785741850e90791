/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pushed: large messages of which the sender may copy its part. To and fro with wildcards and
 * buffers that are written over at once; while the sender computes, with and without MPI_Test in
 * between; and both ways at once. `few`: less in all than it takes to begin with that. Every byte
 * is checked. Rank 0 prints "ranks 2".
 */
#include "case.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3 << 20, GUARD = 64, ROUNDS = 400, TAG = 3 };
/* So large that the first ones would be shared; either rank reads less than 8 MiB in all. */
enum { FEW_BYTES = 2 << 20, FEW_ROUNDS = 6 };
enum { STEP = 31, NOISE = MOST + 2 * ROUNDS * STEP };

static uint8_t *out, *in;
static uint8_t *noise; /* each message is another part of it */
static int rank;
static bool few;

static const uint8_t *message(int from, int round)
{
	return noise + (from * ROUNDS + round) * STEP;
}

static void make_noise(void)
{
	uint32_t last = 1;

	for (size_t i = 0; i < NOISE; i++) {
		last = last * 1664525 + 1013904223;
		noise[i] = (uint8_t)(last >> 24);
	}
}

static size_t bytes_of(int round)
{
	return few ? FEW_BYTES :
		     (size_t)(100000 + (unsigned int)round * 7919u * 331u % (MOST - 100000));
}

static void fill(int round)
{
	memcpy(out, message(rank, round), bytes_of(round));
}

static void check(int round)
{
	const uint8_t *sent = message(1 - rank, round);
	size_t bytes = bytes_of(round);

	if (memcmp(in + GUARD, sent, bytes))
		for (size_t i = 0; i < bytes; i++)
			if (in[GUARD + i] != sent[i])
				case_fail("round %d: byte %zu of %zu is wrong", round, i, bytes);
	for (size_t i = 0; i < GUARD; i++)
		if (in[i] != 0xa5 || in[GUARD + bytes + i] != 0xa5)
			case_fail("round %d: bytes around the message were written", round);
	memset(in, 0xa5, bytes + 2 * GUARD);
}

static void receive(int round)
{
	MPI_Recv(in + GUARD, (int)bytes_of(round) + (round % 3 ? 0 : 1), MPI_BYTE,
		 round % 2 ? MPI_ANY_SOURCE : 1 - rank, round % 3 ? TAG : MPI_ANY_TAG,
		 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(round);
}

/* Some work. */
static void compute(unsigned int turns)
{
	for (volatile unsigned int i = 0; i < turns; i++)
		;
}

static void send(int round)
{
	MPI_Request request;
	int done = 0;

	fill(round);
	if (few || round % 4 < 2) {
		MPI_Send(out, (int)bytes_of(round), MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD);
	} else {
		MPI_Isend(out, (int)bytes_of(round), MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD,
			  &request);
		compute((unsigned int)round * 500);
		while (!done && round % 4 == 3) {
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
			compute(3000);
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	memset(out, 0, bytes_of(round));
}

static void exchange(int round)
{
	int bytes = (int)bytes_of(round);

	fill(round);
	MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, TAG, in + GUARD, bytes, MPI_BYTE, 1 - rank,
		     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memset(out, 0, bytes_of(round));
	check(round);
}

int main(int argc, char **argv)
{
	int ranks;

	case_begin(&argc, &argv, &rank, &ranks);
	if (ranks != 2)
		case_fail("pushed needs 2 ranks");
	out = malloc(MOST);
	in = malloc(MOST + 2 * GUARD);
	noise = malloc(NOISE);
	if (!out || !in || !noise)
		case_fail("no memory");
	few = argc > 1 && !strcmp(argv[1], "few");
	make_noise();
	memset(in, 0xa5, MOST + 2 * GUARD);
	for (int round = 0; round < (few ? FEW_ROUNDS : ROUNDS); round++) {
		if (!few && round % 5 == 4)
			exchange(round);
		else if (round % 2 == rank)
			send(round);
		else
			receive(round);
	}
	free(out);
	free(in);
	free(noise);
	return case_end("pushed: ranks %d", ranks);
}
