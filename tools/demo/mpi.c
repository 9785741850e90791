// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct demo_mpi demo_mpis[DEMO_MPIS] = {
	[DEMO_OPENMPI] = { .name = "Open MPI",
			   .option = "openmpi",
			   .folder = "",
			   .says = "Open MPI",
			   .cores = "--bind-to core",
			   .threads = "--use-hwthread-cpus --bind-to hwthread",
			   .shared = "--oversubscribe --bind-to none" },
	[DEMO_MPICH] = { .name = "MPICH",
			 .option = "mpich",
			 .folder = "mpich/",
			 .says = "HYDRA",
			 .cores = "-bind-to core",
			 .threads = "-bind-to hwthread",
			 .shared = "-bind-to none" },
};

int demo_mpi_launch(const struct demo *demo, int mpi, struct child_args *args)
{
	const struct demo_mpi *family = &demo_mpis[mpi];

	child_args_add(args, demo->opt.mpirun[mpi]);
	child_args_add(args, "-n");
	child_args_add_long(args, demo->opt.ranks);
	if (demo->opt.ranks <= demo->host.cores)
		return demo_words(args, family->cores);
	if (demo->opt.ranks <= demo->host.cpus)
		return demo_words(args, family->threads);
	return demo_words(args, family->shared);
}

/* First line of what a command prints, without its newline; empty if there is none. */
static void first_line(const char *command, char *line, size_t size)
{
	FILE *pipe = popen(command, "r");

	line[0] = '\0';
	if (!pipe)
		return;
	if (fgets(line, (int)size, pipe))
		line[strcspn(line, "\n")] = '\0';
	while (fgetc(pipe) != EOF)
		;
	pclose(pipe);
}

/*
 * "Open MPI 4.1.4", from "mpirun (Open MPI) 4.1.4" or from the second line that Hydra prints; ""
 * where the launcher is another or none.
 */
static void read_version(const struct demo *demo, int mpi, char *version, size_t size)
{
	char command[PATH_MAX + 128], line[96];

	version[0] = '\0';
	snprintf(command, sizeof(command), "'%s' --version 2>/dev/null", demo->opt.mpirun[mpi]);
	first_line(command, line, sizeof(line));
	if (!strstr(line, demo_mpis[mpi].says))
		return;
	snprintf(command, sizeof(command),
		 "'%s' --version 2>/dev/null | sed -nE 's/^.*(Version:|\\)) +//p'",
		 demo->opt.mpirun[mpi]);
	first_line(command, line, sizeof(line));
	snprintf(version, size, "%s %s", demo_mpis[mpi].name, line);
}

/* Whether /usr/bin/python3 finds an mpi4py for MPICH. */
static bool has_mpi4py(const struct demo *demo)
{
	char command[PATH_MAX + 256], line[64];

	snprintf(command, sizeof(command),
		 "%s%s%s /usr/bin/python3 -c 'import mpi4py; mpi4py.rc.initialize = False; "
		 "from mpi4py import MPI; print(MPI.get_vendor()[0])' 2>/dev/null",
		 demo->opt.mpi4py ? "PYTHONPATH='" : "", demo->opt.mpi4py ? demo->opt.mpi4py : "",
		 demo->opt.mpi4py ? "'" : "");
	first_line(command, line, sizeof(line));
	return *line && strcmp(line, "Open MPI") != 0;
}

/* Why nothing can be run under this MPI; NULL: it can. */
static const char *mpi_trouble(const struct demo *demo, int mpi)
{
	static char text[256];

	if (!*demo->version[mpi]) {
		snprintf(text, sizeof(text),
			 "'%.64s --version' does not say that it is %s; install %s or name it by "
			 "%s",
			 demo->opt.mpirun[mpi], demo_mpis[mpi].name,
			 mpi == DEMO_MPICH ? "mpich" : "openmpi-bin",
			 mpi == DEMO_MPICH ? "--mpirun-mpich" : "--mpirun");
		return text;
	}
	if (mpi == DEMO_MPICH && demo->opt.ranks > demo->host.cpus)
		return "its ranks do not yield: with more of them than CPUs each call takes "
		       "tens of milliseconds";
	return NULL;
}

/* Why this program cannot be run under an MPI that is there; NULL: it can. */
static const char *case_trouble(const struct demo *demo, const struct demo_program *program,
				int mpi)
{
	if (mpi != DEMO_MPICH)
		return NULL;
	if (program->kind == DEMO_HPCC)
		return "Debian's hpcc is a program of Open MPI";
	if (program->kind == DEMO_SCRIPT && !has_mpi4py(demo))
		return "Debian's mpi4py is for Open MPI; name the folder of one for MPICH by "
		       "--mpi4py-mpich";
	return NULL;
}

void demo_cases_list(struct demo *demo)
{
	for (int mpi = 0; mpi < DEMO_MPIS; mpi++) {
		const char *trouble;

		if (demo->opt.only_mpi && strcmp(demo->opt.only_mpi, demo_mpis[mpi].option) != 0)
			continue;
		read_version(demo, mpi, demo->version[mpi], sizeof(demo->version[mpi]));
		trouble = mpi_trouble(demo, mpi);
		for (size_t p = 0; p < demo_num_programs; p++) {
			struct demo_case *one = &demo->cases[demo->num_cases];
			const char *why = trouble;

			if (demo->opt.only && strcmp(demo->opt.only, demo_programs[p]->name) != 0)
				continue;
			if (!why)
				why = case_trouble(demo, demo_programs[p], mpi);
			one->program = demo_programs[p];
			one->mpi = mpi;
			snprintf(one->skipped, sizeof(one->skipped), "%s", why ? why : "");
			demo->num_cases++;
		}
	}
}
