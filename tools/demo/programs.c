// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#define METRICS(list) .metrics = list, .num_metrics = sizeof(list) / sizeof((list)[0])

static const struct demo_metric asp_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "bcast_s_max", .label = "communication: MPI_Bcast, slowest rank, s" },
	{ .id = "bcast_s_min", .label = "communication: MPI_Bcast, fastest rank, s" },
};

static const struct demo_program asp = {
	.name = "asp",
	.what = "all-pairs shortest paths (Floyd-Warshall), C",
	.checks = "sampled rows equal Dijkstra's; all runs' matrices have one checksum",
	.kind = DEMO_BINARY,
	.arguments = "--json",
	METRICS(asp_metrics),
};

static const struct demo_metric cg_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "wait_s_max", .label = "communication: sums and neighbours, slowest rank, s" },
};

static const struct demo_program cg = {
	.name = "cg",
	.what = "pipelined conjugate gradients, persistent sums and messages, C",
	.checks = "every point of every solve equals the known solution",
	.kind = DEMO_BINARY,
	.arguments = "--size 128 --solves 20 --json",
	METRICS(cg_metrics),
};

static const struct demo_metric heat_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "comm_s_max", .label = "communication: Alltoallw and sums, slowest rank, s" },
};

static const struct demo_program heat = {
	.name = "heat",
	.what = "heat by Fourier transforms, Alltoallw of derived types, Fortran",
	.checks = "every point and every step's sum equal the known solution",
	.kind = DEMO_BINARY,
	.arguments = "--size 512 --steps 40 --json",
	METRICS(heat_metrics),
};

static const struct demo_metric intsort_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "comm_s_max", .label = "communication: all collectives, slowest rank, s" },
	{ .id = "exchange_s_max", .label = "communication: MPI_Alltoallv, slowest rank, s" },
};

static const struct demo_program intsort = {
	.name = "intsort",
	.what = "integers sorted by buckets as NAS IS does it, C",
	.checks = "order and multiset of the keys in every iteration; one checksum",
	.kind = DEMO_BINARY,
	.arguments = "--class A --json",
	METRICS(intsort_metrics),
};

static const struct demo_metric script_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "comm_s_max", .label = "communication: all collectives, slowest rank, s" },
};

static const struct demo_program gradients = {
	.name = "gradients",
	.what = "gradient averaging, 1 Mi floats, Python (mpi4py)",
	.checks = "every parameter, loss and statistic on every rank is exact",
	.kind = DEMO_SCRIPT,
	.arguments = "--json",
	METRICS(script_metrics),
};

static const struct demo_program shuffle = {
	.name = "shuffle",
	.what = "shuffled records, Ialltoallw of derived types, Python (mpi4py)",
	.checks = "every record is whole, there once, and where it belongs",
	.kind = DEMO_SCRIPT,
	.arguments = "--json",
	METRICS(script_metrics),
};

/* In the order of demo_hpcc_read. What each part calls was counted with a PMPI interposer. */
static const struct demo_metric hpcc_metrics[] = {
	{ .id = "wall_s", .label = "total time, mpirun's start included, s" },
	{ .id = "mpifft_gflops",
	  .label = "communication: MPIFFT (Alltoall inside), Gflop/s",
	  .is_rate = true },
	{ .id = "mpirandomaccess_check_s",
	  .label = "communication: MPIRandomAccess checks (Alltoall inside), s" },
	{ .id = "mpirandomaccess_gups",
	  .label = "point-to-point, not ours: MPIRandomAccess, GUP/s",
	  .is_rate = true },
	{ .id = "ptrans_gbs", .label = "point-to-point, not ours: PTRANS, GB/s", .is_rate = true },
};

static const struct demo_program hpcc = {
	.name = "hpcc",
	.what = "HPC Challenge, Debian's binary, small input",
	.checks = "HPL, PTRANS, RandomAccess, FFT, STREAM and DGEMM pass hpcc's own checks",
	.kind = DEMO_HPCC,
	METRICS(hpcc_metrics),
};

const struct demo_program *const demo_programs[] = { &asp,	 &cg,	   &heat, &intsort,
						     &gradients, &shuffle, &hpcc };
const size_t demo_num_programs = sizeof(demo_programs) / sizeof(demo_programs[0]);
