/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Open MPI finds in mca_coll_onecopy.so.
 *
 * Nothing of Open MPI's inner layout is touched before two checks: that the running library is of
 * the minor version that the headers are of (a component of another one would read wrong offsets),
 * and that a predefined datatype, read with these headers, is what it must be (a debug build of the
 * same version lays out its objects otherwise).
 */
#include "component.h"
#include "memory.h"

#include "ompi/win/win.h"
#include "opal/mca/base/base.h"
#include "opal/runtime/opal.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"

#include <stdlib.h>
#include <string.h>

int oci_ompi_priority = 90;

static bool initialized; /* by MPI_Init, with both checks passed */
static bool driving;	 /* progress is registered */
static bool often;	 /* drive_engine() is, too; atomic */
static opal_mutex_t drive_lock = OPAL_MUTEX_STATIC_INIT;

/*
 * This thread is inside opal_progress() that the engine called, or inside the engine that
 * opal_progress() called: neither may enter the other again.
 */
static _Thread_local bool entered __attribute__((tls_model("initial-exec")));

static opal_mutex_t look_lock = OPAL_MUTEX_STATIC_INIT;
static unsigned int looks; /* threads that are in one; with the lock held */
static bool yields;	   /* what Open MPI was told to do when idle */

/* The engine tells by its time whether a look did anything: it is not to yield. */
static void look(void)
{
	OPAL_THREAD_LOCK(&look_lock);
	if (!looks++)
		yields = opal_progress_set_yield_when_idle(false);
	OPAL_THREAD_UNLOCK(&look_lock);
	opal_progress();
	OPAL_THREAD_LOCK(&look_lock);
	if (!--looks)
		opal_progress_set_yield_when_idle(yields);
	OPAL_THREAD_UNLOCK(&look_lock);
}

/*
 * The MPI's progress while a collective of ours waits. Others may need us at any moment as long as
 * there is a window: then this is a turn of a wait of the MPI's. If that yields, as it was told to,
 * the engine neither yields nor sleeps.
 */
static int drive_mpi(void)
{
	/* MPI_WIN_NULL is in this table, too. */
	int windows = ompi_mpi_windows.size - ompi_mpi_windows.number_free - 1;
	bool needed = windows > 0, outer = entered;

	entered = true;
	/* As we are in the engine, its progress does not come to them. */
	oci_mpi_requests_step_levels();
	if (needed)
		opal_progress();
	else
		look();
	entered = outer;
	return !needed ? 0 : opal_progress_yield_when_idle ? 2 : 1;
}

/* A turn of any wait of the MPI's. Of low priority, which is in every eighth turn: in each one it
 * took 4 % of a ping-pong of 1 KiB (AMD EPYC of family 26, 2026-11-25). */
static int take_turn(void)
{
	oc_share_turn();
	return 0;
}

/* Our progress while the program is in any other MPI call. */
static int drive_engine(void)
{
	int moved;

	if (!oci_mpi_requests_pending() || entered)
		return 0;
	entered = true;
	moved = oc_progress();
	entered = false;
	return moved + oci_mpi_requests_progress();
}

void oci_ompi_progress_start(void)
{
	opal_mutex_lock(&drive_lock);
	/* The first call may come before the MPI has counted the program's threads. */
	if (driving && opal_using_threads())
		oci_mpi_set_threads(true);
	if (!driving) {
		oci_mpi_set_threads(opal_using_threads());
		oc_set_progress(drive_mpi);
		driving = opal_progress_register_lp(take_turn) == OPAL_SUCCESS;
	}
	opal_mutex_unlock(&drive_lock);
}

void oci_ompi_progress_often(void)
{
	if (__atomic_load_n(&often, __ATOMIC_RELAXED))
		return;
	opal_mutex_lock(&drive_lock);
	if (!often && opal_progress_register(drive_engine) == OPAL_SUCCESS)
		__atomic_store_n(&often, true, __ATOMIC_RELAXED);
	opal_mutex_unlock(&drive_lock);
}

void oci_ompi_progress_stop(void)
{
	if (driving)
		opal_progress_unregister(take_turn);
	if (often)
		opal_progress_unregister(drive_engine);
	driving = often = false;
	oc_set_progress(NULL);
}

/* A job's ranks would all say it: the first speaks for them. */
static bool speaks(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");

	return !rank || !strcmp(rank, "0");
}

static bool version_fits(void)
{
	int major = 0, minor = 0;

	if (sscanf(opal_version_string, "%d.%d", &major, &minor) == 2 &&
	    major == OMPI_MAJOR_VERSION && minor == OMPI_MINOR_VERSION)
		return true;
	if (speaks())
		oci_warn("this component was built for Open MPI %d.%d, but Open MPI %s is "
			 "running: all collectives stay with the MPI; build onecopy against the "
			 "Open MPI that runs",
			 OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, opal_version_string);
	return false;
}

static int component_register(void)
{
	extern mca_coll_base_component_t mca_coll_onecopy_component;

	if (!version_fits())
		return OPAL_ERR_NOT_AVAILABLE;
	mca_base_component_var_register(
		&mca_coll_onecopy_component.collm_version, "priority",
		"Priority of the onecopy coll component (single-copy collectives inside a node); "
		"-1 disables it. Everything else is set by environment variables ONECOPY_*, see "
		"onecopy info --options",
		MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
		&oci_ompi_priority);
	return OPAL_SUCCESS;
}

static bool layout_fits(void)
{
	const oci_ompi_type *type = &ompi_mpi_double.dt;

	/* Modules have grown in 5.0.10. */
	if (type->super.size == sizeof(double) && !strcmp(type->name, "MPI_DOUBLE") &&
	    OBJ_CLASS(mca_coll_base_module_t)->cls_sizeof == sizeof(mca_coll_base_module_t))
		return true;
	if (speaks())
		oci_warn("the running Open MPI %s lays out its objects otherwise than the "
			 "headers that this component was built with (a debug build, another "
			 "patch level?): all collectives stay with the MPI; build onecopy "
			 "against the Open MPI that runs",
			 opal_version_string);
	return false;
}

/* How to tell Open MPI that no buffer is memory of a device. */
#if OMPI_MAJOR_VERSION < 5
#define NO_DEVICES "--mca opal_cuda_support 0"

/* Another version's library lacks these: then the version check refuses us, not the linker. */
#pragma weak opal_built_with_cuda_support
#pragma weak opal_cuda_support

/* Open MPI sets the second from the first, unless it is told otherwise; where the first is false,
 * the second means nothing (opal_params.c, 4.1.4). */
static bool has_devices(void)
{
	return &opal_built_with_cuda_support && opal_built_with_cuda_support &&
	       &opal_cuda_support && opal_cuda_support;
}
#else
#define NO_DEVICES "--mca accelerator null"

#pragma weak opal_accelerator_base_selected_component

/* `null` is the component for no accelerator. */
static bool has_devices(void)
{
	return &opal_accelerator_base_selected_component &&
	       strcmp(opal_accelerator_base_selected_component.base_version.mca_component_name,
		      "null") != 0;
}
#endif

/* Any buffer may be a device's then, which only the MPI can read and write; to ask of each would
 * cost every call. */
static bool moves_device_memory(void)
{
	if (!has_devices())
		return false;
	oci_info("this Open MPI moves device memory, which onecopy cannot reach: all "
		 "collectives of this process stay with the MPI; if the program gives the MPI "
		 "no device buffers, run it with " NO_DEVICES);
	return true;
}

/* Open MPI 5's, with ULFM. */
extern bool ompi_ftmpi_enabled;
#pragma weak ompi_ftmpi_enabled

/* Ranks in a collective of ours do not see that the communicator is revoked, and a dead one is
 * told by another error class than such programs look for. */
static bool survives_failures(void)
{
	if (!&ompi_ftmpi_enabled || !ompi_ftmpi_enabled)
		return false;
	oci_info("this Open MPI goes on without failed processes (ULFM), which onecopy does "
		 "not: all collectives of this process stay with the MPI; if the program does "
		 "not use it, run it without --with-ft");
	return true;
}

/*
 * In MPI_Init, before processes exchange what they published. A process that does not take part is
 * as if the component were not there; from here on nothing may exclude one that does.
 */
static int component_open(void)
{
	if (oci_mpi_switched_off() || oci_ompi_priority < 0 || !layout_fits() ||
	    moves_device_memory() || survives_failures() || !oci_ompi_modex_publish())
		return OPAL_ERR_NOT_AVAILABLE;
	oc_serve_messages();
	return OPAL_SUCCESS;
}

/* Later in MPI_Init. */
static int init_query(bool progress_threads, bool user_threads)
{
	(void)progress_threads;
	(void)user_threads;
	initialized = true;
	if (oc_share_messages(OCI_OMPI_READER, OCI_OMPI_PROCESS.num_local_peers + 1))
		oci_ompi_progress_start();
	return OMPI_SUCCESS;
}

__attribute__((visibility("default"))) const struct oci_ompi_memory *oci_ompi_memory(void)
{
	static const struct oci_ompi_memory memory = { oc_alloc, oc_free };

	return initialized && OCI_OMPI_PROCESS.num_local_peers ? &memory : NULL;
}

/* In MPI_Finalize, when all communicators are gone; the run-time layer is still there. */
static int component_close(void)
{
	oci_ompi_progress_stop();
	/* With sessions of MPI-4 the MPI may begin again. */
	oci_mpi_requests_stop();
	oci_ompi_requests_drain();
	if (initialized)
		oc_stats_write((int)OMPI_PROC_MY_NAME->vpid, (int)OCI_OMPI_PROCESS.num_procs);
	initialized = false;
	return OMPI_SUCCESS;
}

__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_onecopy_component = {
	.collm_version = {
		OCI_OMPI_COLL_VERSION,
		.mca_component_name = "onecopy",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
				      OMPI_RELEASE_VERSION),
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.collm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.collm_init_query = init_query,
	.collm_comm_query = oci_ompi_comm_query,
};
