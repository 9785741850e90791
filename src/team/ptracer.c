/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/ptracer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "os/os.h"

static struct {
	pthread_mutex_t lock;
	pid_t declared;
} tracer = { .lock = PTHREAD_MUTEX_INITIALIZER };

void oci_ptracer_fork_child(void)
{
	pthread_mutex_init(&tracer.lock, NULL);
	tracer.declared = 0;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
	while (pid > 0 && pid != ancestor)
		pid = oci_os_parent(pid);
	return pid == ancestor;
}

pid_t oci_common_ancestor(const pid_t *pids, uint32_t count)
{
	pid_t candidate = count ? pids[0] : 0;

	for (uint32_t i = 1; i < count && candidate > 0; i++) {
		while (candidate > 0 && !descends_from(pids[i], candidate))
			candidate = oci_os_parent(candidate);
	}
	return candidate > 0 ? candidate : 0;
}

static pid_t launcher_of(const struct oci_team *team)
{
	/* The declared process must cover the earlier teams too: it only moves upwards. */
	pid_t pair[2] = { tracer.declared, team->member[0].pid };
	pid_t nearest = tracer.declared ? oci_common_ancestor(pair, 2) : pair[1];

	for (uint32_t r = 1; r < team->size && nearest > 0; r++) {
		pair[0] = nearest;
		pair[1] = team->member[r].pid;
		nearest = oci_common_ancestor(pair, 2);
	}
	/* Every process of the user descends from init, or from what is init in a container: that
	 * is for ONECOPY_PTRACER=any to allow. */
	return nearest > 1 ? nearest : 0;
}

int oci_ptracer_declare(const struct oci_team *team)
{
	enum oci_ptracer how = oci_options()->ptracer;
	pid_t pid = -1;
	int error = 0;

	if (how == OCI_PTRACER_NONE)
		return 0;
	pthread_mutex_lock(&tracer.lock);
	if (how == OCI_PTRACER_ANCESTOR)
		pid = launcher_of(team);
	if (pid == 0)
		error = -ESRCH;
	else if (pid != tracer.declared)
		error = oci_os_set_ptracer(pid);
	if (!error)
		tracer.declared = pid;
	pthread_mutex_unlock(&tracer.lock);
	if (error)
		oci_info("cannot declare the launcher as tracer (Yama scope 1): %s; single copies "
			 "may be refused. ONECOPY_PTRACER=any allows every process of this user",
			 error == -ESRCH ? "the ranks have no common ancestor but init" :
					   strerror(-error));
	return error;
}
