/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that may wait for other processes and have no nonblocking form: those that make and end
 * communicators, windows and files, synchronise windows, are collective on files, or wait for
 * buffered messages. While something of ours is outstanding a helper drives it (helper.c).
 */
#include "pmpi.h"

#define HELPED(name, parameters, arguments)                        \
	int oci_pmpi_##name(OCI_LIST parameters)                   \
	{                                                          \
		return OCI_HELPED(PMPI(name)(OCI_LIST arguments)); \
	}

/* clang-format off */

/* ---- communicators ----------------------------------------------------------------------------
 */

HELPED(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
HELPED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
HELPED(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
HELPED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
       (comm, group, tag, made))
HELPED(Comm_create_from_group,
       (MPI_Group group, const char *words, MPI_Info info, MPI_Errhandler handler, MPI_Comm *made),
       (group, words, info, handler, made))
HELPED(Intercomm_create,
       (MPI_Comm local, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made),
       (local, leader, peer, remote, tag, made))
HELPED(Intercomm_create_from_groups,
       (MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char *words,
	MPI_Info info, MPI_Errhandler handler, MPI_Comm *made),
       (local, leader, remote, remote_leader, words, info, handler, made))
HELPED(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
HELPED(Cart_create,
       (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
	MPI_Comm *made),
       (comm, ndims, dims, periods, reorder, made))
HELPED(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made))
HELPED(Graph_create,
       (MPI_Comm comm, int nodes, const int indx[], const int edges[], int reorder,
	MPI_Comm *made),
       (comm, nodes, indx, edges, reorder, made))
HELPED(Dist_graph_create,
       (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
	const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
       (comm, n, sources, degrees, destinations, weights, info, reorder, made))
HELPED(Dist_graph_create_adjacent,
       (MPI_Comm comm, int in, const int sources[], const int inweights[], int out,
	const int destinations[], const int outweights[], MPI_Info info, int reorder,
	MPI_Comm *made),
       (comm, in, sources, inweights, out, destinations, outweights, info, reorder, made))
HELPED(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
       (port, info, root, comm, made))
HELPED(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
       (port, info, root, comm, made))
HELPED(Comm_join, (int fd, MPI_Comm *made), (fd, made))
HELPED(Comm_spawn,
       (const char *command, char *argv[], int most, MPI_Info info, int root, MPI_Comm comm,
	MPI_Comm *made, int codes[]),
       (command, argv, most, info, root, comm, made, codes))
HELPED(Comm_spawn_multiple,
       (int count, char *commands[], char **argvs[], const int most[], const MPI_Info infos[],
	int root, MPI_Comm comm, MPI_Comm *made, int codes[]),
       (count, commands, argvs, most, infos, root, comm, made, codes))
/* clang-format on */

/* The info keys of a communicator, which are there from its first call on. */
static int take_info(int error, const MPI_Comm *comm, MPI_Info info)
{
	struct oci_pmpi_comm *state = error ? NULL : oci_pmpi_comm_get(*comm);

	if (state)
		oci_pmpi_forced_take(state, info);
	return error;
}

int oci_pmpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED(PMPI(Comm_dup_with_info)(comm, info, made)), made, info);
}

int oci_pmpi_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
	return take_info(OCI_HELPED(PMPI(Comm_split_type)(comm, type, key, info, made)), made,
			 info);
}

/* The MPI names the communicator at once, and its object needs nothing of what is still to be
 * agreed on. */
int oci_pmpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request)
{
	return take_info(PMPI(Comm_idup_with_info)(comm, info, made, request), made, info);
}

int oci_pmpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	return take_info(PMPI(Comm_set_info)(comm, info), &comm, info);
}

int oci_pmpi_Comm_free(MPI_Comm *comm)
{
	int error = PMPI(Comm_free)(comm);

	oci_pmpi_comm_reap();
	return error;
}

/* It waits until all that is outstanding on the communicator is over, ours too. */
int oci_pmpi_Comm_disconnect(MPI_Comm *comm)
{
	struct oci_pmpi_comm *state = comm ? oci_pmpi_comm_get(*comm) : NULL;
	uint32_t turns = 0;
	int error;

	while (state && __atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE)) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	error = OCI_HELPED(PMPI(Comm_disconnect)(comm));
	oci_pmpi_comm_reap();
	return error;
}

/* ---- windows ----------------------------------------------------------------------------------
 */

uint32_t oci_pmpi_windows;

static int count_windows(int error, uint32_t more)
{
	if (!error)
		__atomic_fetch_add(&oci_pmpi_windows, more, __ATOMIC_RELAXED);
	return error;
}

#define MAKE_WINDOW(name, parameters, arguments)                                     \
	int oci_pmpi_##name(OCI_LIST parameters)                                     \
	{                                                                            \
		return count_windows(OCI_HELPED(PMPI(name)(OCI_LIST arguments)), 1); \
	}

/* clang-format off */
MAKE_WINDOW(Win_create,
	    (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
	    (base, size, unit, info, comm, win))
MAKE_WINDOW(Win_create_c,
	    (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
	    (base, size, unit, info, comm, win))
MAKE_WINDOW(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
MAKE_WINDOW(Win_allocate,
	    (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
	    (size, unit, info, comm, base, win))
MAKE_WINDOW(Win_allocate_c,
	    (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
	    (size, unit, info, comm, base, win))
MAKE_WINDOW(Win_allocate_shared,
	    (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
	    (size, unit, info, comm, base, win))
MAKE_WINDOW(Win_allocate_shared_c,
	    (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
	    (size, unit, info, comm, base, win))
HELPED(Win_set_info, (MPI_Win win, MPI_Info info), (win, info))
HELPED(Win_fence, (int assert, MPI_Win win), (assert, win))
HELPED(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
HELPED(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
HELPED(Win_complete, (MPI_Win win), (win))
HELPED(Win_wait, (MPI_Win win), (win))
HELPED(Win_lock, (int type, int target, int assert, MPI_Win win), (type, target, assert, win))
HELPED(Win_lock_all, (int assert, MPI_Win win), (assert, win))
HELPED(Win_unlock, (int target, MPI_Win win), (target, win))
HELPED(Win_unlock_all, (MPI_Win win), (win))
HELPED(Win_flush, (int target, MPI_Win win), (target, win))
HELPED(Win_flush_all, (MPI_Win win), (win))
HELPED(Win_flush_local, (int target, MPI_Win win), (target, win))
HELPED(Win_flush_local_all, (MPI_Win win), (win))
/* clang-format on */

int oci_pmpi_Win_free(MPI_Win *win)
{
	return count_windows(OCI_HELPED(PMPI(Win_free)(win)), (uint32_t)-1);
}

/* Those that programs call again and again until a peer has done something. */
#define DRIVEN(name, parameters, arguments)  \
	int oci_pmpi_##name parameters       \
	{                                    \
		if (oci_pmpi_attention())    \
			oci_pmpi_drive();    \
		return PMPI(name) arguments; \
	}

/* clang-format off */
DRIVEN(Win_test, (MPI_Win win, int *flag), (win, flag))
DRIVEN(Win_sync, (MPI_Win win), (win))
DRIVEN(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag))

/* ---- files ------------------------------------------------------------------------------------
 *
 * Calls of one process wait for the file system only. Nonblocking collective ones are driven by
 * whoever waits for them, and MPI_File_..._end finds done what _begin has done in MPICH.
 */

HELPED(File_open, (MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file),
       (comm, name, mode, info, file))
HELPED(File_close, (MPI_File *file), (file))
HELPED(File_set_size, (MPI_File file, MPI_Offset size), (file, size))
HELPED(File_preallocate, (MPI_File file, MPI_Offset size), (file, size))
HELPED(File_set_view,
       (MPI_File file, MPI_Offset at, MPI_Datatype unit, MPI_Datatype type, const char *words,
	MPI_Info info),
       (file, at, unit, type, words, info))
HELPED(File_set_info, (MPI_File file, MPI_Info info), (file, info))
HELPED(File_set_atomicity, (MPI_File file, int atomic), (file, atomic))
HELPED(File_seek_shared, (MPI_File file, MPI_Offset at, int whence), (file, at, whence))
HELPED(File_sync, (MPI_File file), (file))

#define READ_AND_WRITE(kind, c, count_type) \
	HELPED(File_read_##kind##c, \
	       (MPI_File file, void *buffer, count_type count, MPI_Datatype type, \
		MPI_Status *status), \
	       (file, buffer, count, type, status)) \
	HELPED(File_write_##kind##c, \
	       (MPI_File file, const void *buffer, count_type count, MPI_Datatype type, \
		MPI_Status *status), \
	       (file, buffer, count, type, status)) \
	HELPED(File_read_##kind##_begin##c, \
	       (MPI_File file, void *buffer, count_type count, MPI_Datatype type), \
	       (file, buffer, count, type)) \
	HELPED(File_write_##kind##_begin##c, \
	       (MPI_File file, const void *buffer, count_type count, MPI_Datatype type), \
	       (file, buffer, count, type))
#define READ_AND_WRITE_AT(c, count_type) \
	HELPED(File_read_at_all##c, \
	       (MPI_File file, MPI_Offset at, void *buffer, count_type count, MPI_Datatype type, \
		MPI_Status *status), \
	       (file, at, buffer, count, type, status)) \
	HELPED(File_write_at_all##c, \
	       (MPI_File file, MPI_Offset at, const void *buffer, count_type count, \
		MPI_Datatype type, MPI_Status *status), \
	       (file, at, buffer, count, type, status)) \
	HELPED(File_read_at_all_begin##c, \
	       (MPI_File file, MPI_Offset at, void *buffer, count_type count, MPI_Datatype type), \
	       (file, at, buffer, count, type)) \
	HELPED(File_write_at_all_begin##c, \
	       (MPI_File file, MPI_Offset at, const void *buffer, count_type count, \
		MPI_Datatype type), \
	       (file, at, buffer, count, type))
READ_AND_WRITE(all, , int)
READ_AND_WRITE(ordered, , int)
READ_AND_WRITE_AT(, int)
READ_AND_WRITE(all, _c, MPI_Count)
READ_AND_WRITE(ordered, _c, MPI_Count)
READ_AND_WRITE_AT(_c, MPI_Count)

/* ---- buffered messages ------------------------------------------------------------------------
 *
 * It waits until they have been taken.
 */

HELPED(Buffer_detach, (void *buffer, int *bytes), (buffer, bytes))
HELPED(Buffer_detach_c, (void *buffer, MPI_Count *bytes), (buffer, bytes))
/* clang-format on */
