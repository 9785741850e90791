/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of loaded objects bound to functions of ours by address: the C library's names stay its
 * own.
 *
 * First, mimalloc's madvise() and mprotect(), and its mmap() and munmap() (range.c).
 *
 * mprotect() is how mimalloc says that it begins to use memory, and madvise() how it gives it back;
 * only its own are meant, not the program's. Nor would the names do: UCX writes a jump into the
 * first bytes of whatever `madvise` is in a process (its "bistro" hooks), to hear of memory that is
 * given back, and goes on by the system call. Under MPICH over UCX nothing was punched out then
 * (seen: 200 MiB of freed memory stayed in the file). So mimalloc calls heap_madvise(), which asks
 * by name, as before, and sees to the hole itself where that has not led to ours.
 *
 * Second, madvise() of the program and its libraries, for the same reason.
 *
 * Third, what changes mappings, in all objects that are loaded when the arena is made (open.c). If
 * these names were ours, hooks of UCX and Open MPI would be written over them, and would no more
 * hear of what the C library itself unmaps, as stacks of threads. Ours go on to whoever has the
 * name: a library that was preloaded in front of us, too.
 */
#include "dso.h"

static int bind_mimalloc(struct dl_phdr_info *info, size_t bytes, void *bound)
{
	static const struct oci_object_call calls[] = {
		{ "madvise", heap_madvise, false }, { "mprotect", heap_mprotect, false },
		{ "munmap", heap_munmap, false },   { "mmap", heap_mmap, false },
		{ "mmap64", heap_mmap, false },	    { 0 }
	};

	(void)bytes;
	if (!oci_object_holds(info, (uintptr_t)mi_malloc))
		return 0;
	/* Linked into ours, it is not told apart from what else is there. */
	if (oci_object_holds(info, (uintptr_t)heap_madvise))
		return 1;
	oci_object_bind(info, calls, bound);
	return 1;
}

bool heap_bind(bool *range)
{
	bool bound[5] = { false };

	dl_iterate_phdr(bind_mimalloc, bound);
	*range = bound[2] && (bound[3] || bound[4]);
	return bound[0] && bound[1];
}

struct binding {
	const struct oci_object_call *calls;
	void *const *others;
};

static int bind_other(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct oci_object_call calls[HEAP_CALLS_MOST + 1] = { 0 };
	const struct binding *binding = arg;
	bool bound[HEAP_CALLS_MOST];
	size_t count = 0;

	(void)bytes;
	if (oci_object_holds(info, (uintptr_t)heap_madvise) ||
	    oci_object_holds(info, (uintptr_t)mi_malloc))
		return 0;
	for (size_t i = 0; binding->calls[i].name; i++)
		if (!oci_object_holds(info, (uintptr_t)binding->others[i]))
			calls[count++] = binding->calls[i];
	oci_object_bind(info, calls, bound);
	return 0;
}

void heap_bind_all(const struct oci_object_call *calls, void *const *others)
{
	struct binding binding = { calls, others };

	dl_iterate_phdr(bind_other, &binding);
}
