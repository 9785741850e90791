/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/mpi_found.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const launchers[] = { "mpirun",	    "mpiexec", "mpirun.openmpi",
					 "mpiexec.openmpi", "orterun", "mpirun.mpich",
					 "mpiexec.hydra" };

/* The file that the shell would run for `name`, into `file`; `real` with links resolved. */
static int on_path(const char *name, char *file, char *real)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		int length = (int)strcspn(path, ":");

		if (length && length + strlen(name) + 2 <= PATH_MAX) {
			snprintf(file, PATH_MAX, "%.*s/%s", length, path, name);
			if (access(file, X_OK) == 0 && realpath(file, real))
				return 1;
		}
		path += length;
		path += *path == ':';
	}
	return 0;
}

bool program_on_path(const char *name)
{
	char file[PATH_MAX], real[PATH_MAX];

	return on_path(name, file, real);
}

/* "mpirun (Open MPI) 4.1.4", or Hydra's "    Version:          4.0.2" in its second line. */
static void parse_version(FILE *stream, struct mpi_found *found)
{
	char line[256];

	while (fgets(line, sizeof(line), stream)) {
		char *at;

		line[strcspn(line, "\n")] = '\0';
		/* mpirun calls itself Open MPI, its other names OpenRTE. */
		if ((at = strstr(line, "(Open MPI)")) || (at = strstr(line, "(OpenRTE)"))) {
			snprintf(found->name, sizeof(found->name), "Open MPI");
			sscanf(strchr(at, ')') + 1, "%127s", found->version);
			return;
		}
		if (strstr(line, "HYDRA"))
			snprintf(found->name, sizeof(found->name), "MPICH");
		else if ((at = strstr(line, "Version:"))) {
			sscanf(at + 8, "%127s", found->version);
			return;
		} else if (!*found->version)
			snprintf(found->version, sizeof(found->version), "%.127s", line);
	}
}

static void ask(struct mpi_found *found)
{
	char command[sizeof(found->launcher) + 64];
	FILE *stream;

	snprintf(found->name, sizeof(found->name), "unknown");
	if (strchr(found->launcher, '\''))
		return;
	/* A launcher that waits for something must not make us wait with it. */
	snprintf(command, sizeof(command), "timeout 5 '%s' --version 2>&1 </dev/null",
		 found->launcher);
	stream = popen(command, "re");
	if (!stream)
		return;
	parse_version(stream, found);
	pclose(stream);
}

bool mpi_ask(struct mpi_found *found, const char *launcher)
{
	const char *name = strrchr(launcher, '/');
	char real[PATH_MAX];
	bool known = false;

	*found = (struct mpi_found){ .name = "" };
	name = name ? name + 1 : launcher;
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		known |= !strcmp(launchers[i], name);
	if (!known)
		return false;
	if (name != launcher)
		snprintf(found->launcher, sizeof(found->launcher), "%s", launcher);
	else if (!on_path(launcher, found->launcher, real))
		return false;
	ask(found);
	return true;
}

int mpi_find(struct mpi_found *found, int room)
{
	/* mpirun, mpiexec and their links are one launcher, which looks at what it was called. */
	char real[sizeof(launchers) / sizeof(launchers[0])][PATH_MAX];
	int count = 0;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]) && count < room; i++) {
		struct mpi_found *entry = &found[count];
		int known = 0;

		*entry = (struct mpi_found){ .name = "" };
		if (!on_path(launchers[i], entry->launcher, real[count]))
			continue;
		for (int k = 0; k < count; k++)
			known |= !strcmp(real[k], real[count]);
		if (known)
			continue;
		ask(entry);
		count++;
	}
	return count;
}

static struct launcher_info infos[LAUNCHERS] = {
	[LAUNCH_OPENMPI] = { .name = "Open MPI",
			     .word = "openmpi",
			     .two_copies = "OMPI_MCA_btl_vader_single_copy_mechanism=none",
			     .bind = { "--bind-to none --oversubscribe",
				       "--bind-to core --map-by core",
				       "--use-hwthread-cpus --bind-to hwthread" } },
	[LAUNCH_MPICH] = { .name = "MPICH",
			   .word = "mpich",
			   .two_copies = "UCX_TLS=self,posix",
			   .bind = { "-bind-to none", "-bind-to core -map-by core",
				     "-bind-to hwthread" } },
};

void launchers_find(void)
{
	struct mpi_found found[8];
	int count = mpi_find(found, 8);

	for (int l = 1; l < LAUNCHERS; l++) {
		for (int i = count - 1; i >= 0; i--) {
			if (strcmp(found[i].name, infos[l].name) != 0)
				continue;
			memcpy(infos[l].command, found[i].launcher, sizeof(infos[l].command));
			memcpy(infos[l].version, found[i].version, sizeof(infos[l].version));
		}
	}
	if (strtoul(infos[LAUNCH_OPENMPI].version, NULL, 10) >= 5)
		infos[LAUNCH_OPENMPI].two_copies = "OMPI_MCA_smsc=^cma,knem,xpmem";
}

const struct launcher_info *launcher_info(enum launcher launcher)
{
	return launcher == LAUNCH_NONE ? NULL : &infos[launcher];
}

enum launcher launcher_of(const char *word)
{
	for (int l = 1; l < LAUNCHERS; l++)
		if (!strcmp(word, infos[l].word))
			return (enum launcher)l;
	return LAUNCH_NONE;
}
