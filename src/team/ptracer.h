/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Yama scope 1: a process may be traced (so also read by process_vm_readv) only by its ancestors
 * and by the one process that it declares, with that process's descendants. So each rank declares
 * the nearest common ancestor of the ranks, their launcher. This replaces a debugger's declaration.
 */
#ifndef OC_TEAM_PTRACER_H
#define OC_TEAM_PTRACER_H

#include "team/team.h"

/* Nearest process that is an ancestor of (or is) all of them; 0 when there is none. */
pid_t oci_common_ancestor(const pid_t *pids, uint32_t count);
/*
 * Declares the launcher of this team's members and of all earlier teams' (member[].pid are set).
 * ONECOPY_PTRACER: ancestor, any, or none. 0 or -errno, logged; -ESRCH: only init is it.
 */
int oci_ptracer_declare(const struct oci_team *team);
/* A child has declared nothing: the kernel does not pass it on. */
void oci_ptracer_fork_child(void);

#endif
