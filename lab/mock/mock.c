/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/mock/mock.h"

#include <string.h>

#include "copy/layout.h"

struct oci_mock oci_mock;

extern const struct oci_copy __real_oci_copy_cma, __wrap_oci_copy_cma;

static void scatter_gather(const struct iovec *to, unsigned int tos, const struct iovec *from,
			   unsigned int froms, size_t limit)
{
	size_t to_at = 0, from_at = 0;

	while (limit && tos && froms) {
		size_t n = to->iov_len - to_at;

		if (n > from->iov_len - from_at)
			n = from->iov_len - from_at;
		if (n > limit)
			n = limit;
		memmove((uint8_t *)to->iov_base + to_at, (uint8_t *)from->iov_base + from_at, n);
		to_at += n;
		from_at += n;
		limit -= n;
		if (to_at == to->iov_len) {
			to++;
			tos--;
			to_at = 0;
		}
		if (from_at == from->iov_len) {
			from++;
			froms--;
			from_at = 0;
		}
	}
}

static ssize_t mock_copy(const struct iovec *to, unsigned int tos, const struct iovec *from,
			 unsigned int froms)
{
	size_t room = oci_pieces_bytes(to, tos), there = oci_pieces_bytes(from, froms);
	size_t bytes = room < there ? room : there;
	unsigned int call = __atomic_add_fetch(&oci_mock.calls, 1, __ATOMIC_RELAXED);

	if (oci_mock.fail_every && call % oci_mock.fail_every == 0)
		return -oci_mock.fail_with;
	if (oci_mock.hook)
		oci_mock.hook();
	if (oci_mock.short_bytes && bytes > oci_mock.short_bytes)
		bytes = oci_mock.short_bytes;
	scatter_gather(to, tos, from, froms, bytes);
	return (ssize_t)bytes;
}

/* Relaxed: of what any thread copied, and read when they have ended; no order for those that a
 * sanitizer looks at. */
static void note(size_t by_cpu)
{
	size_t least = __atomic_load_n(&oci_mock.least_by_cpu, __ATOMIC_RELAXED);
	size_t most = __atomic_load_n(&oci_mock.most_by_cpu, __ATOMIC_RELAXED);

	while (by_cpu && (!least || by_cpu < least) &&
	       !__atomic_compare_exchange_n(&oci_mock.least_by_cpu, &least, by_cpu, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	while (by_cpu > most &&
	       !__atomic_compare_exchange_n(&oci_mock.most_by_cpu, &most, by_cpu, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static ssize_t mock_pull(const struct oci_end *end, const struct iovec *local, unsigned int locals,
			 const struct iovec *remote, unsigned int remotes)
{
	note(end->by_cpu);
	return oci_mock.enabled ? mock_copy(local, locals, remote, remotes) :
				  __real_oci_copy_cma.pull(end, local, locals, remote, remotes);
}

static ssize_t mock_push(const struct oci_end *end, const struct iovec *local, unsigned int locals,
			 const struct iovec *remote, unsigned int remotes)
{
	note(end->by_cpu);
	return oci_mock.enabled ? mock_copy(remote, remotes, local, locals) :
				  __real_oci_copy_cma.push(end, local, locals, remote, remotes);
}

/* Wherever the library names oci_copy_cma, the linker puts this. */
const struct oci_copy __wrap_oci_copy_cma = {
	.name = "cma",
	.what = "copies inside one process, with failures as dictated",
	.pull = mock_pull,
	.push = mock_push,
};
