/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of terms: names, units, bounds. Files, tables and the hash go by it. */
#include "model/model.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/*
 * Bounds refuse what no machine has (a second to start a copy, more than 10 TB/s), so that a slip
 * of the pen in a file is found by its reader and not by the chooser.
 */
#define SECONDS 0.0, 1.0
#define PER_BYTE 1e-13, 1e-3
#define FACTOR 1.0, 1e3
#define COUNT 1.0, 65536.0
#define AT(field) offsetof(struct oci_model, field)

#define MECHANISM(text, id)                                                                             \
	{ text ".alpha", "s", "start of a copy", SECONDS, AT(copy[id].alpha), 0 },                      \
		{ text ".beta", "s/B", "copying, buffers in cache", PER_BYTE, AT(copy[id].beta), 0 },   \
		{ text ".beta_memory",	    "s/B", "copying, buffers in memory", PER_BYTE,              \
		  AT(copy[id].beta_memory), 0 },                                                        \
		{ text ".push_alpha", "s", "start of a write", SECONDS, AT(copy[id].push_alpha), 0 },   \
		{ text ".push_beta",	  "s/B", "writing, buffers in cache", PER_BYTE,                 \
		  AT(copy[id].push_beta), 0 },                                                          \
		{ text ".push_beta_memory",	 "s/B", "writing, buffers in memory", PER_BYTE,         \
		  AT(copy[id].push_beta_memory), 0 },                                                   \
		{ text ".beta_across",	    "1", "factor on copying between packages", FACTOR,          \
		  AT(copy[id].beta_across), 1 },                                                        \
		{ text ".lock", "s/page",	   "locking and pinning a page alone",                  \
		  SECONDS,	AT(copy[id].lock), 0 },                                                 \
		{ text ".page",	     "B", "bytes that one lock covers", 1.0, 1099511627776.0,           \
		  AT(copy[id].page), 4096 },                                                            \
		{ text ".lock_span",	  "B", "address space under one lock", 1.0, 1e15,               \
		  AT(copy[id].lock_span), 1e15 },                                                       \
		{ text ".gamma1", "1", "contention: factor of c", 0.0, 1e6, AT(copy[id].gamma1), 0 },   \
		{ text ".gamma2", "1", "contention: factor of c^2", 0.0, 1e6, AT(copy[id].gamma2), 0 }, \
		{ text ".gamma_across",                                                                 \
		  "1",                                                                                  \
		  "factor on contention beyond a package's cores",                                      \
		  FACTOR,                                                                               \
		  AT(copy[id].gamma_across),                                                            \
		  1 },                                                                                  \
	{                                                                                               \
		text ".gamma_range", "copiers", "contention was measured up to here", COUNT,            \
			AT(copy[id].gamma_range), 1                                                     \
	}

static const struct oci_term_info table[] = {
	MECHANISM("shm", OCI_MODEL_SHM),
	MECHANISM("cma", OCI_MODEL_CMA),
	MECHANISM("map", OCI_MODEL_MAP),
	MECHANISM("kmod", OCI_MODEL_KMOD),
	{ "flag.cache", "s", "a flag, under one cache", SECONDS, AT(flag[OCI_MODEL_CACHE]), 0 },
	{ "flag.package", "s", "a flag, in one package", SECONDS, AT(flag[OCI_MODEL_PACKAGE]), 0 },
	{ "flag.machine", "s", "a flag, between packages", SECONDS, AT(flag[OCI_MODEL_MACHINE]),
	  0 },
	{ "flag.more", "s", "each further flag of a row that is up", SECONDS, AT(flag_more), 0 },
	{ "memcpy.cache", "s/B", "local copy, in cache", PER_BYTE, AT(memcpy_cache), 0 },
	{ "memcpy.memory", "s/B", "local copy, in memory", PER_BYTE, AT(memcpy_memory), 0 },
	{ "memcpy.slot", "s/B", "local copy into a slot that a peer has read", PER_BYTE,
	  AT(memcpy_slot), 0 },
	{ "cache.bytes", "B", "source and target together that stay in cache", 1.0, 1e12,
	  AT(cache_bytes), 1e12 },
	{ "cache.shared", "B", "size of a cache that cores share", 1.0, 1e15, AT(cache_shared),
	  1e15 },
	{ "reduce", "s/B", "sum of doubles into others, per byte of these", PER_BYTE, AT(reduce),
	  0 },
	{ "domain", "s/B", "copying of all cores of a memory domain together", PER_BYTE, AT(domain),
	  0 },
	{ "domain.cache", "s/B", "single copies of all cores together, in cache", PER_BYTE,
	  AT(domain_cache), 0 },
	{ "call", "s", "a collective call besides its copies and flags", SECONDS, AT(call), 0 },
	{ "op", "s", "an operation of a plan besides its copy or wait", SECONDS, AT(op), 0 },
	{ "touch", "s/page", "first touch of a mapped page", SECONDS, AT(touch), 0 },
	{ "map.first", "s/page", "a mapped peer's page before its first copy", SECONDS,
	  AT(map_first), 0 },
	{ "machine.packages", "packages", "processor packages", COUNT, AT(packages), 1 },
	{ "machine.package_cores", "cores", "cores of a package", COUNT, AT(package_cores), 65536 },
	{ "machine.cache_cores", "cores", "cores under one last-level cache", COUNT,
	  AT(cache_cores), 65536 },
	{ "machine.domain_cores", "cores", "cores with one memory domain", COUNT, AT(domain_cores),
	  65536 },
};

#define TERMS (sizeof(table) / sizeof(table[0]))

const struct oci_term_info *oci_term_info(unsigned int index)
{
	return index < TERMS ? &table[index] : NULL;
}

const struct oci_term_info *oci_term_named(const char *name)
{
	for (size_t i = 0; i < TERMS; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

struct oci_term *oci_term_of(struct oci_model *model, const struct oci_term_info *info)
{
	return (struct oci_term *)((char *)model + info->offset);
}

const struct oci_term *oci_term_in(const struct oci_model *model, const struct oci_term_info *info)
{
	return (const struct oci_term *)((const char *)model + info->offset);
}

void oci_model_init(struct oci_model *model)
{
	memset(model, 0, sizeof(*model));
	for (size_t i = 0; i < TERMS; i++)
		oci_term_of(model, &table[i])->value = table[i].absent;
}

void oci_model_destroy(struct oci_model *model)
{
	free(model->cells);
	model->cells = NULL;
	model->cell_count = 0;
}

static uint64_t hash_cell(uint64_t hash, const struct oci_model_cell *cell)
{
	hash = oci_hash(hash, cell->collective, strlen(cell->collective) + 1);
	hash = oci_hash(hash, cell->algorithm, strlen(cell->algorithm) + 1);
	hash = oci_hash(hash, &cell->ranks_min, sizeof(cell->ranks_min));
	hash = oci_hash(hash, &cell->ranks_max, sizeof(cell->ranks_max));
	hash = oci_hash(hash, &cell->bytes_min, sizeof(cell->bytes_min));
	return oci_hash(hash, &cell->bytes_max, sizeof(cell->bytes_max));
}

uint64_t oci_model_hash(const struct oci_model *model)
{
	uint64_t hash = OCI_HASH_START;

	for (size_t i = 0; i < TERMS; i++) {
		const struct oci_term *term = oci_term_in(model, &table[i]);
		double value = term->value + 0.0; /* -0.0 costs what 0.0 costs */
		uint8_t given = term->given;

		hash = oci_hash(hash, &value, sizeof(value));
		hash = oci_hash(hash, &given, 1);
	}
	hash = oci_hash(hash, &(uint8_t){ model->calibrated }, 1);
	for (size_t i = 0; i < model->cell_count; i++)
		hash = hash_cell(hash, &model->cells[i]);
	return hash;
}
