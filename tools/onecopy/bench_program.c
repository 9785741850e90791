/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"
#include "place.h"

#include <limits.h>
#include <string.h>

const char *bench_program(const char *name, enum launcher launcher, char *why, size_t n)
{
	/* Relative to the executable's directory: the build tree, then an installation's bin. */
	static const char *const places[2] = { ".", OC_PRELOAD_FROM_BIN };
	static char path[PATH_MAX + 128];
	const struct launcher_info *info = launcher_info(launcher);
	char file[64], dir[PATH_MAX];
	bool there;

	snprintf(file, sizeof(file), "onecopy-%s%s%s", name, info ? "-" : "",
		 info ? info->word : "");
	there = place_find(file, "", places, dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (there)
		return path;
	snprintf(why, n, "%s is not there; build onecopy with that MPI installed", path);
	return NULL;
}

const char *bench_with(void)
{
	static char words[PATH_MAX + 32];
	char self[PATH_MAX];

	if (!host_program(self))
		self[0] = '\0';
	/* As a shell takes it; a quote in it is the one thing that it would not. */
	snprintf(words, sizeof(words), "'%s' run --quiet", self);
	return words;
}

void bench_leave_out(struct step *step, struct figure *figure, const char *name, const char *why)
{
	step->left_out = true;
	figure_note(figure, "%s is left out: %s.", name, why);
}
