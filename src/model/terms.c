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

/* clang-format off */
/* A term of each mechanism, by its field; a row a term. */
#define OF_COPY(name, id, field, ...) { name "." #field, __VA_ARGS__, AT(copy[id].field) }
#define MECHANISM(name, id) \
	OF_COPY(name, id, alpha, "s", "start of a copy", SECONDS, 0), \
	OF_COPY(name, id, beta, "s/B", "copying, buffers in cache", PER_BYTE, 0), \
	OF_COPY(name, id, beta_memory, "s/B", "copying, buffers in memory", PER_BYTE, 0), \
	OF_COPY(name, id, push_alpha, "s", "start of a write", SECONDS, 0), \
	OF_COPY(name, id, push_beta, "s/B", "writing, buffers in cache", PER_BYTE, 0), \
	OF_COPY(name, id, push_beta_memory, "s/B", "writing, buffers in memory", PER_BYTE, 0), \
	OF_COPY(name, id, beta_across, "1", "factor on copying between packages", FACTOR, 1), \
	OF_COPY(name, id, lock, "s/page", "locking and pinning a page alone", SECONDS, 0), \
	OF_COPY(name, id, page, "B", "bytes that one lock covers", 1.0, 1099511627776.0, 4096), \
	OF_COPY(name, id, lock_span, "B", "address space under one lock", 1.0, 1e15, 1e15), \
	OF_COPY(name, id, gamma1, "1", "contention: factor of c", 0.0, 1e6, 0), \
	OF_COPY(name, id, gamma2, "1", "contention: factor of c^2", 0.0, 1e6, 0), \
	OF_COPY(name, id, gamma_across, "1", "factor on contention beyond a package's cores", FACTOR, 1), \
	OF_COPY(name, id, gamma_range, "copiers", "contention was measured up to here", COUNT, 1)
/* clang-format on */

static const struct oci_term_info table[] = {
	MECHANISM("shm", OCI_MODEL_SHM),
	MECHANISM("cma", OCI_MODEL_CMA),
	MECHANISM("map", OCI_MODEL_MAP),
	MECHANISM("kmod", OCI_MODEL_KMOD),
	{ "flag.cache", "s", "a flag, under one cache", SECONDS, 0, AT(flag[OCI_MODEL_CACHE]) },
	{ "flag.package", "s", "a flag, in one package", SECONDS, 0, AT(flag[OCI_MODEL_PACKAGE]) },
	{ "flag.machine", "s", "a flag, between packages", SECONDS, 0,
	  AT(flag[OCI_MODEL_MACHINE]) },
	{ "flag.more", "s", "each further flag of a row that is up", SECONDS, 0, AT(flag_more) },
	{ "memcpy.cache", "s/B", "local copy, in cache", PER_BYTE, 0, AT(memcpy_cache) },
	{ "memcpy.memory", "s/B", "local copy, in memory", PER_BYTE, 0, AT(memcpy_memory) },
	{ "memcpy.slot", "s/B", "local copy into a slot that a peer has read", PER_BYTE, 0,
	  AT(memcpy_slot) },
	{ "cache.bytes", "B", "source and target together that stay in cache", 1.0, 1e12, 1e12,
	  AT(cache_bytes) },
	{ "cache.shared", "B", "size of a cache that cores share", 1.0, 1e15, 1e15,
	  AT(cache_shared) },
	{ "reduce", "s/B", "sum of doubles into others, per byte of these", PER_BYTE, 0,
	  AT(reduce) },
	{ "domain", "s/B", "copying of all cores of a memory domain together", PER_BYTE, 0,
	  AT(domain) },
	{ "domain.cache", "s/B", "single copies of all cores together, in cache", PER_BYTE, 0,
	  AT(domain_cache) },
	{ "call", "s", "a collective call besides its copies and flags", SECONDS, 0, AT(call) },
	{ "op", "s", "an operation of a plan besides its copy or wait", SECONDS, 0, AT(op) },
	{ "kmod.dma_min", "B", "larger operations are a DMA engine's, if there is one", 1.0, 1e15,
	  0, AT(dma_min) },
	{ "net.latency", "s", "a message between nodes, on its way", SECONDS, 0, AT(net_latency) },
	{ "net.overhead", "s", "its time on the CPU of either end", SECONDS, 0, AT(net_overhead) },
	{ "net.gap", "s", "between two messages of one node", SECONDS, 0, AT(net_gap) },
	{ "net.gap_byte", "s/B", "that each byte adds to it", PER_BYTE, 0, AT(net_gap_byte) },
	{ "net.eager", "B", "larger messages are asked for first", 1.0, 1e15, 1e15, AT(net_eager) },
	{ "machine.packages", "packages", "processor packages", COUNT, 1, AT(packages) },
	{ "machine.package_cores", "cores", "cores of a package", COUNT, 65536, AT(package_cores) },
	{ "machine.cache_cores", "cores", "cores under one last-level cache", COUNT, 65536,
	  AT(cache_cores) },
	{ "machine.domain_cores", "cores", "cores with one memory domain", COUNT, 65536,
	  AT(domain_cores) },
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
