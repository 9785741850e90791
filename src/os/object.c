/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/object.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kinds of slots that hold a function's address. */
#if defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT, DATA = R_AARCH64_ABS64 };
#else
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT, DATA = R_X86_64_64 };
#endif

bool oci_object_holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD &&
		    address - info->dlpi_addr - part->p_vaddr < part->p_memsz)
			return true;
	}
	return false;
}

/* As the dynamic linker has left them, the addresses are those of this process; but in what is
 * read-only, as the kernel's own object, they are as in the file. */
static const void *place(const struct dl_phdr_info *info, const ElfW(Dyn) * entry)
{
	ElfW(Addr) at = entry->d_un.d_ptr;

	return (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

struct oci_object oci_object_read(const struct dl_phdr_info *info)
{
	struct oci_object object = { 0 };
	const ElfW(Dyn) *entry = NULL;

	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA)
			object.rela = place(info, entry);
		else if (entry->d_tag == DT_RELASZ)
			object.rela_bytes = entry->d_un.d_val;
		else if (entry->d_tag == DT_RELACOUNT)
			object.relative = entry->d_un.d_val;
		else if (entry->d_tag == DT_JMPREL)
			object.plt = place(info, entry);
		else if (entry->d_tag == DT_PLTRELSZ)
			object.plt_bytes = entry->d_un.d_val;
		else if (entry->d_tag == DT_SYMTAB)
			object.symbols = place(info, entry);
		else if (entry->d_tag == DT_STRTAB)
			object.strings = place(info, entry);
		else if (entry->d_tag == DT_GNU_HASH)
			object.gnu_hash = place(info, entry);
		else if (entry->d_tag == DT_HASH)
			object.hash = place(info, entry);
	}
	if (!object.strings)
		object.symbols = NULL;
	return object;
}

/* The table of DT_GNU_HASH: four words, a filter, the first symbol of each bucket, and for each
 * symbol its hash, whose lowest bit ends a bucket. */
static uint32_t find_gnu(const struct oci_object *object, const char *name)
{
	const uint32_t *table = object->gnu_hash, *bucket, *chain;
	uint32_t hash = 5381, index;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4);
	chain = bucket + table[0];
	index = table[0] ? bucket[hash % table[0]] : 0;
	if (index < table[1])
		return 0;
	for (;; index++) {
		uint32_t of_symbol = chain[index - table[1]];

		if ((of_symbol | 1) == (hash | 1) &&
		    !strcmp(object->strings + object->symbols[index].st_name, name))
			return index;
		if (of_symbol & 1)
			return 0;
	}
}

/* Of DT_HASH, the second word is the number of symbols. */
static uint32_t find_slowly(const struct oci_object *object, const char *name)
{
	for (uint32_t i = 1; i < object->hash[1]; i++)
		if (object->symbols[i].st_shndx != SHN_UNDEF &&
		    !strcmp(object->strings + object->symbols[i].st_name, name))
			return i;
	return 0;
}

void *oci_object_function(const struct dl_phdr_info *info, const struct oci_object *object,
			  const char *name)
{
	const ElfW(Sym) * symbol;
	uint32_t index = 0;
	void *address;

	if (object->symbols && object->gnu_hash)
		index = find_gnu(object, name);
	else if (object->symbols && object->hash)
		index = find_slowly(object, name);
	symbol = object->symbols + index;
	if (!index || symbol->st_shndx == SHN_UNDEF)
		return NULL;
	address = (void *)(info->dlpi_addr + symbol->st_value);
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		address = ((void *(*)(void))address)();
	return address;
}

/* ---- bind -------------------------------------------------------------------------------------
 */

/* The names may be hooked. */
static long protect(uintptr_t page, int protection)
{
	return syscall(SYS_mprotect, page, 4096, protection);
}

enum access { WRITABLE, READ_ONLY, UNKNOWN };

/* Of what is read-only since the relocation the dynamic linker leaves a last page that is not whole
 * writable. */
static enum access access_to(const struct dl_phdr_info *info, uintptr_t slot)
{
	uintptr_t at = slot - info->dlpi_addr, page = at & ~(uintptr_t)4095;
	enum access access = UNKNOWN;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (at - part->p_vaddr >= part->p_memsz)
			continue;
		if (part->p_type == PT_GNU_RELRO && page + 4096 <= part->p_vaddr + part->p_memsz)
			return READ_ONLY;
		if (part->p_type == PT_LOAD && part->p_flags & PF_W)
			access = WRITABLE;
	}
	return access;
}

/* What is not writable is so again afterwards, where it was. */
static bool set_slot(const struct dl_phdr_info *info, uintptr_t slot, void *function)
{
	enum access access = access_to(info, slot);
	uintptr_t page = slot & ~(uintptr_t)4095;

	if (access != WRITABLE && protect(page, PROT_READ | PROT_WRITE))
		return false;
	/* Relaxed: whoever calls through it finds one function or the other. */
	__atomic_store_n((void **)slot, function, __ATOMIC_RELAXED);
	if (access == READ_ONLY)
		protect(page, PROT_READ);
	return true;
}

static void bind_in(const struct dl_phdr_info *info, const struct oci_object *object,
		    const ElfW(Rela) * rela, size_t count, const struct oci_object_call *calls,
		    bool *bound)
{
	for (size_t i = 0; rela && i < count; i++) {
		unsigned int type = ELF64_R_TYPE(rela[i].r_info);
		const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(rela[i].r_info)];
		const char *name;

		if (type != JUMP_SLOT && type != GLOB_DAT && type != DATA)
			continue;
		name = object->strings + symbol->st_name;
		for (int call = 0; calls[call].name; call++)
			/* Nearly all differ in the first letter: strcmp() for each would be most of
			 * it. */
			if ((type != DATA || calls[call].in_data) && *name == *calls[call].name &&
			    !strcmp(name, calls[call].name))
				bound[call] = set_slot(info, info->dlpi_addr + rela[i].r_offset,
						       calls[call].ours);
	}
}

void oci_object_bind(const struct dl_phdr_info *info, const struct oci_object_call *calls,
		     bool *bound)
{
	struct oci_object object = oci_object_read(info);
	size_t relas, relative;

	if (!object.symbols)
		return;
	bind_in(info, &object, object.plt, object.plt_bytes / sizeof(*object.plt), calls, bound);
	/* Those without a symbol come first, twenty thousand of them in libmpich. */
	relas = object.rela_bytes / sizeof(*object.rela);
	relative = object.relative < relas ? object.relative : relas;
	bind_in(info, &object, object.rela ? object.rela + relative : NULL, relas - relative, calls,
		bound);
}

struct binding {
	const char *library;
	struct oci_object_call calls[2];
};

static int bind_if_named(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const struct binding *binding = arg;
	const char *slash = strrchr(info->dlpi_name, '/');
	bool bound = false;

	(void)bytes;
	if (slash && !strncmp(slash + 1, binding->library, strlen(binding->library)))
		oci_object_bind(info, binding->calls, &bound);
	return bound;
}

bool oci_object_bind_in(const char *library, const char *name, void *ours)
{
	struct binding binding = { library, { { name, ours, true }, { 0 } } };

	return dl_iterate_phdr(bind_if_named, &binding);
}
