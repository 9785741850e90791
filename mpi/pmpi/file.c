/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective calls on files: a barrier in which we drive comes first, as in construction.c. Who is
 * through it finds all processes of the file inside the call, and none of them needs us meanwhile.
 *
 * Calls of one process wait for the file system only. Nonblocking collective ones are driven by
 * whoever waits for them, and MPI_File_..._end finds done what _begin has done in MPICH.
 */
#include "pmpi.h"

/* A barrier, or a helper. `name`: calls on two files, in two threads, may be under way at a time.
 */
static bool enter(MPI_File file, const char *name)
{
	MPI_Group group;
	bool met;

	if (!oci_pmpi_job.active || !oci_pmpi_job.together || file == MPI_FILE_NULL ||
	    PMPI(File_get_group)(file, &group) != MPI_SUCCESS)
		return false;
	met = oci_pmpi_meet_members(group, oci_pmpi_meeting_hash(name));
	PMPI(Group_free)(&group);
	return !met && oci_pmpi_help();
}

int oci_pmpi_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file)
{
	bool helped = oci_pmpi_enter(comm);

	return oci_pmpi_helped(helped, PMPI(File_open)(comm, name, mode, info, file));
}

int oci_pmpi_File_close(MPI_File *file)
{
	bool helped = file && enter(*file, "MPI_File_close");

	return oci_pmpi_helped(helped, PMPI(File_close)(file));
}

#define ON_FILE(name, parameters, arguments)                                          \
	int oci_pmpi_##name(MPI_File file, OCI_LIST parameters)                       \
	{                                                                             \
		bool helped = enter(file, #name);                                     \
                                                                                      \
		return oci_pmpi_helped(helped, PMPI(name)(file, OCI_LIST arguments)); \
	}

/* clang-format off */
ON_FILE(File_set_size, (MPI_Offset size), (size))
ON_FILE(File_preallocate, (MPI_Offset size), (size))
ON_FILE(File_set_view,
	(MPI_Offset at, MPI_Datatype unit, MPI_Datatype type, const char *words, MPI_Info info),
	(at, unit, type, words, info))
ON_FILE(File_set_info, (MPI_Info info), (info))
ON_FILE(File_set_atomicity, (int atomic), (atomic))
ON_FILE(File_seek_shared, (MPI_Offset at, int whence), (at, whence))

#define READ_AND_WRITE(kind, c, count_type) \
	ON_FILE(File_read_##kind##c, \
		(void *buffer, count_type count, MPI_Datatype type, MPI_Status *status), \
		(buffer, count, type, status)) \
	ON_FILE(File_write_##kind##c, \
		(const void *buffer, count_type count, MPI_Datatype type, MPI_Status *status), \
		(buffer, count, type, status)) \
	ON_FILE(File_read_##kind##_begin##c, (void *buffer, count_type count, MPI_Datatype type), \
		(buffer, count, type)) \
	ON_FILE(File_write_##kind##_begin##c, \
		(const void *buffer, count_type count, MPI_Datatype type), (buffer, count, type))
#define READ_AND_WRITE_AT(c, count_type) \
	ON_FILE(File_read_at_all##c, \
		(MPI_Offset at, void *buffer, count_type count, MPI_Datatype type, \
		 MPI_Status *status), \
		(at, buffer, count, type, status)) \
	ON_FILE(File_write_at_all##c, \
		(MPI_Offset at, const void *buffer, count_type count, MPI_Datatype type, \
		 MPI_Status *status), \
		(at, buffer, count, type, status)) \
	ON_FILE(File_read_at_all_begin##c, \
		(MPI_Offset at, void *buffer, count_type count, MPI_Datatype type), \
		(at, buffer, count, type)) \
	ON_FILE(File_write_at_all_begin##c, \
		(MPI_Offset at, const void *buffer, count_type count, MPI_Datatype type), \
		(at, buffer, count, type))
READ_AND_WRITE(all, , int)
READ_AND_WRITE(ordered, , int)
READ_AND_WRITE_AT(, int)
READ_AND_WRITE(all, _c, MPI_Count)
READ_AND_WRITE(ordered, _c, MPI_Count)
READ_AND_WRITE_AT(_c, MPI_Count)
/* clang-format on */

int oci_pmpi_File_sync(MPI_File file)
{
	bool helped = enter(file, "MPI_File_sync");

	return oci_pmpi_helped(helped, PMPI(File_sync)(file));
}
