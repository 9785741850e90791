/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include "component.h"
#include "json_text.h"
#include "mpi_found.h"
#include "names.h"
#include "preload.h"

#include <string.h>
#include <sys/utsname.h>

enum { MPIS = 8 };

static json_t *mechanisms(void)
{
	json_t *list = json_array();
	const struct oc_mechanism_info *info;

	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)); i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", info->name,
						"what", info->what, "works", info->works,
						"sentence", json_text(info->sentence), "remedy",
						json_text(info->remedy)));
	return list;
}

static json_t *mpis(void)
{
	json_t *list = json_array();
	struct mpi_found found[MPIS];
	int count = mpi_find(found, MPIS);

	for (int i = 0; i < count; i++) {
		const char *trouble = info_version_trouble(found[i].name, found[i].version);

		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:o, s:b, s:o}", "name", found[i].name,
						"version", json_text(found[i].version), "launcher",
						json_text(found[i].launcher), "served", !trouble,
						"why", json_text(trouble ? trouble : "")));
	}
	return list;
}

static json_t *topology(void)
{
	struct oc_topology_info info;
	int err = oc_inspect_topology(&info);

	if (err)
		return json_pack("{s:s}", "error", strerror(-err));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:i, s:f}", "packages",
			 info.packages, "numa_nodes", info.numa_nodes, "l3s", info.l3s, "l2s",
			 info.l2s, "cores", info.cores, "cpus", info.cpus, "l2_bytes",
			 (json_int_t)info.l2_bytes, "l3_bytes", (json_int_t)info.l3_bytes,
			 "cores_per_l2", info.cores_per_l2, "cores_per_l3", info.cores_per_l3,
			 "cpus_allowed", info.cpus_allowed, "cgroup_cpus", info.cgroup_cpus);
}

static json_t *options(void)
{
	json_t *list = json_array();
	const struct oc_option_info *info;

	for (unsigned int i = 0; (info = oc_inspect_option(i)); i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:s, s:s, s:s}", "variable", info->variable,
					"value", json_text(info->value), "default", info->fallback,
					"from", info->from, "help", info->help));
	return list;
}

static json_t *algorithm(const struct oc_algorithm_info *info)
{
	json_t *object = json_pack("{s:s, s:s}", "name", info->name, "idea", info->idea);

	/* max 0 with a min: no upper end. */
	if (info->parameter_min || info->parameter_max)
		json_object_set_new(object, "parameter",
				    json_pack("{s:I, s:I, s:I}", "default",
					      (json_int_t)info->parameter_default, "min",
					      (json_int_t)info->parameter_min, "max",
					      (json_int_t)info->parameter_max));
	return object;
}

static json_t *algorithms(void)
{
	json_t *object = json_object();

	for (int c = 0; c < OC_COLLECTIVES; c++) {
		enum oc_collective collective = (enum oc_collective)c;
		const struct oc_algorithm_info *info;
		json_t *list = json_array();

		for (unsigned int i = 0; (info = oc_inspect_algorithm(collective, i)) && info->name;
		     i++)
			json_array_append_new(list, algorithm(info));
		json_object_set_new(object, oc_collective_name(collective), list);
	}
	return object;
}

static void add_machine(json_t *json)
{
	struct component component;
	struct preload preload, heap;
	const char *trouble;
	struct utsname system = { .sysname = "" };

	component_find(&component);
	uname(&system);
	json_object_set_new(json, "kernel",
			    json_pack("{s:s, s:s, s:s}", "name", system.sysname, "release",
				      system.release, "machine", system.machine));
	json_object_set_new(json, "component",
			    json_pack("{s:o, s:b, s:s}", "dir", json_text(component.dir), "found",
				      component.found, "built_for_open_mpi", component.built_for));
	preload_find(&preload);
	trouble = preload.found ? info_preload_trouble(&preload) : "it is not there";
	json_object_set_new(json, "preload",
			    json_pack("{s:o, s:b, s:b, s:o, s:s}", "file", json_text(preload.file),
				      "found", preload.found, "usable", !trouble, "why",
				      json_text(trouble ? trouble : ""), "built_for_mpich",
				      preload.built_for));
	preload_find_heap(&heap);
	trouble = heap.found ? info_preload_trouble(&heap) : "it is not there";
	if (!trouble)
		trouble = oc_inspect_heap();
	json_object_set_new(json, "shared_heap",
			    json_pack("{s:s, s:b, s:b, s:s, s:s}", "file", heap.file, "found",
				      heap.found, "usable", !trouble, "why", trouble ? trouble : "",
				      "large_pages", oc_inspect_large_pages()));
	json_object_set_new(json, "mpi", mpis());
	json_object_set_new(json, "mechanisms", mechanisms());
	json_object_set_new(json, "topology", topology());
	json_object_set_new(json, "team_bytes", json_integer((json_int_t)oc_inspect_team_bytes()));
}

json_t *info_json(unsigned int sections)
{
	json_t *json = json_pack("{s:s}", "onecopy", oc_version());

	if (sections & INFO_MACHINE)
		add_machine(json);
	if (sections & INFO_OPTIONS)
		json_object_set_new(json, "options", options());
	if (sections & INFO_ALGORITHMS)
		json_object_set_new(json, "algorithms", algorithms());
	return json;
}
