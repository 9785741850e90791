/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sysfs.h"

#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MASK_WORDS 128 /* 8192 CPUs, as in os/cpu.c */

/* Every other of 2000 CPUs; the thread that asks may have a small stack. */
#define LIST_BYTES 8192

struct set {
	uint64_t word[MASK_WORDS];
};

static bool holds(const struct set *set, unsigned long n)
{
	return n < 64 * MASK_WORDS && set->word[n / 64] >> (n % 64) & 1;
}

static uint32_t lowest(const uint64_t *mask, unsigned int words)
{
	for (unsigned int i = 0; i < words; i++)
		if (mask[i])
			return 64 * i + (uint32_t)__builtin_ctzll(mask[i]);
	return OCI_TOPO_NOWHERE;
}

static unsigned int count(const uint64_t *mask, unsigned int words)
{
	unsigned int cpus = 0;

	for (unsigned int i = 0; i < words; i++)
		cpus += (unsigned int)__builtin_popcountll(mask[i]);
	return cpus;
}

/* "0-3,8"; false: it is something else. */
static bool parse(const char *text, struct set *set)
{
	*set = (struct set){ { 0 } };
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last >= 64 * MASK_WORDS || last < first)
			return false;
		for (; first <= last; first++)
			set->word[first / 64] |= (uint64_t)1 << (first % 64);
		text = end + (*end == ',');
	}
	return *text == '\n' || !*text;
}

/* The text of a file whose path is formatted; false: there is none, or it is longer. */
__attribute__((format(printf, 3, 4))) static bool read_text(char *text, size_t bytes,
							    const char *format, ...)
{
	char path[256];
	va_list arguments;
	ssize_t got;
	int length;

	va_start(arguments, format);
	length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(path))
		return false;
	got = oci_os_read_file(path, text, bytes);
	return got >= 0 && (size_t)got < bytes - 1;
}

/* By the file's name today, and by that of kernels before 5.3. */
static bool read_siblings(const char *root, unsigned int cpu, const char *name, const char *old,
			  struct set *set)
{
	char text[LIST_BYTES];

	return (read_text(text, sizeof(text), "%s/cpu/cpu%u/topology/%s", root, cpu, name) ||
		read_text(text, sizeof(text), "%s/cpu/cpu%u/topology/%s", root, cpu, old)) &&
	       parse(text, set);
}

static bool read_core(const char *root, unsigned int cpu, struct set *set)
{
	return read_siblings(root, cpu, "core_cpus_list", "thread_siblings_list", set);
}

/* A CPU's data cache of one level. */
struct cache {
	bool known;
	unsigned int index; /* of its folder */
	struct set cpus;    /* that share it */
};

/* The caches in folders i up to end. Of a level with two of them the first counts: the kernel puts
 * that of instructions behind that of data. */
static void read_caches_in(const char *root, unsigned int cpu, unsigned int i, unsigned int end,
			   struct cache caches[2])
{
	char text[LIST_BYTES];

	for (; i < end && !caches[1].known &&
	       read_text(text, sizeof(text), "%s/cpu/cpu%u/cache/index%u/level", root, cpu, i);
	     i++) {
		unsigned long level = strtoul(text, NULL, 10);
		struct cache *cache = &caches[level == 3];

		if (level < 2 || level > 3 || cache->known)
			continue;
		cache->index = i;
		cache->known = read_text(text, sizeof(text),
					 "%s/cpu/cpu%u/cache/index%u/shared_cpu_list", root, cpu,
					 i) &&
			       parse(text, &cache->cpus);
	}
}

/* Of levels 2 and 3. Folders 0 and 1 are of level 1 almost everywhere, and each file takes the
 * kernel some 7 us: they are read where no other is of level 2. */
static void read_caches(const char *root, unsigned int cpu, struct cache caches[2])
{
	struct cache first[2] = { 0 };

	caches[0].known = caches[1].known = false;
	read_caches_in(root, cpu, 2, UINT_MAX, caches);
	if (caches[0].known)
		return;
	read_caches_in(root, cpu, 0, 2, first);
	for (int level = 0; level < 2; level++)
		if (first[level].known)
			caches[level] = first[level];
}

/* The smallest node of memory that the CPU is at; of two at the same CPUs (KNL) the first. */
static uint32_t read_node(const char *root, unsigned int cpu, struct set *set)
{
	char text[LIST_BYTES];
	struct set nodes, cpus;
	uint32_t best = OCI_TOPO_NOWHERE;
	unsigned int least = UINT_MAX;

	memset(set, 0xff, sizeof(*set));
	if (!read_text(text, sizeof(text), "%s/node/online", root) || !parse(text, &nodes))
		return 0; /* a kernel that knows of none has one */
	if (count(nodes.word, MASK_WORDS) == 1)
		return lowest(nodes.word, MASK_WORDS);
	for (unsigned int node = 0; node < 64 * MASK_WORDS; node++) {
		if (!holds(&nodes, node) ||
		    !read_text(text, sizeof(text), "%s/node/node%u/cpulist", root, node) ||
		    !parse(text, &cpus) || !holds(&cpus, cpu) ||
		    count(cpus.word, MASK_WORDS) >= least)
			continue;
		least = count(cpus.word, MASK_WORDS);
		best = node;
		*set = cpus;
	}
	return best;
}

static bool includes(const struct set *set, const uint64_t *mask, unsigned int words)
{
	for (unsigned int i = 0; i < words; i++)
		if (mask[i] & ~(i < MASK_WORDS ? set->word[i] : 0))
			return false;
	return true;
}

static uint32_t number(bool known, const struct set *set, const uint64_t *mask, unsigned int words)
{
	return known && includes(set, mask, words) ? lowest(set->word, MASK_WORDS) :
						     OCI_TOPO_NOWHERE;
}

int oci_sysfs_place(const char *root, const uint64_t *mask, unsigned int words, bool core,
		    struct oci_topo_place *place)
{
	uint32_t cpu = lowest(mask, words), node;
	struct cache caches[2];
	struct set set;
	bool known;

	if (cpu == OCI_TOPO_NOWHERE || !read_core(root, cpu, &set))
		return -ENOENT;
	*place = (struct oci_topo_place){ .core = number(true, &set, mask, words),
					  .l2 = OCI_TOPO_NOWHERE,
					  .l3 = OCI_TOPO_NOWHERE,
					  .numa = OCI_TOPO_NOWHERE,
					  .package = OCI_TOPO_NOWHERE,
					  .cpus = count(mask, words) };
	if (core)
		return 0;
	known = read_siblings(root, cpu, "package_cpus_list", "core_siblings_list", &set);
	place->package = number(known, &set, mask, words);
	read_caches(root, cpu, caches);
	place->l2 = number(caches[0].known, &caches[0].cpus, mask, words);
	place->l3 = number(caches[1].known, &caches[1].cpus, mask, words);
	node = read_node(root, cpu, &set);
	if (node != OCI_TOPO_NOWHERE && includes(&set, mask, words))
		place->numa = node;
	return 0;
}

size_t oci_sysfs_cache_share(const char *root)
{
	struct cache caches[2], *last = &caches[1];
	struct set core;
	unsigned int threads, cpus;
	size_t bytes = 0;
	char text[64];

	read_caches(root, 0, caches);
	if (!last->known)
		last = &caches[0];
	if (!last->known || !read_core(root, 0, &core))
		return 0;
	if (read_text(text, sizeof(text), "%s/cpu/cpu0/cache/index%u/size", root, last->index))
		bytes = (size_t)strtoul(text, NULL, 10) << 10; /* "32768K" */
	threads = count(core.word, MASK_WORDS);
	cpus = count(last->cpus.word, MASK_WORDS);
	/* Cores of two kinds differ in their threads: CPU 0's counts. */
	return cpus >= threads ? bytes / (cpus / threads) : bytes;
}
