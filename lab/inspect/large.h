/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory of a shared heap gets large pages on this machine, for people. src/heap/dso/huge.c
 * decides it for itself, as it may use nothing of this library.
 */
#ifndef OC_LAB_INSPECT_LARGE_H
#define OC_LAB_INSPECT_LARGE_H

#include <stdbool.h>

/* What it depends on; "" for a file that is not there. */
struct oci_large_settings {
	const char *enabled; /* /sys/kernel/mm/transparent_hugepage/enabled */
	const char *shmem;   /* and shmem_enabled */
	const char *nodes;   /* /sys/devices/system/node/online */
	bool collapse;	     /* the kernel has MADV_COLLAPSE */
};

/* A phrase for behind "large pages:", with the remedy where there are none. */
const char *oci_large_text(const struct oci_large_settings *settings);
/* The same of this machine, which it tries. */
const char *oci_large_pages(void);

#endif
