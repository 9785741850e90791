/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From MPI_Init to MPI_Finalize. Before and after, every call goes to the MPI as it is.
 *
 * MPI_Init exchanges, with one PMPI_Iallgather, who is on which node and takes part. So all
 * processes of a job need this library, or none: where one lacks it, the others wait for it, say
 * so, and end the job. A process with ONECOPY=off, or whose MPI moves device memory, takes part in
 * this, and no communicator that it is in is served.
 *
 * A program without a collective pays for what is here. So a rank says 24 bytes, which MPICH
 * sends at once: for the 260 of MPI_Comm_dup, or for longer words, ranks first map each other's
 * buffers. Hence no communicator of ours spans ranks.
 */
#include "pmpi.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

struct oci_pmpi_job oci_pmpi_job = { .self = MPI_COMM_NULL };

/*
 * Where the MPI is built for devices (GPUs), any buffer may be memory of one, which only the MPI
 * can read and write; to ask of each would cost every call. MPICH 4.0 has this function with all
 * three kinds (src/binding/c/misc_api.txt), and it says no where MPIR_CVAR_ENABLE_GPU is 0.
 */
static bool moves_device_memory(void)
{
	static const int kinds[] = { MPIX_GPU_SUPPORT_CUDA, MPIX_GPU_SUPPORT_ZE,
				     MPIX_GPU_SUPPORT_HIP };
	int (*query)(int, int *) =
		(int (*)(int, int *))oci_pmpi_extension("MPIX_GPU_query_support");
	int moves = 0;

	for (size_t i = 0; query && !moves && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (query(kinds[i], &moves) != MPI_SUCCESS)
			moves = 0;
	if (moves)
		oci_info("this MPI moves device memory (it is built for GPUs), which onecopy "
			 "cannot reach: all collectives of this process stay with the MPI; if "
			 "the program gives the MPI no device buffers, run it with "
			 "MPIR_CVAR_ENABLE_GPU=0 (MPICH) in its environment");
	return moves;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Some hosts start their processes seconds later than others; one that lacks this library never
 * comes. The MPI's own MPI_Init, which has returned, has waited for the others itself. */
#define LATE_S 5
#define LOST_S 300

/*
 * `speaks`: says what is waited for. Nobody can go on without those who lack it: who only comes
 * late would think that all take part. So the job ends, as it would wait for ever.
 */
static int await_all(MPI_Request *request, bool speaks)
{
	int done = 0, error = PMPI(Test)(request, &done, MPI_STATUS_IGNORE);
	double looked_s = !error && !done ? now_s() : 0, waited_s = 0;
	bool said = false;

	while (!error && !done) {
		double at_s = now_s();

		/* More than that it was stopped. */
		waited_s += at_s - looked_s < 1 ? at_s - looked_s : 1;
		looked_s = at_s;
		if (speaks && !said && waited_s >= LATE_S) {
			said = true;
			oci_warn(
				"MPI_Init has waited %d s for processes that have not come: on a "
				"host that lacks this library they never will, and the dynamic "
				"linker has said there that it cannot be preloaded; install onecopy "
				"in one place on all hosts of the job, or run it without. After %d s "
				"the job ends",
				LATE_S, LOST_S);
		}
		if (waited_s >= LOST_S) {
			if (speaks)
				oci_error(
					"MPI_Init ends the job, as processes of it have not come for "
					"%d s: does a host lack onecopy?",
					LOST_S);
			PMPI(Abort)(MPI_COMM_WORLD, 1);
		}
		sched_yield();
		error = PMPI(Test)(request, &done, MPI_STATUS_IGNORE);
	}
	return error;
}

/* Who is here, and whether everyone is: the latter alike on all, as it compares with rank 0. */
static int exchange(struct oci_pmpi_job *job)
{
	enum { WORDS = sizeof(*job->place) / sizeof(uint64_t) };
	/* 0: takes part in nothing, as does a process that does not know its node. */
	bool out = oci_mpi_switched_off() || moves_device_memory();
	struct oci_pmpi_place me = { out ? 0 : oc_node(), oc_levels(), job->threads }, *all;
	MPI_Request request;
	bool threads;
	int error;

	all = job->place = calloc((size_t)job->size, sizeof(*all));
	if (!all)
		return MPI_ERR_NO_MEM;
	error = PMPI(Iallgather)(&me, WORDS, MPI_UINT64_T, all, WORDS, MPI_UINT64_T, MPI_COMM_WORLD,
				 &request);
	if (!error)
		/* One of the first and the last host is likely to have it. */
		error = await_all(&request, !job->rank || job->rank == job->size - 1);
	job->together = threads = !error;
	job->node_ranks = 0;
	for (int r = 0; r < job->size && !error; r++) {
		job->node_ranks += me.node && all[r].node == me.node;
		job->together = job->together && all[r].node && all[r].node == all[0].node;
		threads = threads && all[r].node && all[r].threads;
	}
	job->starts = job->together || threads;
	return error;
}

/* One for ourselves, on which errors return. */
static int make_own(struct oci_pmpi_job *job)
{
	int error = PMPI(Comm_dup)(MPI_COMM_SELF, &job->self);

	return error ? error : PMPI(Comm_set_errhandler)(job->self, MPI_ERRORS_RETURN);
}

static int set_up(struct oci_pmpi_job *job)
{
	int level = MPI_THREAD_SINGLE, found = 0, error, *most;

	PMPI(Comm_rank)(MPI_COMM_WORLD, &job->rank);
	PMPI(Comm_size)(MPI_COMM_WORLD, &job->size);
	PMPI(Query_thread)(&level);
	job->threads = level == MPI_THREAD_MULTIPLE;
	error = exchange(job);
	if (!error)
		error = PMPI(Comm_group)(MPI_COMM_WORLD, &job->group);
	if (!error)
		error = PMPI(Comm_get_attr)(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
	job->tags = found ? *most : 32767; /* what MPI promises at least */
	if (!error)
		error = make_own(job);
	oci_mpi_set_threads(job->threads);
	if (!error)
		error = oci_pmpi_comm_start();
	if (!error)
		error = oci_pmpi_port_start();
	return error;
}

/* After the MPI's own. A failure here is one of MPI_Init: the ranks could not agree otherwise. */
static int begin(void)
{
	struct oci_pmpi_job *job = &oci_pmpi_job;
	int error = set_up(job);

	if (error)
		return error;
	if (!job->starts && job->rank == 0)
		oci_info("the processes of this job are on several nodes and do not all have "
			 "MPI_THREAD_MULTIPLE, or onecopy is switched off in some: nonblocking "
			 "and persistent collectives stay with the MPI. "
			 "MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE in the environment "
			 "of all gives that level to programs that call MPI_Init");
	oc_set_progress(oci_pmpi_drive_from_engine);
	job->begun = true;
	/* Switched off: from here to MPI_Finalize it is as if we were not there. */
	job->active = job->place[job->rank].node;
	if (job->active) {
		oc_serve_messages();
		oci_pmpi_worker_start();
	}
	return MPI_SUCCESS;
}

int oci_pmpi_Init(int *argc, char ***argv)
{
	int error = PMPI(Init)(argc, argv);

	return error ? error : begin();
}

int oci_pmpi_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int error = PMPI(Init_thread)(argc, argv, required, provided);

	return error ? error : begin();
}

#define TURNS_PER_LOOK 4096

/* For who has died nobody waits here, whatever the MPI does later. */
static void await_living(MPI_Request *everyone)
{
	uint32_t turns = 0;
	int done = 0;

	for (;; oci_pmpi_pause(&turns)) {
		oci_pmpi_drive();
		if (PMPI(Test)(everyone, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done ||
		    (turns % TURNS_PER_LOOK == TURNS_PER_LOOK - 1 && oc_peer_ended()))
			return;
	}
}

/* Peers may still need this process for what is outstanding with them. On the program's
 * communicator, where all that it began is over; it is not told of a peer that has died. */
static void wait_for_all(void)
{
	MPI_Errhandler handler = oci_pmpi_hush(MPI_COMM_WORLD);
	MPI_Request everyone;

	if (PMPI(Ibarrier)(MPI_COMM_WORLD, &everyone) == MPI_SUCCESS)
		await_living(&everyone);
	oci_pmpi_unhush(MPI_COMM_WORLD, handler);
}

static void end(struct oci_pmpi_job *job)
{
	wait_for_all();
	oci_pmpi_helper_stop();
	oci_pmpi_comm_stop();
	oci_pmpi_requests_stop();
	oci_pmpi_mover_stop();
	oci_pmpi_port_stop();
	oc_set_progress(NULL);
	oc_stats_write(job->rank, job->size);
	job->begun = job->active = false;
	oci_pmpi_attention_count = 0;
	PMPI(Group_free)(&job->group);
	PMPI(Comm_free)(&job->self);
	free(job->place);
	job->place = NULL;
}

int oci_pmpi_Finalize(void)
{
	if (oci_pmpi_job.begun)
		end(&oci_pmpi_job);
	return PMPI(Finalize)();
}
