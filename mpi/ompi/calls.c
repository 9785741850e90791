/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that Open MPI calls: each collective, blocking, nonblocking and persistent, as one
 * description of the call (mpi/common) for whoever runs it.
 */
#include "component.h"

#include "common/fastpath.h"

#include <dlfcn.h>
#include <string.h>

#define CALL(...) ((struct oci_mpi_call)OCI_CALL(__VA_ARGS__))

static struct oci_ompi_module *module_of(mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = (struct oci_ompi_module *)module;

	oci_ompi_forced_update(self);
	return self;
}

/*
 * Open MPI calls some nonblocking functions for itself, from inside its progress too. They are told
 * from the program's by the function of libmpi that the call returns to: MPI_Ixxx or another one.
 * All members run one libmpi, so all tell alike.
 */
static bool is_programs(const void *place)
{
	Dl_info at, libmpi;

	/* Not a function of MPI: a preloaded library may have them as well, as our own one has. */
	return !dladdr(place, &at) || !dladdr((void *)(uintptr_t)ompi_comm_free, &libmpi) ||
	       at.dli_fbase != libmpi.dli_fbase || (at.dli_sname && strstr(at.dli_sname, "MPI_I"));
}

static bool called_by_program(const void *place)
{
	/* Places seen, shifted, with the lowest bit set where they are the program's; atomic.
	 * dladdr() looks through all names of libmpi, for some microseconds. */
	static uintptr_t seen[16];
	static unsigned int next;
	uintptr_t own = (uintptr_t)place << 1, known;

	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		known = __atomic_load_n(&seen[i], __ATOMIC_RELAXED);
		if ((known | 1) == (own | 1))
			return known & 1;
	}
	known = own | is_programs(place);
	__atomic_store_n(&seen[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 16], known,
			 __ATOMIC_RELAXED);
	return known & 1;
}

/*
 * One that Open MPI makes for itself when it creates a communicator, from inside its progress and
 * not at the same place among the program's calls on all members: never the engine's.
 */
static int start_own(mca_coll_base_module_t *module, const struct oci_mpi_call *call,
		     ompi_request_t **request)
{
	oci_mpi_count_back(call, "Open MPI's own call, for the creation of a communicator");
	return oci_ompi_underlying_start((struct oci_ompi_module *)module, call, request);
}

/* clang-format off */
/* The description of the call is written down out of line, where the short way does not do. */
#define BLOCKING(X, ID, name, Name, key, first, second, root, ...)                             \
	static __attribute__((noinline)) int general_##name(OCI_PARAMETERS(first, second, root) \
		struct oci_ompi_module *self, int status)                                      \
	{                                                                                      \
		const struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root);      \
                                                                                               \
		if (status != OC_HAND_BACK)                                                    \
			status = oci_mpi_run(&self->comm, &call);                              \
		return status == OC_HAND_BACK ? oci_ompi_underlying(self, &call) : status;     \
	}                                                                                      \
	static int name(OCI_PARAMETERS(first, second, root) oci_ompi_comm *comm,               \
			mca_coll_base_module_t *module)                                        \
	{                                                                                      \
		struct oci_ompi_module *self = module_of(module);                              \
		struct oci_mpi_operation o;                                                    \
		int status = MPI_SUCCESS;                                                      \
                                                                                               \
		(void)comm;                                                                    \
		if (!oci_mpi_open_short(&o, &CALL(ID, name, first, second, root),              \
					self->comm.rank, self->comm.size, false,               \
					oci_ompi_type_get))                                    \
			return general_##name(OCI_NAMES(first, second, root) self, status);    \
		status = oci_mpi_run_engine(&self->comm, &o.call, 0);                          \
		return status == OC_HAND_BACK ?                                                \
			       general_##name(OCI_NAMES(first, second, root) self, status) :   \
			       status;                                                         \
	}

/* Of a communicator that spans nodes. */
#define ACROSS(X, ID, name, Name, key, first, second, root, ...)                               \
	static int across_##name(OCI_PARAMETERS(first, second, root) oci_ompi_comm *comm,      \
				 mca_coll_base_module_t *module)                               \
	{                                                                                      \
		struct oci_ompi_module *self = module_of(module);                              \
		const struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root);      \
		int status = oci_mpi_levels_run(&self->comm, &call);                           \
                                                                                               \
		(void)comm;                                                                    \
		return status == OC_HAND_BACK ? oci_ompi_underlying(self, &call) : status;     \
	}

/* Open MPI calls the nonblocking functions of these for itself as well. */
#define IS_OWN(ID) (OC_##ID == OC_BCAST || OC_##ID == OC_REDUCE || OC_##ID == OC_ALLREDUCE)

/* The nonblocking and the persistent form. */
#define STARTED(X, ID, name, Name, key, first, second, root, ...)                              \
	static __attribute__((noinline)) int i##name(OCI_PARAMETERS(first, second, root)       \
		oci_ompi_comm *comm, ompi_request_t **request, mca_coll_base_module_t *module) \
	{                                                                                      \
		const struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root);      \
                                                                                               \
		(void)comm;                                                                    \
		if (IS_OWN(ID) && !called_by_program(__builtin_return_address(0)))             \
			return start_own(module, &call, request);                              \
		return oci_ompi_start(module_of(module), &call, request);                      \
	}                                                                                      \
	static int name##_init(OCI_PARAMETERS(first, second, root) oci_ompi_comm *comm,        \
			       struct ompi_info_t *info, ompi_request_t **request,             \
			       mca_coll_base_module_t *module)                                 \
	{                                                                                      \
		(void)comm;                                                                    \
		return oci_ompi_init(module_of(module), &CALL(ID, name, first, second, root),  \
				     info, request);                                           \
	}

OC_FUNCTION_ROWS(BLOCKING, )
OC_FUNCTION_ROWS(ACROSS, )
OC_FUNCTION_ROWS(STARTED, )
/* clang-format on */

void oci_ompi_serve(mca_coll_base_module_t *module, bool spans)
{
#define SERVE(name) module->coll_##name = spans ? across_##name : name;
	OCI_OMPI_COLLECTIVES(SERVE)
#undef SERVE
#define SERVE(name) module->coll_##name = name;
	OCI_OMPI_NONBLOCKING(SERVE)
	OCI_OMPI_PERSISTENT(SERVE)
#undef SERVE
}
