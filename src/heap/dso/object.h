/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dynamic linker has loaded, read from its own tables: dlsym() may allocate, and this runs
 * inside malloc.
 */
#ifndef OC_HEAP_DSO_OBJECT_H
#define OC_HEAP_DSO_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object {
	const ElfW(Rela) * rela, *plt;
	size_t rela_bytes, plt_bytes;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash; /* NULL: it has none */
};

/* The dynamic section; `symbols` is NULL where there is none. */
struct object object_read(const struct dl_phdr_info *info);
bool object_holds(const struct dl_phdr_info *info, uintptr_t address);
/* The function of that name that it defines and exports, or NULL. */
void *object_function(const struct dl_phdr_info *info, const struct object *object,
		      const char *name);

#endif
