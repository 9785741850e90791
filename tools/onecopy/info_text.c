/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include "component.h"
#include "mpi_found.h"
#include "names.h"
#include "preload.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { MPIS = 8 };

/* Open MPI keeps its inner layout within 4.1.x; the component checks the same when it is loaded. */
static bool is_same_minor(const char *a, const char *b)
{
	int major[2], minor[2];

	return sscanf(a, "%d.%d", &major[0], &minor[0]) == 2 &&
	       sscanf(b, "%d.%d", &major[1], &minor[1]) == 2 && major[0] == major[1] &&
	       minor[0] == minor[1];
}

const char *info_preload_trouble(const struct preload *preload)
{
	const char *trouble = preload_trouble(preload);

	return trouble ? trouble : preload_load_trouble(preload);
}

/*
 * MPICH and its kin have had one binary interface since 3.1, of 2014, so only older ones are not
 * the library's.
 */
static const char *preload_version_trouble(const char *version)
{
	struct preload preload;
	int major, minor;

	preload_find(&preload);
	if (!preload.found)
		return "not served: onecopy's library for MPICH was not found";
	if (info_preload_trouble(&preload))
		return "not served: onecopy's library for MPICH cannot be loaded (see above)";
	if (sscanf(version, "%d.%d", &major, &minor) != 2 || 100 * major + minor >= 301)
		return NULL;
	return "not served: MPICH before 3.1 has another binary interface";
}

const char *info_version_trouble(const char *name, const char *version)
{
	static char text[256];
	struct component component;

	if (!strcmp(name, "MPICH"))
		return preload_version_trouble(version);
	if (!strcmp(name, "unknown") && !*version)
		return "unknown whether served, as it does not answer '--version' here";
	if (strcmp(name, "Open MPI"))
		return "not served, unless its programs have MPICH's binary interface";
	component_find(&component);
	if (!component.found)
		return "not served: onecopy's component was not found";
	if (!*component.built_for || is_same_minor(version, component.built_for))
		return NULL;
	snprintf(text, sizeof(text),
		 "not served: the component was built for Open MPI %s, whose inner layout is "
		 "another",
		 component.built_for);
	return text;
}

static void size_text(size_t bytes, char *text, size_t room)
{
	if (bytes >= 1048576 && bytes % 1048576 == 0)
		snprintf(text, room, "%zu MiB", bytes >> 20);
	else
		snprintf(text, room, "%zu KiB", bytes >> 10);
}

static void add_heap(struct table *table)
{
	struct preload heap;
	const char *trouble;

	preload_find_heap(&heap);
	if (!heap.found) {
		table_add(table,
			  "shared heap\t" HEAP_FILE " not found in %s (it needs libmimalloc-dev)",
			  heap.dir);
		return;
	}
	trouble = info_preload_trouble(&heap);
	table_add(table, "shared heap\t%s", heap.file);
	if (!trouble)
		trouble = oc_inspect_heap();
	if (trouble)
		table_add(table, "\tIt cannot be used: %s", trouble);
	else
		table_add(table, "\tLarge pages for shared memory: %s", oc_inspect_large_pages());
}

static void print_versions(void)
{
	struct table table = { .align = "ll" };
	struct component component;
	struct preload preload;
	struct utsname system;
	const char *trouble;

	component_find(&component);
	preload_find(&preload);
	table_add(&table, "onecopy\t%s", oc_version());
	if (!uname(&system))
		table_add(&table, "kernel\t%s %s, %s", system.sysname, system.release,
			  system.machine);
	if (component.found)
		table_add(&table, "Open MPI component\t%s%s%s", component.dir,
			  *component.built_for ? ", built for Open MPI " : "", component.built_for);
	else
		table_add(&table, "Open MPI component\tnot found in %s", component.dir);
	if (preload.found)
		table_add(&table, "MPICH library\t%s%s%s", preload.file,
			  *preload.built_for ? ", built for MPICH " : "", preload.built_for);
	else
		table_add(&table, "MPICH library\t" PRELOAD_FILE " not found in %s", preload.dir);
	trouble = preload.found ? info_preload_trouble(&preload) : NULL;
	if (trouble)
		table_add(&table, "\tIt cannot be used: %s", trouble);
	add_heap(&table);
	table_print(&table, stdout, 0);
}

static void print_mpis(void)
{
	struct table table = { .align = "llll" };
	struct mpi_found found[MPIS];
	int count = mpi_find(found, MPIS);

	puts("\nMPI on PATH");
	for (int i = 0; i < count; i++) {
		const char *trouble = info_version_trouble(found[i].name, found[i].version);

		table_add(&table, "%s\t%s\t%s\t%s", found[i].name, found[i].version,
			  found[i].launcher, trouble ? trouble : "served");
	}
	if (!count)
		table_add(&table, "none: neither mpirun nor mpiexec is there");
	table_print(&table, stdout, 2);
}

static void print_mechanisms(void)
{
	struct table table = { .align = "lll" };
	const struct oc_mechanism_info *info;

	puts("\nMechanisms, between this process and a child of its own");
	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)); i++) {
		table_add(&table, "%s\t%s\t%s", info->name, info->works ? "works" : "refused",
			  info->what);
		table_add(&table, "\t\t%s", info->sentence);
		if (!info->works && *info->remedy)
			table_add(&table, "\t\tRemedy: %s", info->remedy);
	}
	table_print(&table, stdout, 2);
}

static void add_caches(struct table *table, const struct oc_topology_info *info)
{
	char l2[32], l3[32];

	size_text(info->l2_bytes, l2, sizeof(l2));
	size_text(info->l3_bytes, l3, sizeof(l3));
	table_add(table, "packages\t%u", info->packages);
	table_add(table, "NUMA nodes\t%u", info->numa_nodes);
	table_add(table, "L3 caches\t%u of %s, shared by %u core%s", info->l3s, l3,
		  info->cores_per_l3, info->cores_per_l3 == 1 ? "" : "s");
	table_add(table, "L2 caches\t%u of %s, shared by %u core%s", info->l2s, l2,
		  info->cores_per_l2, info->cores_per_l2 == 1 ? "" : "s");
}

static void print_topology(void)
{
	struct table table = { .align = "ll" };
	struct oc_topology_info info;
	int err = oc_inspect_topology(&info);

	puts("\nTopology");
	if (err) {
		printf("  hwloc cannot load it: %s\n", strerror(-err));
		return;
	}
	if (info.cores) {
		add_caches(&table, &info);
		table_add(&table, "cores\t%u (%u CPUs, of which this process may use %u)",
			  info.cores, info.cpus, info.cpus_allowed);
	} else {
		table_add(&table,
			  "CPUs\t%u, of which this process may use %u; which share what is "
			  "unknown, as /sys/devices/system cannot be read",
			  info.cpus, info.cpus_allowed);
	}
	if (info.cgroup_cpus > 0)
		table_add(&table, "cgroup limit\t%.2f CPUs", info.cgroup_cpus);
	table_add(&table, "team memory\t%zu bytes on each rank, for each communicator in use",
		  oc_inspect_team_bytes());
	table_print(&table, stdout, 2);
}

static void print_options(void)
{
	struct table table = { .align = "lllll" };
	const struct oc_option_info *info;

	table_add(&table, "variable\tvalue\tdefault\tfrom\twhat it does");
	for (unsigned int i = 0; (info = oc_inspect_option(i)); i++)
		table_add(&table, "%s\t%s\t%s\t%s\t%s", info->variable,
			  *info->value ? info->value : "-", *info->fallback ? info->fallback : "-",
			  info->from, info->help);
	table_print(&table, stdout, 0);
}

static void print_algorithms(void)
{
	struct table table = { .align = "llll" };

	table_add(&table, "collective\talgorithm\tparameter\tidea");
	for (int c = 0; c < OC_COLLECTIVES; c++) {
		enum oc_collective collective = (enum oc_collective)c;
		struct oc_algorithm_info info;
		const struct oc_algorithm_info *next;

		for (unsigned int i = 0; (next = oc_inspect_algorithm(collective, i)) && next->name;
		     i++) {
			char range[64] = "-";

			info = *next;
			if (info.parameter_max)
				snprintf(range, sizeof(range), ":%u (%u to %u)",
					 info.parameter_default, info.parameter_min,
					 info.parameter_max);
			else if (info.parameter_min) /* no upper end */
				snprintf(range, sizeof(range), ":%u (%u or more)",
					 info.parameter_default, info.parameter_min);
			table_add(&table, "%s\t%s\t%s\t%s", oc_collective_name(collective),
				  info.name, range, info.idea);
		}
	}
	table_print(&table, stdout, 0);
}

void info_print_text(unsigned int sections)
{
	if (sections & INFO_MACHINE) {
		print_versions();
		print_mpis();
		print_mechanisms();
		print_topology();
	}
	if (sections & INFO_OPTIONS)
		print_options();
	if (sections == (INFO_OPTIONS | INFO_ALGORITHMS))
		putchar('\n');
	if (sections & INFO_ALGORITHMS)
		print_algorithms();
}
