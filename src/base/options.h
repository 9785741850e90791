/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every run-time option of the library, in one table.
 *
 * An option is an environment variable; `onecopy info --options` prints the table. A value that
 * cannot be used gives one warning (naming variable, value and what is valid) and the default: a
 * job is never made to fail by an option. The struct is read-only after the first call.
 */
#ifndef OC_BASE_OPTIONS_H
#define OC_BASE_OPTIONS_H

#include "base/bytes.h"
#include "base/log.h"

#include <onecopy/collectives.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Choices, in the order in which the table has their words. */
enum oci_ptracer { OCI_PTRACER_ANCESTOR, OCI_PTRACER_ANY, OCI_PTRACER_NONE };
/* ONECOPY_MECHANISM has those up to shm and kmod, ONECOPY_P2P all but kmod. */
enum oci_way {
	OCI_WAY_AUTO,
	OCI_WAY_CMA,
	OCI_WAY_MAP,
	OCI_WAY_SHM,
	OCI_WAY_KMOD,
	OCI_WAY_EAGER = OCI_WAY_KMOD,
	OCI_WAY_VMSPLICE,
	OCI_WAY_WRITEV
};

enum oci_async {
	OCI_ASYNC_AUTO,
	OCI_ASYNC_CALLER,
	OCI_ASYNC_THREAD,
	OCI_ASYNC_URING,
	OCI_ASYNC_KMOD
};

enum oci_levels { OCI_LEVELS_AUTO, OCI_LEVELS_ON, OCI_LEVELS_SHARES, OCI_LEVELS_OFF };

struct oci_options {
	bool enable;		/* ONECOPY */
	enum oci_way mechanism; /* ONECOPY_MECHANISM */
	enum oci_levels levels; /* ONECOPY_LEVELS */
	enum oci_async async;	/* ONECOPY_ASYNC: who runs what is outstanding */
	/* ONECOPY_BARRIER .. ONECOPY_EXSCAN: algorithm[:parameter] or auto; "mpi" hands the
	 * collective back to the MPI. */
	const char *algorithm[OC_COLLECTIVES];
	enum oci_way p2p;	  /* ONECOPY_P2P */
	bool messages;		  /* ONECOPY_MESSAGES: map or share the MPI's own copies */
	enum oci_ptracer ptracer; /* ONECOPY_PTRACER */
	const char *stats_dir;	  /* ONECOPY_STATS_DIR: each process leaves its counters there */
	const char *tuning;	  /* ONECOPY_TUNING: path of the tuning file, "none", or NULL */
	size_t segment_bytes;	  /* ONECOPY_SEGMENT_BYTES: size limit of a process's segment */
	size_t heap_bytes;	  /* ONECOPY_HEAP_BYTES; libonecopy-heap.so reads it by itself */
	size_t map_bytes;	  /* ONECOPY_MAP_BYTES: address space for peers' shared heaps */
	size_t p2p_eager;	  /* ONECOPY_P2P_EAGER: bytes; SIZE_MAX: auto */
	uint32_t spins;		  /* ONECOPY_SPINS: polls before a wait yields or sleeps */
	bool check_calls;	/* ONECOPY_CHECK: off skips the header check of mismatched calls */
	enum oci_log_level log; /* ONECOPY_LOG; for the table, log.c reads it by itself */
};

/* Parses the environment at the first call (thread safe); the same pointer ever after. */
const struct oci_options *oci_options(void);

/*
 * A hash of the options that all ranks of a team must share, exchanged at team creation: enable,
 * mechanism, algorithms, segment limit and check. Not in it: levels (src/api/levels.c), async, log,
 * stats, p2p, messages, ptracer and spins, which are each rank's own affair.
 */
uint64_t oci_options_hash(void);

/* The table, for `onecopy info --options` and the man page: NULL past the end. */
struct oci_option_info {
	const char *variable; /* "ONECOPY_BCAST" */
	const char *value;    /* as in force, as text */
	const char *fallback; /* the default, as text */
	const char *from;     /* "environment" or "default" */
	const char *help;     /* one line */
};
const struct oci_option_info *oci_option_info(unsigned int index);

/*
 * The algorithm options are checked by the layer that knows the names (src/coll), which calls
 * this to warn in the form of the table, once per variable and process, and to have the default
 * shown as in force. The ranks of one job
 * share an environment, so those that their launcher calls other than 0 say it at info only.
 */
void oci_option_reject(const char *variable, const char *value, const char *expected);

/* How loudly a setting of the whole job is complained of: a warning by its first rank, info by the
 * others. */
enum oci_log_level oci_option_warning_level(void);

#endif
