// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METRICS(list) .metrics = list, .num_metrics = sizeof(list) / sizeof((list)[0])

/* Our own programs print one line of JSON; a launcher's chatter may stand around it. */
static json_t *json_line(const struct demo *demo, const char *program)
{
	char *text = demo_read_text(demo->files.out);
	char *line, *rest = text;
	json_t *found = NULL;

	while (text && (line = strsep(&rest, "\n"))) {
		json_t *parsed = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;
		const char *name = json_string_value(json_object_get(parsed, "program"));

		if (!found && name && strcmp(name, program) == 0)
			found = parsed;
		else
			json_decref(parsed);
	}
	free(text);
	if (!found)
		fprintf(stderr, "\nonecopy-demo: %s printed no result\n", program);
	return found;
}

/* Takes the metrics' numbers in order. */
static int read_numbers(const struct demo *demo, const struct demo_program *program,
			struct demo_result *result)
{
	json_t *line = json_line(demo, program->name);
	const char *checksum = json_string_value(json_object_get(line, "checksum"));
	int ret = -1;

	if (!line)
		return -1;
	if (!json_is_true(json_object_get(line, "verified"))) {
		fprintf(stderr, "\nonecopy-demo: %s: not verified: it says so itself\n",
			program->name);
		goto out;
	}
	for (size_t i = 0; i < program->num_metrics; i++) {
		json_t *number = json_object_get(line, program->metrics[i].id);

		if (!json_is_number(number)) {
			fprintf(stderr, "\nonecopy-demo: %s: '%s' is missing from its result\n",
				program->name, program->metrics[i].id);
			goto out;
		}
		result->values[i] = json_number_value(number);
	}
	snprintf(result->checksum, sizeof(result->checksum), "%s", checksum ? checksum : "");
	ret = 0;
out:
	json_decref(line);
	return ret;
}

const char *demo_program_path(const struct demo *demo, const struct demo_program *program, int mpi)
{
	static char path[PATH_MAX];

	switch (program->kind) {
	case DEMO_BINARY:
		snprintf(path, sizeof(path), "%s/%s%s", demo->opt.programs, demo_mpis[mpi].folder,
			 program->name);
		return path;
	case DEMO_SCRIPT:
		snprintf(path, sizeof(path), "%s/%s.py", demo->opt.examples, program->name);
		return path;
	default:
		return demo->opt.hpcc;
	}
}

const char *demo_program_remedy(const struct demo_program *program)
{
	switch (program->kind) {
	case DEMO_BINARY:
		return "build it (make), with libopenmpi-dev, libmpich-dev and gfortran installed";
	case DEMO_SCRIPT:
		return "name the examples folder by --examples";
	default:
		return "install the package hpcc or name it by --hpcc";
	}
}

int demo_program_command(const struct demo *demo, const struct demo_program *program, int mpi,
			 struct child_args *args)
{
	if (program->kind == DEMO_HPCC) {
		child_args_add(args, "--wdir");
		child_args_add(args, demo->files.folder);
	}
	if (program->kind == DEMO_SCRIPT) {
		if (mpi == DEMO_MPICH && demo->opt.mpi4py) {
			char path[PATH_MAX + 16];

			child_args_add(args, "env");
			snprintf(path, sizeof(path), "PYTHONPATH=%s", demo->opt.mpi4py);
			child_args_add(args, path);
		}
		/* Debian's interpreter by its path: mpi4py is built for it, and another may come
		 * first in PATH.
		 */
		child_args_add(args, "/usr/bin/python3");
	}
	child_args_add(args, demo_program_path(demo, program, mpi));
	if (strcmp(program->name, "asp") == 0) {
		child_args_add(args, "--size");
		child_args_add_long(args, demo->opt.asp_size);
	}
	return program->arguments ? demo_words(args, program->arguments) : 0;
}

int demo_program_read(const struct demo *demo, const struct demo_program *program,
		      struct demo_result *result)
{
	return program->kind == DEMO_HPCC ? demo_hpcc_read(demo, result) :
					    read_numbers(demo, program, result);
}

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
_Static_assert(sizeof(demo_programs) / sizeof(demo_programs[0]) <= DEMO_PROGRAMS_MAX, "cases");
