/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model is of one state of its machine: two CPUs may be near or far from each other, and a
 * virtual machine's come and go (docs/adr/0014).
 */
#ifndef OC_COLL_STATE_H
#define OC_COLL_STATE_H

#include "coll/coll.h"
#include "model/model.h"

/*
 * Does the model speak of two ranks that are as far from each other as these? Of reductions it does
 * only where it does whatever the ranks find, as they do not change between model and rows in a
 * program's course: the two may combine in different orders.
 */
bool oci_in_its_state(const struct oci_shape *shape, const struct oci_model *model);
/* Does the choice for two ranks depend on shape->apart for blocks of all sizes, but of reductions?
 */
bool oci_state_decides(const struct oci_model *model);
/* How far two ranks find each other where the model was measured, as far as that is sure. */
enum oci_apart oci_state_apart(const struct oci_model *model);

#endif
