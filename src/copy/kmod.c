/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies by the kernel module (docs/adr/0026, 0027): the pages of a registered buffer are pinned
 * once, however many ranks copy from or to it, in either direction and any part, so no copy takes
 * the owner's page-table lock, as process_vm_readv() does for each page.
 *
 * Large ones are asked of a DMA engine where the module may use any (docs/adr/0033).
 */
#include "copy/kmod.h"

#include <errno.h>

#include "copy/layout.h"
#include "copy/memcpy.h"
#include "os/os.h"

/* Threads of one process count together; nothing is ordered by it. */
static struct oci_kmod_counts counted;

static void advance(struct oci_cursor *c, size_t bytes)
{
	size_t length;

	for (; bytes && (length = oci_cursor_rest(c)); bytes -= length, c->at += length)
		length = length < bytes ? length : bytes;
}

static size_t engines_above;

void oci_kmod_engines_above(size_t bytes)
{
	engines_above = bytes;
}

static bool is_for_engine(size_t bytes, size_t by_cpu)
{
	if (!oci_registrations_channels())
		return false;
	if (engines_above)
		return bytes >= oci_os_page_bytes() && by_cpu > engines_above;
	return oci_memcpy_goes_past(bytes, by_cpu);
}

/* By an engine both sides are pinned, which my side may not be: a limit, or memory of a device. The
 * CPU needs none of that. */
static ssize_t copy_pieces(const struct oci_registered *there, const struct iovec *pieces,
			   unsigned int count, size_t bytes, unsigned int flags)
{
	ssize_t moved = oci_os_kmod_copy(oci_registrations_device(), there->cookie, there->offset,
					 pieces, count, bytes, flags);

	if (moved < 0 && flags & OCI_OS_KMOD_DMA)
		return copy_pieces(there, pieces, count, bytes, flags & ~OCI_OS_KMOD_DMA);
	return moved;
}

/* As far as one call goes; bytes or -errno, 0: no pieces of mine are left. */
static ssize_t copy_some(const struct oci_end *end, struct oci_cursor *mine, uint64_t remote,
			 size_t bytes, unsigned int flags)
{
	struct iovec pieces[OCI_LAYOUT_CUT];
	struct oci_registered there;
	unsigned int count;
	ssize_t moved;

	if (!oci_registration_find(end->registrations, remote, &there))
		return -ENOENT;
	if (bytes > there.bytes)
		bytes = there.bytes;
	count = oci_cursor_cut(mine, &bytes, pieces, OCI_LAYOUT_CUT);
	if (!count)
		return 0;
	if (is_for_engine(bytes, end->by_cpu))
		flags |= OCI_OS_KMOD_DMA;
	moved = copy_pieces(&there, pieces, count, bytes, flags);
	if (moved > 0)
		advance(mine, (size_t)moved);
	return moved;
}

static ssize_t copy(const struct oci_end *end, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes, unsigned int flags)
{
	struct oci_cursor mine = { local, locals, 0 };
	ssize_t all = 0, moved = 1;

	for (; remotes && moved > 0; remote++, remotes--) {
		for (size_t at = 0; at < remote->iov_len; at += (size_t)moved) {
			moved = copy_some(end, &mine, (uintptr_t)remote->iov_base + at,
					  remote->iov_len - at, flags);
			if (moved <= 0)
				break;
			all += moved;
		}
	}
	__atomic_fetch_add(&counted.bytes, (uint64_t)all, __ATOMIC_RELAXED);
	return all ? all : moved > 0 ? 0 : moved;
}

static ssize_t pull(const struct oci_end *end, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes)
{
	return copy(end, local, locals, remote, remotes, 0);
}

static ssize_t push(const struct oci_end *end, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes)
{
	return copy(end, local, locals, remote, remotes, OCI_OS_KMOD_WRITE);
}

const struct oci_copy oci_copy_kmod = {
	.name = "kmod",
	.what = "single copies by the kernel module onecopy, of memory that is pinned once",
	.pull = pull,
	.push = push,
};

void oci_kmod_missed(void)
{
	__atomic_fetch_add(&counted.misses, 1, __ATOMIC_RELAXED);
}

struct oci_kmod_counts oci_kmod_counts(void)
{
	return (struct oci_kmod_counts){
		.bytes = __atomic_load_n(&counted.bytes, __ATOMIC_RELAXED),
		.misses = __atomic_load_n(&counted.misses, __ATOMIC_RELAXED),
	};
}

/* ---- what is registered ---------------------------------------------------------------------- */

/* All that lies between the ends of some pieces. */
struct extent {
	uint64_t from, to;
	size_t bytes, count; /* of the pieces */
};

static void extend(struct extent *e, uint64_t address, size_t bytes)
{
	if (!bytes)
		return;
	if (!e->count || address < e->from)
		e->from = address;
	if (!e->count || address + bytes > e->to)
		e->to = address + bytes;
	e->bytes += bytes;
	e->count++;
}

/* Beyond that many pieces that lie far from each other none is registered: they would take the
 * places of all that is. */
#define PIECES_MOST (OCI_REGISTRATIONS / 4)

/* True: that is all; else each piece is registered, as far as they are few. */
static bool register_extent(const struct extent *e)
{
	bool dense = !e->count || e->to - e->from <= e->bytes + e->count * oci_os_page_bytes();

	if (dense && e->count)
		oci_register(e->from, e->to - e->from);
	return dense || e->count > PIECES_MOST;
}

void oci_register_layout(const struct oc_layout *layout)
{
	struct extent e = { 0 };

	for (size_t i = 0; i < layout->count; i++)
		extend(&e, (uintptr_t)layout->pieces[i].address,
		       layout->pieces[i + 1].at - layout->pieces[i].at);
	if (!register_extent(&e))
		for (size_t i = 0; i < layout->count; i++)
			oci_register((uintptr_t)layout->pieces[i].address,
				     layout->pieces[i + 1].at - layout->pieces[i].at);
	oci_register((uintptr_t)layout->pieces, (layout->count + 1) * sizeof(*layout->pieces));
}

void oci_register_blocks(uint64_t base, const struct oc_block *blocks, size_t count)
{
	struct extent e = { 0 };

	for (size_t i = 0; i < count; i++)
		extend(&e, base + blocks[i].offset, blocks[i].bytes);
	if (!register_extent(&e))
		for (size_t i = 0; i < count; i++)
			oci_register(base + blocks[i].offset, blocks[i].bytes);
}
