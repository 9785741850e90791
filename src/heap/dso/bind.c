/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of loaded objects bound to functions of ours by address: the C library's names stay its
 * own.
 *
 * First, mimalloc's madvise() and mprotect().
 *
 * mprotect() is how mimalloc says that it begins to use memory, and madvise() how it gives it back;
 * only its own are meant, not the program's. Nor would the names do: UCX writes a jump into the
 * first bytes of whatever `madvise` is in a process (its "bistro" hooks), to hear of memory that is
 * given back, and goes on by the system call. Under MPICH over UCX nothing was punched out then
 * (seen: 200 MiB of freed memory stayed in the file). So mimalloc calls heap_madvise(), which asks
 * by name, as before, and sees to the hole itself where that has not led to ours.
 *
 * Second, what changes mappings, in all objects that are loaded when the arena is made (open.c). If
 * these names were ours, hooks of UCX and Open MPI would be written over them, and would no more
 * hear of what the C library itself unmaps, as stacks of threads.
 */
#include "dso.h"
#include "object.h"
#include "raw.h"

#include <elf.h>
#include <string.h>

/* The slot may lie in what is read-only since the relocation: it is so again afterwards, where it
 * was. */
static bool set_slot(const struct dl_phdr_info *info, uintptr_t slot, void *function)
{
	uintptr_t page = slot & ~(uintptr_t)4095;
	int protection = PROT_READ | PROT_WRITE;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		/* The dynamic linker leaves a last page that is not whole writable. */
		if (part->p_type == PT_GNU_RELRO &&
		    slot - info->dlpi_addr - part->p_vaddr < part->p_memsz &&
		    page + 4096 <= info->dlpi_addr + part->p_vaddr + part->p_memsz)
			protection = PROT_READ;
	}
	if (raw_mprotect((void *)page, 4096, PROT_READ | PROT_WRITE))
		return false;
	/* Relaxed: whoever calls through it finds one function or the other. */
	__atomic_store_n((void **)slot, function, __ATOMIC_RELAXED);
	raw_mprotect((void *)page, 4096, protection);
	return true;
}

/* Each call that is bound then is true in `bound`, which has room for all of them. */
static void bind_in(const struct dl_phdr_info *info, const struct object *object,
		    const ElfW(Rela) * rela, size_t bytes, const struct heap_call *calls,
		    bool *bound)
{
	for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
		unsigned int type = ELF64_R_TYPE(rela[i].r_info);
		const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(rela[i].r_info)];

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		for (int call = 0; calls[call].name; call++)
			if (!strcmp(object->strings + symbol->st_name, calls[call].name))
				bound[call] = set_slot(info, info->dlpi_addr + rela[i].r_offset,
						       calls[call].ours);
	}
}

static void bind_object(struct dl_phdr_info *info, const struct heap_call *calls, bool *bound)
{
	struct object object = object_read(info);

	if (!object.symbols)
		return;
	bind_in(info, &object, object.plt, object.plt_bytes, calls, bound);
	bind_in(info, &object, object.rela, object.rela_bytes, calls, bound);
}

static int bind_mimalloc(struct dl_phdr_info *info, size_t bytes, void *bound)
{
	static const struct heap_call calls[] = { { "madvise", heap_madvise },
						  { "mprotect", heap_mprotect },
						  { NULL, NULL } };

	(void)bytes;
	if (!object_holds(info, (uintptr_t)mi_malloc))
		return 0;
	/* Linked into ours, it is not told apart from what else is there. */
	if (object_holds(info, (uintptr_t)heap_madvise))
		return 1;
	bind_object(info, calls, bound);
	return 1;
}

bool heap_bind(void)
{
	bool bound[2] = { false };

	dl_iterate_phdr(bind_mimalloc, bound);
	return bound[0] && bound[1];
}

struct binding {
	const struct heap_call *calls;
	const void *behind;
};

/* Not where the functions are, nor where ours are; and mimalloc's mprotect() is bound above. */
static int bind_other(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const struct binding *binding = arg;
	bool bound[HEAP_CALLS_MOST];

	(void)bytes;
	if (!object_holds(info, (uintptr_t)heap_madvise) &&
	    !object_holds(info, (uintptr_t)mi_malloc) &&
	    !object_holds(info, (uintptr_t)binding->behind))
		bind_object(info, binding->calls, bound);
	return 0;
}

void heap_bind_all(const struct heap_call *calls, const void *behind)
{
	struct binding binding = { calls, behind };

	dl_iterate_phdr(bind_other, &binding);
}
