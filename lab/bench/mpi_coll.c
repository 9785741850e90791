// SPDX-License-Identifier: BSD-3-Clause
/* onecopy-collectives: times the collectives of the MPI below it, whichever that is. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "lab/harness/mpi_ranks.h"
#include "lab/harness/stats.h"
#include "mpi_cell.h"

static int run_all(struct bench *b)
{
	const struct coll_options *o = &b->options;
	int c;

	for (c = 0; c < o->collectives.n; c++) {
		enum oc_collective collective = o->collectives.at[c];
		unsigned int sizes = collective == OC_BARRIER ? 1 : o->sizes.count;

		for (unsigned int i = 0; i < sizes; i++) {
			run_cell(b, collective, collective == OC_BARRIER ? 0 : o->sizes.at[i]);
			if (shm_barrier_failed(&b->barrier))
				return STATUS_FAILED;
		}
	}
	return STATUS_OK;
}

/* Give every rank the shared segment. The only use of MPI outside of what is measured. */
static void join_segment(struct bench *b)
{
	int err = mpi_ranks_meet(&b->barrier,
				 b->options.form == FORM_OVERLAP ?
					 overlap_samples() :
					 (size_t)coll_options_max_iterations(&b->options));

	if (err)
		die(b,
		    "The barrier's shared memory could not be made or opened; is /dev/shm full, and do "
		    "all ranks see the same one?",
		    err);
}

/* What can be asked only of a running MPI. Returns 0, or 2 after rank 0 said what is wrong. */
static int check_job(const struct bench *b)
{
	MPI_Comm node;
	int on_node;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_size(node, &on_node);
	MPI_Comm_free(&node);
	if (on_node != b->ranks) {
		if (b->rank == 0) {
			fprintf(stderr,
				"onecopy-collectives: Only %d of %d ranks are on this node; all "
				"must be, because it times collectives inside one node. Run "
				"it on one host.\n",
				on_node, b->ranks);
		}
		return EXIT_USAGE;
	}
	if (b->options.root >= b->ranks) {
		if (b->rank == 0) {
			fprintf(stderr,
				"onecopy-collectives: --root is %ld, but the ranks are 0 to %d.\n",
				b->options.root, b->ranks - 1);
		}
		return EXIT_USAGE;
	}
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	static struct bench b;
	int length, status;
	char *tab;

	/* First, so that --help and a wrong option need no MPI job. */
	coll_options_parse(argc, argv, &b.options);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
	MPI_Get_library_version(version, &length);
	version[strcspn(version, "\n,")] = '\0';
	/* MPICH has a tab behind its name. */
	for (tab = version; (tab = strchr(tab, '\t')); *tab = ' ') {
	}
	if (b.rank == 0)
		printf("# %s\n", version);
	status = check_job(&b);
	if (status == STATUS_OK) {
		join_segment(&b);
		status = run_all(&b);
		shm_barrier_close(&b.barrier);
	}
	MPI_Finalize();
	return status;
}
