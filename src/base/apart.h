/* SPDX-License-Identifier: BSD-3-Clause */
/* How far two ranks are from each other, by their own measurement. */
#ifndef OC_BASE_APART_H
#define OC_BASE_APART_H

enum oci_apart {
	OCI_APART_UNKNOWN, /* not yet, or of a call that cannot go by it */
	OCI_NEAR,	   /* they share a cache */
	OCI_FAR,
	OCI_APARTS
};

#endif
