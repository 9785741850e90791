/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations: which of a process's memory its peers reach by the kernel module (kernel/), as it
 * tells them in its segment. What is copied, in whatever operation or message, is looked up there
 * by its address, so nothing else has to carry a cookie.
 *
 * The owner alone writes; whoever reads sees by `turn` whether it read one state of all four. A
 * cookie that is out of date is no danger: the module does not know it any more, and never gives it
 * again. A copy without a registration goes another way, which is whoever copies' own business.
 */
#ifndef OC_TEAM_REGISTRATION_H
#define OC_TEAM_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 KiB in all: whoever looks for an address reads 16 lines, which stay in its cache. */
#define OCI_REGISTRATIONS 32u

struct oci_registration {
	uint64_t turn;		 /* odd while the owner writes */
	uint64_t address, bytes; /* in the owner; whole pages */
	uint64_t cookie;	 /* 0: nothing is registered here */
};

/* ---- the owner's side: thread safe ----------------------------------------------------------- */

/* Opens the device, once, if ONECOPY_MECHANISM lets us use it, and registers the front of our
 * segment, which is there. */
void oci_registrations_begin(void);
/* The device's descriptor, or -errno. */
int oci_registrations_device(void);
/* Channels of DMA engines that the module might use when it was opened. */
uint64_t oci_registrations_channels(void);
/*
 * Peers may be about to copy from or to this memory of ours: it is registered, whole pages, unless
 * it is already. No error: what the kernel refuses (RLIMIT_MEMLOCK, memory that cannot be pinned)
 * is counted, and copied another way.
 */
void oci_register(uint64_t address, size_t bytes);

struct oci_registration_counts {
	uint64_t made, reused, refused;
	uint64_t gone;	   /* of those made: their memory was unmapped */
	uint64_t replaced; /* others needed their place */
};
struct oci_registration_counts oci_registration_counts(void);
/* In a child of fork(2): none is ours. */
void oci_registrations_fork_child(void);

/* ---- the peers' ------------------------------------------------------------------------------ */

struct oci_registered {
	uint64_t cookie, offset;
	uint64_t bytes; /* from there on */
};
/* Where an address of the owner lies, who has told these; NULL: none. */
bool oci_registration_find(const struct oci_registration *told, uint64_t address,
			   struct oci_registered *found);

#endif
