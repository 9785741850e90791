/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_network.h"

#include "bench.h"
#include "lab/tune/between.h"

#include <stdio.h>
#include <string.h>

struct heard {
	struct oci_tune_network network;
	char other[256]; /* the first line that is none of the program's */
};

static void hear(void *context, const char *line)
{
	struct heard *heard = context;

	if (!oci_tune_network_line(&heard->network, line) && *line && *line != '-' &&
	    !*heard->other)
		snprintf(heard->other, sizeof(heard->other), "%s", line);
}

int tune_network(const char *mpi, const char *mpirun, struct oci_model *model)
{
	struct heard heard = { .network = { .count = 0 } };
	const struct variant stock = { .name = "network" };
	struct run run = { .variant = &stock,
			   .launcher = launcher_of(mpi),
			   .mpirun = mpirun,
			   .ranks = 2,
			   .line = hear,
			   .context = &heard };
	char why[512], name[256];
	int error;

	run_begin();
	error = bench_prepare(&run, "network", why, sizeof(why));
	if (!error)
		error = run_program(NULL, &run, 0, why, sizeof(why));
	if (error) {
		say("the network was not measured: %s", why);
		return 1;
	}
	snprintf(name, sizeof(name), "%s %s", launcher_info(run.launcher)->name,
		 launcher_info(run.launcher)->version);
	heard.network.mpi = name;
	heard.network.host = model->machine.host;
	if (!oci_tune_network_terms(&heard.network, model))
		return 0;
	say("the network was not measured%s%s; --mpirun has to start one rank on each of two hosts, "
	    "such as 'mpirun --host node1,node2'",
	    *heard.other ? ": " : "", heard.other);
	return 1;
}
