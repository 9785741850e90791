/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the dynamic linker has loaded, read from its own tables: dlsym() may allocate, and the
 * shared heap calls this inside malloc. Nothing here allocates.
 */
#ifndef OC_OS_OBJECT_H
#define OC_OS_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oci_object {
	const ElfW(Rela) * rela, *plt;
	size_t rela_bytes, plt_bytes;
	size_t relative; /* so many of `rela` come first and have no symbol */
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash; /* NULL: it has none */
};

/* The dynamic section; `symbols` is NULL where there is none. */
struct oci_object oci_object_read(const struct dl_phdr_info *info);
bool oci_object_holds(const struct dl_phdr_info *info, uintptr_t address);
/* The function of that name that it defines and exports, or NULL. */
void *oci_object_function(const struct dl_phdr_info *info, const struct oci_object *object,
			  const char *name);

/* A function, and one of ours in its place; the last of a list has no name. */
struct oci_object_call {
	const char *name;
	void *ours;
	bool in_data; /* also where its address is kept in data, as in tables of functions */
};
/*
 * Binds what this object calls by these names to ours, by address: the names stay whose they are.
 * Each call that is bound then is true in `bound`, which has room for all of them.
 */
void oci_object_bind(const struct dl_phdr_info *info, const struct oci_object_call *calls,
		     bool *bound);
/* The same of one name in the loaded object whose file's name begins so. Was there such a call? */
bool oci_object_bind_in(const char *library, const char *name, void *ours);

#endif
