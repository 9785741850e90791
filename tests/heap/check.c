/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <dlfcn.h>

const struct oci_arena *arena(void)
{
	union {
		void *data;
		oci_arena_fn *function;
	} found = { .data = dlsym(RTLD_DEFAULT, OCI_ARENA_SYMBOL) };

	CHECK(found.function);
	return found.function();
}

bool in_arena(const void *memory, size_t bytes)
{
	const struct oci_arena *here = arena();
	uint64_t offset = (uint64_t)((const uint8_t *)memory - here->base);

	return here->base && offset >= OCI_ARENA_FIRST && offset < here->bytes &&
	       bytes <= here->bytes - offset;
}
