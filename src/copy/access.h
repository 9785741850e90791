/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that is about to be copied by loads and stores. */
#ifndef OC_COPY_ACCESS_H
#define OC_COPY_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So long an answer holds: who unmaps or protects a buffer while the MPI has it is not told. */
#define OCI_ACCESS_NS ((uint64_t)16000000)

/* May this process read these bytes, or read and write them? False, too, if asking has taken too
 * much of late. Thread safe. */
bool oci_may_access(uint64_t address, size_t bytes, bool write);
/* In a child of fork(2). */
void oci_access_fork_child(void);

#endif
