/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mimalloc's madvise() and mprotect() bound to ours by address.
 *
 * mprotect() is how mimalloc says that it begins to use memory, and madvise() how it gives it back;
 * only its own are meant, not the program's. Nor would the names do: UCX writes a jump into the
 * first bytes of whatever `madvise` is in a process (its "bistro" hooks), to hear of memory that is
 * given back, and goes on by the system call. Under MPICH over UCX nothing was punched out then
 * (seen: 200 MiB of freed memory stayed in the file). So mimalloc calls heap_madvise(), which asks
 * by name, as before, and sees to the hole itself where that has not led to ours.
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

static const struct {
	const char *name;
	void *ours;
} calls[] = { { "madvise", heap_madvise }, { "mprotect", heap_mprotect } };
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Each call that is bound then is 1 in `bound`. */
static void bind_in(const struct dl_phdr_info *info, const struct object *object,
		    const ElfW(Rela) * rela, size_t bytes, bool bound[CALLS])
{
	for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
		unsigned int type = ELF64_R_TYPE(rela[i].r_info);
		const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(rela[i].r_info)];

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		for (int call = 0; call < CALLS; call++)
			if (!strcmp(object->strings + symbol->st_name, calls[call].name))
				bound[call] = set_slot(info, info->dlpi_addr + rela[i].r_offset,
						       calls[call].ours);
	}
}

static int bind_mimalloc(struct dl_phdr_info *info, size_t bytes, void *bound)
{
	struct object object;

	(void)bytes;
	if (!object_holds(info, (uintptr_t)mi_malloc))
		return 0;
	/* Linked into ours, it is not told apart from what else is there. */
	if (object_holds(info, (uintptr_t)heap_madvise))
		return 1;
	object = object_read(info);
	if (object.symbols) {
		bind_in(info, &object, object.plt, object.plt_bytes, bound);
		bind_in(info, &object, object.rela, object.rela_bytes, bound);
	}
	return 1;
}

bool heap_bind(void)
{
	bool bound[CALLS] = { false };

	dl_iterate_phdr(bind_mimalloc, bound);
	return bound[0] && bound[1];
}
