/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program measured between two hosts, by the MPI, into the terms of a network. */
#ifndef OC_TUNE_BETWEEN_H
#define OC_TUNE_BETWEEN_H

#include "model/model.h"

#define OCI_TUNE_NETWORK_SIZES 16

/* Seconds; 0: not measured. */
struct oci_tune_network {
	double bytes[OCI_TUNE_NETWORK_SIZES],
		half_s[OCI_TUNE_NETWORK_SIZES]; /* one way, by rising size */
	size_t count;
	double send_s, receive_s, gap_s;
	size_t eager_bytes;
	const char *mpi, *host; /* "Open MPI 4.1.4"; where it was measured */
};

/* A line of onecopy-network-MPI; false: it is none. */
bool oci_tune_network_line(struct oci_tune_network *network, const char *line);
/* Gives the terms to the model. 0, or -ENODATA: something was not measured. */
int oci_tune_network_terms(const struct oci_tune_network *network, struct oci_model *model);

#endif
