/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 1 << 20, TAG = 12 };

static MPI_Comm comm;
static int rank, ranks;
static char out[MOST], in[MOST], area[MOST], *buffer;
static MPI_Win window, window_to_free, locked;
/* In `locked`; aligned, as MPICH 4.0.2 by itself accumulates in front of what is not. */
static _Alignas(64) int word;
static MPI_Group partner; /* of ranks 0 and 1: the other one */
static MPI_File file, file_to_close;
static char name[64];

/* ---- windows -------------------------------------------------------------------------------- */

static void in_fence(int bytes)
{
	MPI_Win_fence(0, window);
	if (rank == 1)
		MPI_Put(out, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
	MPI_Win_fence(0, window);
}

static void put_to(int target, int bytes)
{
	MPI_Win_start(partner, 0, window);
	MPI_Put(out, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, window);
	MPI_Win_complete(window);
}

static void take(void)
{
	MPI_Win_post(partner, 0, window);
	MPI_Win_wait(window);
}

static void in_complete(int bytes)
{
	if (!rank)
		put_to(1, bytes);
	else if (rank == 1)
		take();
}

static void in_win_wait(int bytes)
{
	if (!rank)
		take();
	else if (rank == 1)
		put_to(0, bytes);
}

static void make_window(int bytes)
{
	(void)bytes;
	MPI_Win_create(area, MOST, 1, MPI_INFO_NULL, comm, &window_to_free);
}

static void in_win_free(int bytes)
{
	(void)bytes;
	MPI_Win_free(&window_to_free);
}

static void in_win_allocate(int bytes)
{
	MPI_Win win;
	void *base;

	MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &base, &win);
	MPI_Win_free(&win);
}

/* Rank 1 has the lock of rank 0's memory, or of everyone's, before the operation begins. */
static void hold(int all)
{
	if (rank == 1 && all)
		MPI_Win_lock_all(0, locked);
	else if (rank == 1)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
	if (rank == 1)
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm);
	else if (!rank)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, comm, MPI_STATUS_IGNORE);
}

static void hold_one(int bytes)
{
	(void)bytes;
	hold(0);
}

static void hold_all(int bytes)
{
	(void)bytes;
	hold(1);
}

static void add_one(void)
{
	int one = 1;

	MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, locked);
}

/* Rank 1 does not come for the lock again before rank 0 has had it: locks need not be fair. */
static void have_had(void)
{
	if (!rank)
		MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, comm);
	else if (rank == 1)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
}

static void in_lock(int bytes)
{
	(void)bytes;
	if (!rank)
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, locked);
	if (rank < 2) {
		add_one();
		MPI_Win_unlock(0, locked);
	}
	have_had();
}

static void in_lock_behind_all(int bytes)
{
	(void)bytes;
	if (!rank)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
	if (rank < 2)
		add_one();
	if (!rank)
		MPI_Win_unlock(0, locked);
	else if (rank == 1)
		MPI_Win_unlock_all(locked);
	have_had();
}

static void in_lock_all(int bytes)
{
	(void)bytes;
	if (!rank)
		MPI_Win_lock_all(0, locked);
	if (rank < 2)
		add_one();
	if (!rank)
		MPI_Win_unlock_all(locked);
	else if (rank == 1)
		MPI_Win_unlock(0, locked);
	have_had();
}

static void clear(int bytes)
{
	(void)bytes;
	if (!rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
		word = 0;
		MPI_Win_unlock(0, locked);
		MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, comm);
	} else if (rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
	}
}

/* Rank 0 looks at its memory until rank 1 has written there. */
static void in_flush(int bytes)
{
	int now = rank;

	(void)bytes;
	if (rank > 1)
		return;
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, locked);
	if (rank)
		add_one();
	while (!now) {
		MPI_Fetch_and_op(NULL, &now, MPI_INT, 0, 0, MPI_NO_OP, locked);
		MPI_Win_flush(0, locked);
	}
	MPI_Win_unlock(0, locked);
}

static void in_win_info(int bytes)
{
	MPI_Info info;

	(void)bytes;
	MPI_Info_create(&info);
	MPI_Win_set_info(locked, info);
	MPI_Info_free(&info);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void open_one(MPI_File *made)
{
	if (MPI_File_open(comm, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, made))
		case_fail("%s cannot be opened", name);
}

static void open_to_close(int bytes)
{
	(void)bytes;
	open_one(&file_to_close);
}

static void in_file_close(int bytes)
{
	(void)bytes;
	MPI_File_close(&file_to_close);
}

static void in_file_write(int bytes)
{
	MPI_File_write_at_all(file, (MPI_Offset)bytes * rank, out, bytes, MPI_BYTE,
			      MPI_STATUS_IGNORE);
}

static void in_file_read(int bytes)
{
	MPI_File_read_at_all(file, (MPI_Offset)bytes * rank, in, bytes, MPI_BYTE,
			     MPI_STATUS_IGNORE);
}

static void in_file_begin(int bytes)
{
	MPI_File_write_at_all_begin(file, (MPI_Offset)bytes * rank, out, bytes, MPI_BYTE);
	MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
}

static void in_file_view(int bytes)
{
	MPI_File_set_view(file, (MPI_Offset)bytes * rank, MPI_BYTE, MPI_BYTE, "native",
			  MPI_INFO_NULL);
	MPI_File_write_all(file, out, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
	MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static void in_file_sync(int bytes)
{
	(void)bytes;
	MPI_File_sync(file);
}

static void in_file_size(int bytes)
{
	MPI_File_set_size(file, bytes);
}

/* ---- buffered sends ------------------------------------------------------------------------- */

static void attach(int bytes)
{
	if (!rank)
		MPI_Buffer_attach(buffer, bytes + MPI_BSEND_OVERHEAD);
}

static void in_detach(int bytes)
{
	void *detached;
	int size;

	if (rank == 1)
		MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
	if (rank)
		return;
	MPI_Bsend(out, bytes, MPI_BYTE, 1, TAG, comm);
	MPI_Buffer_detach(&detached, &size);
	if (detached != buffer || size != bytes + MPI_BSEND_OVERHEAD)
		case_fail("MPI_Buffer_detach gave another buffer than was attached");
}

#ifdef MPICH_VERSION
/* More than 2 GiB: no message of the library's own can tell whether the buffer is empty. */
static const MPI_Count large = (MPI_Count)5 << 29;
static char *large_buffer;

static void attach_large(int bytes)
{
	(void)bytes;
	if (!rank)
		MPI_Buffer_attach_c(large_buffer, large);
}

static void in_detach_large(int bytes)
{
	void *detached;
	MPI_Count size;

	if (rank == 1)
		MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
	if (rank)
		return;
	MPI_Bsend(out, bytes, MPI_BYTE, 1, TAG, comm);
	MPI_Buffer_detach_c(&detached, &size);
	if (detached != large_buffer || size != large)
		case_fail("MPI_Buffer_detach_c gave another buffer than was attached");
}

static int raised;

static void count_errors(MPI_Comm *on, int *error, ...)
{
	(void)on;
	(void)error;
	raised++;
}

/* It ends at once, in an error. The communicator's handler is called once, and stays. */
static void in_failing_connect(int bytes)
{
	MPI_Errhandler counting, after;
	MPI_Comm self, made;
	int error;

	(void)bytes;
	if (rank)
		return;
	raised = 0;
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	MPI_Comm_create_errhandler(count_errors, &counting);
	MPI_Comm_set_errhandler(self, counting);
	error = MPI_Comm_connect("no port", MPI_INFO_NULL, 0, self, &made);
	MPI_Comm_get_errhandler(self, &after);
	if (error == MPI_SUCCESS || raised != 1 || after != counting)
		case_fail("MPI_Comm_connect to no port: error %d, raised %d times", error, raised);
	MPI_Errhandler_free(&after);
	MPI_Errhandler_free(&counting);
	MPI_Comm_free(&self);
}
#endif

/* ---- groups --------------------------------------------------------------------------------- */

#ifdef MPICH_VERSION
/* Open MPI 4.1 does not have it. */
static void in_intercomm_from_groups(int bytes)
{
	MPI_Group all, side[2];
	int first = rank >= ranks / 2,
	    range[2][3] = { { 0, ranks / 2 - 1, 1 }, { ranks / 2, ranks - 1, 1 } };
	MPI_Comm made;

	(void)bytes;
	MPI_Comm_group(comm, &all);
	MPI_Group_range_incl(all, 1, &range[0], &side[0]);
	MPI_Group_range_incl(all, 1, &range[1], &side[1]);
	MPI_Intercomm_create_from_groups(side[first], 0, side[!first], 0, "onecopy.progress",
					 MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
	MPI_Comm_free(&made);
	MPI_Group_free(&side[0]);
	MPI_Group_free(&side[1]);
	MPI_Group_free(&all);
}
#endif

const struct progress_blocking progress_windows[] = {
	{ "MPI_Win_start and MPI_Win_complete", in_complete, NULL },
	{ "MPI_Win_wait", in_win_wait, NULL },
	{ "MPI_Win_lock", in_lock, hold_one },
	{ "MPI_Win_lock behind MPI_Win_lock_all", in_lock_behind_all, hold_all },
	{ "MPI_Win_lock_all", in_lock_all, hold_one },
	{ "MPI_Win_flush", in_flush, clear },
	{ NULL, NULL, NULL },
};

const struct progress_blocking progress_more[] = {
	{ "MPI_Win_fence", in_fence, NULL },
	{ "MPI_Win_free", in_win_free, make_window },
	{ "MPI_Win_allocate", in_win_allocate, NULL },
	{ "MPI_Win_set_info", in_win_info, NULL },
	{ "MPI_File_close", in_file_close, open_to_close },
	{ "MPI_File_write_at_all", in_file_write, NULL },
	{ "MPI_File_read_at_all", in_file_read, NULL },
	{ "MPI_File_write_at_all_begin", in_file_begin, NULL },
	{ "MPI_File_set_view", in_file_view, NULL },
	{ "MPI_File_sync", in_file_sync, NULL },
	{ "MPI_File_set_size", in_file_size, NULL },
	{ "MPI_Buffer_detach", in_detach, attach },
#ifdef MPICH_VERSION
	{ "MPI_Intercomm_create_from_groups", in_intercomm_from_groups, NULL },
	{ "MPI_Buffer_detach_c of a large buffer", in_detach_large, attach_large },
	{ "MPI_Comm_connect that fails", in_failing_connect, NULL },
#endif
	{ NULL, NULL, NULL },
};

void progress_more_begin(MPI_Comm of_all)
{
	MPI_Group all;
	int other, number = (int)getpid();

	comm = of_all;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &ranks);
	buffer = malloc(MOST + MPI_BSEND_OVERHEAD);
	if (!buffer)
		case_fail("no memory for a buffer of %d bytes", MOST);
#ifdef MPICH_VERSION
	large_buffer = malloc((size_t)large);
	if (!large_buffer)
		case_fail("no memory for a buffer of %lld bytes", (long long)large);
#endif
	MPI_Win_create(area, MOST, 1, MPI_INFO_NULL, comm, &window);
	MPI_Win_create(&word, sizeof(word), 1, MPI_INFO_NULL, comm, &locked);
	other = rank ? 0 : 1;
	MPI_Comm_group(comm, &all);
	MPI_Group_incl(all, 1, &other, &partner);
	MPI_Group_free(&all);
	MPI_Bcast(&number, 1, MPI_INT, 0, comm);
	snprintf(name, sizeof(name), "/tmp/onecopy-progress-%d", number);
	open_one(&file);
}

void progress_more_end(void)
{
	MPI_File_close(&file);
	if (!rank)
		unlink(name);
	MPI_Win_free(&window);
	MPI_Win_free(&locked);
	MPI_Group_free(&partner);
	free(buffer);
#ifdef MPICH_VERSION
	free(large_buffer);
#endif
}
