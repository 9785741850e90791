/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_bench_p2p_ompi, oc_bench_p2p_mpich: the ping-pong of oc_bench_p2p by MPI_Send and MPI_Recv. */
#include <mpi.h>
#include <stdio.h>

#include "pingpong.h"

static void do_send(void *context, const void *buffer, size_t bytes)
{
	MPI_Send(buffer, (int)bytes, MPI_BYTE, !*(int *)context, 0, MPI_COMM_WORLD);
}

static void do_receive(void *context, void *buffer, size_t bytes)
{
	MPI_Recv(buffer, (int)bytes, MPI_BYTE, !*(int *)context, 0, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	struct pingpong p = { .program = argv[0], .send = do_send, .receive = do_receive };
	struct pingpong_options options;
	int size, status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	p.context = &p.rank;
	status = pingpong_parse(argc, argv, &options);
	if (!status && size != 2) {
		fprintf(stderr, "%s: start it with 2 ranks\n", argv[0]);
		status = 2;
	}
	if (!status)
		status = pingpong_run(&p, &options);
	MPI_Finalize();
	return status;
}
