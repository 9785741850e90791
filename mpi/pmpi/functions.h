/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of MPI that this library stands in front of, and those that it calls. Names only:
 * entry.S reads this too.
 */
#ifndef OC_PMPI_FUNCTIONS_H
#define OC_PMPI_FUNCTIONS_H

#include <onecopy/collectives.h>

/* clang-format off */

/* The served collectives: MPI_name, MPI_Iname and MPI_name_init. */
#define OCI_BLOCKING(X) OC_FUNCTION_ROWS(OCI_ROW_BLOCKING, X)
#define OCI_NONBLOCKING(X) OC_FUNCTION_ROWS(OCI_ROW_NONBLOCKING, X)
#define OCI_PERSISTENT(X) OC_FUNCTION_ROWS(OCI_ROW_PERSISTENT, X)
#define OCI_ROW_BLOCKING(X, ID, name, Name, ...) X(Name)
#define OCI_ROW_NONBLOCKING(X, ID, name, Name, ...) X(I##name)
#define OCI_ROW_PERSISTENT(X, ID, name, Name, ...) X(Name##_init)

#define OCI_MESSAGES(X) \
	X(Send) X(Ssend) X(Rsend) X(Recv) X(Sendrecv) X(Sendrecv_replace) X(Probe) X(Mprobe)

#define OCI_COMPLETION(X) \
	X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome) \
	X(Request_free) X(Cancel) X(Start) X(Startall)

/* With large counts: MPI_name_c, MPI_Iname_c and MPI_name_init_c of collectives, and messages. */
#define OCI_ROW_LARGE(X, ID, name, Name, ...) X(Name##_c) X(I##name##_c) X(Name##_init_c)
#define OCI_LARGE(X) \
	OC_FUNCTION_ROWS_WITH_COUNTS(OCI_ROW_LARGE, X) \
	X(Send_c) X(Ssend_c) X(Rsend_c) X(Recv_c) X(Sendrecv_c) X(Sendrecv_replace_c)

/* After them something is to be done. */
#define OCI_COMMUNICATORS(X) \
	X(Comm_dup_with_info) X(Comm_idup_with_info) X(Comm_split_type) X(Comm_set_info) \
	X(Comm_free) X(Comm_disconnect) X(Win_free)

#define OCI_MEMORY(X) X(Alloc_mem) X(Free_mem)

#define OCI_LIFE(X) X(Init) X(Init_thread) X(Finalize) X(Type_free) X(Op_free)

/* ---- those that differ in nothing but their names (passed_on.c) ---- */

/* They make or end something that is common to the ranks, synchronise windows, are collective on a
 * file, receive a message that was found, or wait until buffered ones have been taken. */
#define OCI_MAY_WAIT(X) \
	X(Comm_split) X(Comm_create) X(Comm_create_group) X(Comm_create_from_group) \
	X(Intercomm_create) X(Intercomm_create_from_groups) X(Intercomm_merge) \
	X(Cart_create) X(Cart_sub) X(Graph_create) X(Dist_graph_create) \
	X(Dist_graph_create_adjacent) \
	X(Comm_spawn) X(Comm_spawn_multiple) X(Comm_accept) X(Comm_connect) X(Comm_join) \
	X(Win_fence) X(Win_post) X(Win_start) X(Win_wait) X(Win_set_info) \
	X(Win_complete) X(Win_lock) X(Win_lock_all) X(Win_unlock) X(Win_unlock_all) \
	X(Win_flush) X(Win_flush_all) X(Win_flush_local) X(Win_flush_local_all) \
	X(File_set_size) X(File_preallocate) X(File_set_view) \
	X(File_set_info) X(File_set_atomicity) X(File_seek_shared) X(File_sync) \
	X(File_read_all) X(File_write_all) X(File_read_at_all) X(File_write_at_all) \
	X(File_read_ordered) X(File_write_ordered) \
	X(File_read_all_begin) X(File_write_all_begin) X(File_read_at_all_begin) \
	X(File_write_at_all_begin) X(File_read_ordered_begin) X(File_write_ordered_begin) \
	X(File_read_all_c) X(File_write_all_c) X(File_read_at_all_c) X(File_write_at_all_c) \
	X(File_read_ordered_c) X(File_write_ordered_c) \
	X(File_read_all_begin_c) X(File_write_all_begin_c) X(File_read_at_all_begin_c) \
	X(File_write_at_all_begin_c) X(File_read_ordered_begin_c) X(File_write_ordered_begin_c) \
	X(Mrecv) X(Mrecv_c) \
	X(Buffer_detach) X(Buffer_detach_c) \
	X(Buffer_flush) X(Comm_flush_buffer) X(Comm_detach_buffer) X(Comm_detach_buffer_c) \
	X(Session_flush_buffer) X(Session_detach_buffer) X(Session_detach_buffer_c)

/* Likewise, and before they wait they call functions of attributes, as those of windows do. */
#define OCI_CALLS_BACK(X) X(Comm_dup) X(File_open)

/* Likewise, and there is a window more. */
#define OCI_MAKES_WINDOW(X) \
	X(Win_create) X(Win_create_c) X(Win_create_dynamic) X(Win_allocate) X(Win_allocate_c) \
	X(Win_allocate_shared) X(Win_allocate_shared_c)

/* Likewise, and with it goes a communicator that the MPI has copied. */
#define OCI_ENDS_COPY(X) X(File_close)

/* Programs call them again and again until a peer has done something. */
#define OCI_POLLED(X) \
	X(Iprobe) X(Improbe) X(Request_get_status) X(Request_get_status_all) \
	X(Request_get_status_any) X(Request_get_status_some) X(Win_test) X(Win_sync) X(Parrived)

/* Functions of ours with the prototypes of the MPI's, and those without any. */
#define OCI_TYPED(X) \
	OCI_BLOCKING(X) OCI_NONBLOCKING(X) OCI_PERSISTENT(X) OCI_MESSAGES(X) \
	OCI_COMPLETION(X) OCI_COMMUNICATORS(X) OCI_MEMORY(X) OCI_LIFE(X) OCI_LARGE(X)
#define OCI_PASSED_ON(X) \
	OCI_MAY_WAIT(X) OCI_CALLS_BACK(X) OCI_MAKES_WINDOW(X) OCI_ENDS_COPY(X) OCI_POLLED(X)
#define OCI_WRAPPED(X) OCI_TYPED(X) OCI_PASSED_ON(X)

/* Called, but not stood in front of. */
#define OCI_CALLED(X) \
	X(Isend) X(Issend) X(Irsend) X(Irecv) X(Recv_init) \
	X(Isend_c) X(Issend_c) X(Irsend_c) X(Irecv_c) X(Get_count) \
	X(Abort) X(Query_thread) \
	X(Comm_rank) X(Comm_size) X(Comm_test_inter) X(Comm_group) X(Comm_remote_group) \
	X(Comm_create_keyval) X(Comm_free_keyval) X(Comm_get_attr) X(Comm_set_attr) \
	X(Comm_delete_attr) X(Comm_set_errhandler) X(Comm_get_errhandler) X(Errhandler_free) X(Comm_call_errhandler) X(Comm_get_name) \
	X(Topo_test) X(Cartdim_get) X(Cart_shift) X(Graph_neighbors_count) X(Graph_neighbors) \
	X(Dist_graph_neighbors_count) X(Dist_graph_neighbors) \
	X(Group_size) X(Group_translate_ranks) X(Group_free) X(Info_get) X(Info_get_nkeys) \
	X(Type_create_keyval) X(Type_free_keyval) X(Type_get_attr) \
	X(Type_set_attr) \
	X(Type_get_envelope_c) X(Type_get_contents_c) X(Type_size_x) X(Type_get_extent_x) \
	X(Type_contiguous_c) X(Type_create_hindexed) X(Type_commit) \
	X(Type_get_true_extent_x) X(Pack_c) X(Unpack_c) X(Reduce_local_c) X(Op_commutative) \
	X(Add_error_class) X(Add_error_code) X(Add_error_string)

/* clang-format on */

#endif
