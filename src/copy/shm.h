/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's side of shm.c, for transfer.c alone. */
#ifndef OC_COPY_SHM_H
#define OC_COPY_SHM_H

#include "copy/copy.h"

/* Publishes the request. 0, or as oci_slot_acquire(). */
int oci_shm_request(struct oci_team *team, struct oci_transfer *transfer);
/* My side of a helped transfer, as far as it goes. True when it is complete. */
bool oci_shm_step(struct oci_team *team, struct oci_transfer *transfer);
/*
 * Takes back the request of a transfer with patience: how many of its bytes are done, or SIZE_MAX
 * while the peer copies. The peer has no part in the rest.
 */
size_t oci_shm_withdraw(struct oci_team *team, const struct oci_transfer *transfer);
/* Value of the `served` word once `turns` turns of this request are served. */
uint64_t oci_shm_served(const struct oci_transfer *transfer, uint64_t turns);

#endif
