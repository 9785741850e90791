// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

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

/* Takes the named numbers in order. */
static int read_numbers(const struct demo *demo, const char *program, const char *const *names,
			size_t count, struct demo_result *result)
{
	json_t *line = json_line(demo, program);
	const char *checksum = json_string_value(json_object_get(line, "checksum"));
	int ret = -1;

	if (!line)
		return -1;
	if (!json_is_true(json_object_get(line, "verified"))) {
		fprintf(stderr, "\nonecopy-demo: %s: not verified: it says so itself\n", program);
		goto out;
	}
	for (size_t i = 0; i < count; i++) {
		json_t *number = json_object_get(line, names[i]);

		if (!json_is_number(number)) {
			fprintf(stderr, "\nonecopy-demo: %s: '%s' is missing from its result\n",
				program, names[i]);
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

static const char *asp_needs(const struct demo *demo)
{
	return demo->opt.asp;
}

static void asp_command(const struct demo *demo, struct demo_args *args)
{
	demo_args_add(args, "%s", demo->opt.asp);
	demo_args_add(args, "--size");
	demo_args_add(args, "%d", demo->opt.asp_size);
	demo_args_add(args, "--json");
}

static int asp_read(const struct demo *demo, struct demo_result *result)
{
	static const char *const names[] = { "total_s", "bcast_s_max", "bcast_s_min" };

	return read_numbers(demo, "asp", names, ARRAY_SIZE(names), result);
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
	.remedy = "build it (make)",
	.metrics = asp_metrics,
	.num_metrics = ARRAY_SIZE(asp_metrics),
	.needs = asp_needs,
	.command = asp_command,
	.read = asp_read,
};

static const char *gradients_needs(const struct demo *demo)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/gradients.py", demo->opt.examples);
	return path;
}

/* Debian's interpreter by its path: mpi4py is built for it, and another may come first in PATH. */
static void gradients_command(const struct demo *demo, struct demo_args *args)
{
	demo_args_add(args, "/usr/bin/python3");
	demo_args_add(args, "%s", gradients_needs(demo));
	demo_args_add(args, "--json");
}

static int gradients_read(const struct demo *demo, struct demo_result *result)
{
	static const char *const names[] = { "total_s", "comm_s_max" };

	return read_numbers(demo, "gradients", names, ARRAY_SIZE(names), result);
}

static const struct demo_metric gradients_metrics[] = {
	{ .id = "total_s", .label = "total time, s" },
	{ .id = "comm_s_max", .label = "communication: all collectives, slowest rank, s" },
};

static const struct demo_program gradients = {
	.name = "gradients",
	.what = "gradient averaging, 1 Mi floats, Python (mpi4py)",
	.checks = "every parameter, loss and statistic on every rank is exact",
	.remedy = "name the examples folder by --examples",
	.metrics = gradients_metrics,
	.num_metrics = ARRAY_SIZE(gradients_metrics),
	.needs = gradients_needs,
	.command = gradients_command,
	.read = gradients_read,
};

static const char *hpcc_needs(const struct demo *demo)
{
	return demo->opt.hpcc;
}

static void hpcc_command(const struct demo *demo, struct demo_args *args)
{
	demo_args_add(args, "--wdir");
	demo_args_add(args, "%s", demo->files.folder);
	demo_args_add(args, "%s", demo->opt.hpcc);
}

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
	.remedy = "install the package hpcc or name it by --hpcc",
	.metrics = hpcc_metrics,
	.num_metrics = ARRAY_SIZE(hpcc_metrics),
	.needs = hpcc_needs,
	.prepare = demo_hpcc_prepare,
	.command = hpcc_command,
	.read = demo_hpcc_read,
};

const struct demo_program *const demo_programs[] = { &asp, &gradients, &hpcc };
const size_t demo_num_programs = ARRAY_SIZE(demo_programs);
