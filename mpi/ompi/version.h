/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs between the versions of Open MPI that the component is written for: 4.1 and 5.0. */
#ifndef OC_OMPI_VERSION_H
#define OC_OMPI_VERSION_H

#include "ompi_config.h"

#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1

#include "ompi/mca/rte/rte.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"

#define OCI_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#define OCI_OMPI_PROCESS ompi_process_info
/* What reads large messages from a process on the node. */
#define OCI_OMPI_READER "mca_btl_vader.so"

/* What the processes of a job publish for each other. */
#define OCI_OMPI_GLOBAL OPAL_PMIX_GLOBAL
#define OCI_OMPI_STRING OPAL_STRING
/* Not in ompi_info, which starts no run-time layer. */
#define OCI_OMPI_CAN_PUBLISH (opal_pmix.put != NULL)

/* A subscriber gets and returns words that may be written, and the default may not be NULL. */
typedef char oci_ompi_key_char;

#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0

#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/accelerator/base/base.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/util/proc.h"

#define OCI_OMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#define OCI_OMPI_PROCESS opal_process_info
#define OCI_OMPI_READER "libopen-pal.so"

#define OCI_OMPI_GLOBAL PMIX_GLOBAL
#define OCI_OMPI_STRING PMIX_STRING
#define OCI_OMPI_CAN_PUBLISH PMIx_Initialized()

typedef const char oci_ompi_key_char;

#else
#error "this component is written for the internal interfaces of Open MPI 4.1 and 5.0"
#endif

#endif
