/* SPDX-License-Identifier: BSD-3-Clause */
#include "filter.h"

#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the filter is there: what the call itself would say of such arguments is another error.
 */
static int is_refused(int call, int error)
{
	return syscall(call, -1L, -1L, -1L, -1L, -1L, -1L) < 0 && errno == error;
}

/* With each call of the list; -errno. */
static int for_each(const char *calls, int (*use)(int call, int error, void *context), int error,
		    void *context)
{
	char *list = strdup(calls), *rest = list, *name;
	int err = list ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ","))) {
		int call = seccomp_syscall_resolve_name(name);

		err = call == __NR_SCMP_ERROR ? -ENOSYS : use(call, error, context);
	}
	free(list);
	return err;
}

static int refuse(int call, int error, void *filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned int)error), call, 0);
}

static int look(int call, int error, void *context)
{
	(void)context;
	return is_refused(call, error) ? 0 : -ENOTSUP;
}

int filter_install(const char *calls, int error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!filter)
		return -ENOMEM;
	err = for_each(calls, refuse, error, filter);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err ? err : for_each(calls, look, error, NULL);
}
