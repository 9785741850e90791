/* SPDX-License-Identifier: BSD-3-Clause */
#include "object.h"

#include <elf.h>
#include <string.h>

bool object_holds(const struct dl_phdr_info *info, uintptr_t address)
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

struct object object_read(const struct dl_phdr_info *info)
{
	struct object object = { 0 };
	const ElfW(Dyn) *entry = NULL;

	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA)
			object.rela = place(info, entry);
		else if (entry->d_tag == DT_RELASZ)
			object.rela_bytes = entry->d_un.d_val;
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
static uint32_t find_gnu(const struct object *object, const char *name)
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
static uint32_t find_slowly(const struct object *object, const char *name)
{
	for (uint32_t i = 1; i < object->hash[1]; i++)
		if (object->symbols[i].st_shndx != SHN_UNDEF &&
		    !strcmp(object->strings + object->symbols[i].st_name, name))
			return i;
	return 0;
}

void *object_function(const struct dl_phdr_info *info, const struct object *object,
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
