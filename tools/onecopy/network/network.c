/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy-network-MPI: what messages between two ranks take, for `onecopy tune --network`. Rank 0
 * prints, in seconds:
 *
 *	half BYTES S	one way of a message, half of there and back
 *	send S		MPI_Send of a byte to a rank that waits
 *	receive S	MPI_Recv of a byte that is there
 *	gap S		between two of many messages of a byte
 *	eager BYTES	the largest power of two that MPI_Send gives away before its receiver asks
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/harness/clock.h"
#include "lab/harness/stats.h"

enum { SAMPLES = 400, FEW = 60, BURST = 200, LARGEST = 4 << 20, APART_US = 3000, TAG = 1 };

static const int sizes[] = { 1, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, LARGEST };

static int rank;
static char *buffer;

static void send(int bytes)
{
	MPI_Send(buffer, bytes, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD);
}

static void receive(int bytes)
{
	MPI_Recv(buffer, bytes, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Outside of the MPI. */
static void stay_away(double us)
{
	double end = now_us() + us;

	while (now_us() < end)
		;
}

static double half_us(int bytes)
{
	int samples = bytes > 64 << 10 ? FEW : SAMPLES;
	double us[SAMPLES];

	for (int i = -samples / 10; i < samples; i++) {
		double begin = now_us();

		if (!rank)
			send(bytes);
		receive(bytes);
		if (rank)
			send(bytes);
		if (i >= 0)
			us[i] = (now_us() - begin) / 2;
	}
	return stats_median(us, (size_t)samples);
}

/* The other one waits for it, and says when it is there. */
static double send_us(void)
{
	double us[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		if (!rank) {
			double begin = now_us();

			send(1);
			us[i] = now_us() - begin;
			receive(1);
		} else {
			receive(1);
			send(1);
		}
	}
	return stats_median(us, SAMPLES);
}

/* It is asked for long after it was sent. */
static double receive_us(void)
{
	double us[FEW];

	for (int i = 0; i < FEW; i++) {
		if (!rank) {
			double begin;

			send(1);
			stay_away(APART_US / 3);
			begin = now_us();
			receive(1);
			us[i] = now_us() - begin;
		} else {
			receive(1);
			send(1);
		}
	}
	return stats_median(us, FEW);
}

static double gap_us(void)
{
	double us[FEW];

	for (int i = 0; i < FEW; i++) {
		double begin = now_us(), first = 0;

		for (int m = 0; m < BURST; m++) {
			if (!rank)
				send(1);
			else
				receive(1);
			if (!m)
				first = now_us();
		}
		/* What the receiver sees counts. */
		us[i] = (now_us() - (rank ? first : begin)) / (BURST - rank);
		if (!rank)
			receive(sizeof(double));
		else
			send(sizeof(double));
	}
	us[0] = stats_median(us, FEW);
	if (rank)
		MPI_Send(us, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
	else
		MPI_Recv(us, 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return us[0];
}

/* Does it return before the receiver asks? */
static int is_given_away(int bytes)
{
	int given = 0;

	for (int i = 0; i < 3; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (!rank) {
			double begin = now_us();

			send(bytes);
			given += now_us() - begin < APART_US / 2;
		} else {
			stay_away(APART_US);
			receive(bytes);
		}
	}
	return given > 1;
}

static void print(void)
{
	int eager = 0;
	double us;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		us = half_us(sizes[i]);
		if (!rank)
			printf("half %d %.9g\n", sizes[i], 1e-6 * us);
	}
	us = send_us();
	if (!rank)
		printf("send %.9g\n", 1e-6 * us);
	us = receive_us();
	if (!rank)
		printf("receive %.9g\n", 1e-6 * us);
	us = gap_us();
	if (!rank)
		printf("gap %.9g\n", 1e-6 * us);
	for (int bytes = 256; bytes <= LARGEST; bytes *= 2)
		if (is_given_away(bytes))
			eager = bytes;
	if (!rank)
		printf("eager %d\n", eager);
}

int main(int argc, char **argv)
{
	char own[256] = "", other[256] = "";
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	buffer = calloc(1, LARGEST);
	if (ranks != 2 || !buffer) {
		fprintf(stderr, "onecopy-network: run by onecopy tune --network, on two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	gethostname(own, sizeof(own) - 1);
	MPI_Sendrecv(own, sizeof(own), MPI_CHAR, !rank, TAG, other, sizeof(other), MPI_CHAR, !rank,
		     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!strcmp(own, other)) {
		if (!rank)
			printf("both ranks are on %s\n", own);
	} else {
		print();
	}
	fflush(stdout);
	MPI_Finalize();
	free(buffer);
	return 0;
}
