/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of nonblocking calls.
 *
 * libnbc counts the nonblocking collectives of a communicator as it gets them, in c_nbc_tag; the
 * number is the tag of their messages and must be alike on all members. It may get a call of the
 * program later than the program made it, on some members only (start.c), and Open MPI's own calls
 * for the creation of a communicator come from inside its progress, on each member anywhere among
 * the program's. So we count, and put the number in c_nbc_tag for the moment in which libnbc reads
 * it. The program's calls get theirs when they are made, whoever runs them, even numbers; Open
 * MPI's own get odd ones. Each of the two sequences is alike on all members, whatever the other
 * does. libnbc's own count goes wrong besides where a member's part of a call is empty: it gives
 * that member none (4.1.4).
 *
 * That holds where one module has all of the nonblocking functions below us, as libnbc has, and
 * none stands above us. With others (adapt and hcoll, at a user's wish) the numbers are theirs.
 */
#include "component.h"

#include "ompi/mca/coll/base/coll_tags.h"
#include "opal/threads/mutex.h"

enum { FIRST = MCA_COLL_BASE_TAG_NONBLOCKING_BASE, SPAN = 1 << 29 };

_Static_assert(FIRST - SPAN > MCA_COLL_BASE_TAG_NONBLOCKING_END, "libnbc would begin anew");

enum { UNKNOWN, OURS, THEIRS };

static bool alone(const struct oci_ompi_module *module, const oci_ompi_comm *comm)
{
	const mca_coll_base_comm_coll_t *above = comm->c_coll, *below = &module->previous;

#define ALONE(name)                                                                           \
	if (above->coll_##name && above->coll_##name##_module != &module->super)              \
		return false;                                                                 \
	if (below->coll_##name && below->coll_##name##_module != below->coll_ibarrier_module) \
		return false;
	OCI_OMPI_NUMBERED(ALONE)
#undef ALONE
	return true;
}

uint32_t oci_ompi_number(struct oci_ompi_module *module, enum oci_ompi_caller caller)
{
	uint32_t *next = &module->numbers[caller];
	uint32_t own = opal_using_threads() ? __atomic_fetch_add(next, 1, __ATOMIC_RELAXED) :
					      (*next)++;

	return 2 * own + caller;
}

void oci_ompi_number_begin(struct oci_ompi_module *module, oci_ompi_comm *comm, uint32_t number)
{
	/* Not when the module is enabled: others may still come above us. */
	int whose = __atomic_load_n(&module->counting, __ATOMIC_RELAXED);

	if (whose == UNKNOWN) {
		whose = alone(module, comm) ? OURS : THEIRS;
		__atomic_store_n(&module->counting, whose, __ATOMIC_RELAXED);
	}
	/*
	 * Recursive: libnbc sends, which may come to progress and with it back to us. By then it
	 * has read the number, unless it had no memory for its request: it makes progress then,
	 * too.
	 */
	OPAL_THREAD_LOCK(&module->numbering);
	if (whose == OURS)
		comm->c_nbc_tag = FIRST - (int32_t)(number % SPAN);
}

void oci_ompi_number_end(struct oci_ompi_module *module)
{
	OPAL_THREAD_UNLOCK(&module->numbering);
}
