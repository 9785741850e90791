/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows. Their creation and what synchronises all their processes begins with a barrier in which
 * we drive (construction.c says why that is enough); MPI_Win_wait is a loop around MPI_Win_test.
 * MPI_Win_start comes after a token from each process that has called MPI_Win_post, so that the
 * MPI has nobody left to wait for there or in MPI_Win_complete. Locks are in lock.c.
 */
#include "window.h"

#include <stdlib.h>
#include <unistd.h>

static int key = MPI_KEYVAL_INVALID;
static uint32_t made; /* atomic */

uint32_t oci_pmpi_windows;

static int window_gone(MPI_Win win, int keyval, void *value, void *extra)
{
	struct oci_pmpi_window *window = value;

	(void)win;
	(void)keyval;
	(void)extra;
	oci_pmpi_locks_drop(window);
	free(window->ranks);
	free(window);
	return MPI_SUCCESS;
}

int oci_pmpi_window_start(void)
{
	return PMPI(Win_create_keyval)(MPI_WIN_NULL_COPY_FN, window_gone, &key, NULL);
}

/* Attributes of windows that live on keep the function until they die. */
void oci_pmpi_window_stop(void)
{
	PMPI(Win_free_keyval)(&key);
}

struct oci_pmpi_window *oci_pmpi_window_of(MPI_Win win)
{
	struct oci_pmpi_window *window = NULL;
	int found = 0;

	if (!oci_pmpi_job.active || !oci_pmpi_job.together || win == MPI_WIN_NULL)
		return NULL;
	return PMPI(Win_get_attr)(win, key, &window, &found) == MPI_SUCCESS && found ? window :
										       NULL;
}

/* NULL: no memory. */
static struct oci_pmpi_window *describe(MPI_Comm comm)
{
	struct oci_pmpi_window *window = calloc(1, sizeof(*window));
	MPI_Group group;

	if (!window || PMPI(Comm_group)(comm, &group) != MPI_SUCCESS)
		return window;
	window->ranks = oci_pmpi_meeting_ranks(group, &window->size);
	PMPI(Group_rank)(group, &window->me);
	PMPI(Group_free)(&group);
	return window;
}

/* The first member makes memory for its locks, the others map it. */
static bool share_locks(struct oci_pmpi_window *window, MPI_Comm comm, int *fd)
{
	struct oci_pmpi_locks_id id = { .fd = -1 };
	MPI_Request request;
	int rank = 0;

	PMPI(Comm_rank)(comm, &rank);
	if (!rank && window)
		oci_pmpi_locks_make(window, &id);
	*fd = rank ? -1 : id.fd;
	if (PMPI(Ibcast)(&id, sizeof(id), MPI_BYTE, 0, comm, &request) != MPI_SUCCESS ||
	    oci_pmpi_await(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return false;
	if (rank && window)
		oci_pmpi_locks_find(window, &id);
	return window && window->locks;
}

/*
 * Pairs of processes tell their windows apart by a number that the first member gives. Negative:
 * some member has no memory for this, and none may wait for it in a barrier. *locks: all members
 * share some.
 */
static int agree(struct oci_pmpi_window *window, MPI_Comm comm, int *locks)
{
	uint32_t turn = __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	int fd, mine[2] = { INT32_MAX, share_locks(window, comm, &fd) }, all[2] = { -1, 0 };
	MPI_Request request;

	if (!window || !window->ranks)
		mine[0] = -1;
	else if (!window->me)
		mine[0] = (int)((turn * (uint32_t)oci_pmpi_job.size + (uint32_t)oci_pmpi_job.rank) %
				INT32_MAX);
	if (PMPI(Iallreduce)(mine, all, 2, MPI_INT, MPI_MIN, comm, &request) != MPI_SUCCESS ||
	    oci_pmpi_await(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		all[0] = -1;
	if (fd >= 0)
		close(fd);
	*locks = all[1];
	return all[0];
}

/* After it was made: on all members. `ours`: on all alike. */
static int adopt(int error, bool ours, MPI_Comm comm, MPI_Win win)
{
	struct oci_pmpi_window *window;
	int number, locks;

	if (error)
		return error;
	__atomic_fetch_add(&oci_pmpi_windows, 1, __ATOMIC_RELAXED);
	if (!ours)
		return MPI_SUCCESS;
	window = describe(comm);
	number = agree(window, comm, &locks);
	if (window && !locks)
		oci_pmpi_locks_drop(window);
	if (number >= 0) {
		window->tag = oci_pmpi_meeting_tag((uint32_t)number * 2, true);
		error = PMPI(Win_set_attr)(win, key, window);
	}
	if (window && (number < 0 || error))
		window_gone(win, key, window, NULL);
	return error;
}

#define MAKE(name, parameters, arguments)                                                          \
	int oci_pmpi_##name(OCI_LIST parameters, MPI_Comm comm, LAST)                              \
	{                                                                                          \
		bool ours = oci_pmpi_meet_on(comm);                                                \
		bool helped = !ours && oci_pmpi_help_on(comm);                                     \
		int error = oci_pmpi_helped(helped, PMPI(name)(OCI_LIST arguments, comm, PASSED)); \
                                                                                                   \
		return adopt(error, ours, comm, *win);                                             \
	}

/* clang-format off */
#define LAST MPI_Win *win
#define PASSED win
MAKE(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info), (base, size, unit, info))
MAKE(Win_create_c, (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info),
     (base, size, unit, info))
MAKE(Win_create_dynamic, (MPI_Info info), (info))
#undef LAST
#undef PASSED
#define LAST void *base, MPI_Win *win
#define PASSED base, win
MAKE(Win_allocate, (MPI_Aint size, int unit, MPI_Info info), (size, unit, info))
MAKE(Win_allocate_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info), (size, unit, info))
MAKE(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info), (size, unit, info))
MAKE(Win_allocate_shared_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info), (size, unit, info))
/* clang-format on */

bool oci_pmpi_help_at(MPI_Win win)
{
	return oci_pmpi_attention() && !oci_pmpi_window_of(win) && oci_pmpi_help();
}

/* A barrier, or a helper. */
static bool enter(MPI_Win win)
{
	const struct oci_pmpi_window *window = oci_pmpi_window_of(win);

	if (!window)
		return oci_pmpi_help_at(win);
	oci_pmpi_meeting(window->ranks, window->size, window->me, window->tag);
	return false;
}

int oci_pmpi_Win_free(MPI_Win *win)
{
	bool helped = win && enter(*win);
	int error = oci_pmpi_helped(helped, PMPI(Win_free)(win));

	if (!error)
		__atomic_fetch_sub(&oci_pmpi_windows, 1, __ATOMIC_RELAXED);
	return error;
}

int oci_pmpi_Win_set_info(MPI_Win win, MPI_Info info)
{
	bool helped = enter(win);

	return oci_pmpi_helped(helped, PMPI(Win_set_info)(win, info));
}

int oci_pmpi_Win_fence(int assert, MPI_Win win)
{
	bool helped = enter(win);

	return oci_pmpi_helped(helped, PMPI(Win_fence)(assert, win));
}

/* ---- post, start, complete, wait --------------------------------------------------------------
 */

/*
 * A group here is of members of the window, so all are of our job. Without any memory of its own:
 * the other side waits for these messages.
 */
static int world_rank(MPI_Group group, int member)
{
	int world = MPI_UNDEFINED;

	PMPI(Group_translate_ranks)(group, 1, &member, oci_pmpi_job.group, &world);
	return world == MPI_UNDEFINED ? MPI_PROC_NULL : world;
}

int oci_pmpi_Win_post(MPI_Group group, int assert, MPI_Win win)
{
	const struct oci_pmpi_window *window = oci_pmpi_window_of(win);
	int error = PMPI(Win_post)(group, assert, win), size = 0;
	MPI_Request request;

	if (window && !error)
		PMPI(Group_size)(group, &size);
	for (int r = 0; r < size; r++)
		if (PMPI(Isend)(NULL, 0, MPI_BYTE, world_rank(group, r), window->tag + 1,
				oci_pmpi_job.world, &request) == MPI_SUCCESS)
			PMPI(Request_free)(&request);
	return error;
}

int oci_pmpi_Win_start(MPI_Group group, int assert, MPI_Win win)
{
	const struct oci_pmpi_window *window = oci_pmpi_window_of(win);
	bool helped = oci_pmpi_help_at(win);
	MPI_Request request;
	int size = 0;

	if (window && group != MPI_GROUP_NULL)
		PMPI(Group_size)(group, &size);
	for (int r = 0; r < size; r++)
		if (PMPI(Irecv)(NULL, 0, MPI_BYTE, world_rank(group, r), window->tag + 1,
				oci_pmpi_job.world, &request) == MPI_SUCCESS)
			oci_pmpi_await(&request, MPI_STATUS_IGNORE);
	return oci_pmpi_helped(helped, PMPI(Win_start)(group, assert, win));
}

int oci_pmpi_Win_wait(MPI_Win win)
{
	uint32_t turns = 0;
	int done = 0, error;

	if (!oci_pmpi_attention())
		return PMPI(Win_wait)(win);
	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Win_test)(win, &done);
		if (error || done)
			return error;
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Win_test(MPI_Win win, int *flag)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	return PMPI(Win_test)(win, flag);
}
