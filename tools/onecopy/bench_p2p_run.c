/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the programs of p2p and start: directly, under an MPI's launcher, or under onecopy run. MPIs
 * are as they are installed; of onecopy nothing is left in the environment but what a run asks for.
 */
#include "bench_p2p.h"

#include "command.h"
#include "lab/harness/stock_environment.h"
#include "mpi_found.h"
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than any run takes; a launcher that hangs must not make us hang. */
#define RUN_SECONDS 300

static const char *const programs[P2P_PROGRAMS][P2P_LAUNCHERS] = {
	[P2P_PINGPONG] = { "onecopy-pingpong", "onecopy-pingpong-openmpi",
			   "onecopy-pingpong-mpich" },
	[P2P_START] = { [P2P_OPENMPI] = "onecopy-start-openmpi",
			[P2P_MPICH] = "onecopy-start-mpich" },
};
static const char *const names[P2P_LAUNCHERS] = { "the C API", "Open MPI", "MPICH" };
/* Relative to the executable's directory: the build tree, then an installation's bin. */
static const char *const places[2] = { ".", OC_PRELOAD_FROM_BIN };

static struct {
	char program[P2P_LAUNCHERS][PATH_MAX + 64];
	struct mpi_found launcher[P2P_LAUNCHERS];
	char self[PATH_MAX];
} found;
/* Why one cannot run; "" where it can. */
static char reason[P2P_LAUNCHERS][PATH_MAX + 256];

/* What the shell takes as it is, between single quotes. */
static bool is_plain(const char *path)
{
	return *path && !strchr(path, '\'');
}

static void find_program(const char *name, int l)
{
	char dir[PATH_MAX];
	bool there = place_find(name, "", places, dir);

	snprintf(found.program[l], sizeof(found.program[l]), "%s/%s", dir, name);
	if (!there)
		snprintf(reason[l], sizeof(reason[l]),
			 "%s is not there; build onecopy with that MPI installed",
			 found.program[l]);
	else if (!is_plain(found.program[l]))
		snprintf(reason[l], sizeof(reason[l]), "its path has a quote in it: %s",
			 found.program[l]);
}

void p2p_find(enum p2p_program program)
{
	struct mpi_found all[8];
	char dropped[1024];
	int count = mpi_find(all, 8);
	ssize_t length = readlink("/proc/self/exe", found.self, sizeof(found.self) - 1);

	found.self[length > 0 ? length : 0] = '\0';
	for (int l = 0; l < P2P_LAUNCHERS; l++) {
		if (programs[program][l])
			find_program(programs[program][l], l);
		for (int i = 0; l && i < count; i++) {
			if (!*found.launcher[l].launcher && !strcmp(all[i].name, names[l]) &&
			    is_plain(all[i].launcher))
				found.launcher[l] = all[i];
		}
		if (l && !*reason[l] && !*found.launcher[l].launcher)
			snprintf(reason[l], sizeof(reason[l]), "no launcher of it is on PATH");
	}
	if (!geteuid()) {
		/* mpirun refuses root otherwise; in a container there is often nobody else. */
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
	}
	if (stock_environment(dropped, sizeof(dropped)))
		command_say("not passed on, as it would change what is measured: %s", dropped);
}

const char *p2p_missing(const struct p2p_run *run)
{
	return *reason[run->launcher] ? reason[run->launcher] : NULL;
}

const char *p2p_version(enum p2p_launcher launcher)
{
	return found.launcher[launcher].version;
}

static void put_launcher(FILE *out, const struct p2p_run *run)
{
	fprintf(out, "timeout -k 5 %d ", RUN_SECONDS);
	if (run->setting)
		fprintf(out, "env %s ", run->setting);
	if (run->onecopy)
		fprintf(out, "'%s' run --quiet %s", found.self,
			run->shared ? "--shared-heap " : "");
	if (run->launcher == P2P_OPENMPI)
		fprintf(out, "'%s' -n %u --bind-to none --oversubscribe ",
			found.launcher[P2P_OPENMPI].launcher, run->ranks);
	if (run->launcher == P2P_MPICH)
		fprintf(out, "'%s' -n %u -bind-to none ", found.launcher[P2P_MPICH].launcher,
			run->ranks);
	fprintf(out, "'%s'", found.program[run->launcher]);
}

static char *command_line(const struct p2p_run *run)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	put_launcher(out, run);
	fprintf(out, " --ranks %u --seconds %g", run->ranks, run->seconds);
	for (unsigned int i = 0; i < run->cpu_count; i++)
		fprintf(out, "%s%u", i ? "," : " --cpus ", run->cpus[i]);
	for (unsigned int i = 0; i < run->sizes->count; i++)
		fprintf(out, "%s%zu", i ? "," : " --bytes ", run->sizes->at[i]);
	if (run->token_ns[1] > 0)
		fprintf(out, " --token-ns %.9g:%.9g", run->token_ns[0], run->token_ns[1]);
	fprintf(out, "%s%s%s%s 2>&1 </dev/null", run->touch ? " --touch" : "",
		run->alltoall ? " --alltoall" : "", run->misses ? " --misses" : "",
		run->shared && run->launcher == P2P_NONE ? " --shared" : "");
	return fclose(out) ? NULL : text;
}

/* Values in the order of the sizes; the first line that is none is kept, as a reason. */
static unsigned int read_values(FILE *in, const struct p2p_run *run, struct p2p_value *values,
				char *said, size_t said_n, char *other, size_t other_n)
{
	unsigned int count = 0;
	char line[1024];

	while (fgets(line, sizeof(line), in)) {
		struct p2p_value value;
		size_t bytes;

		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#') {
			snprintf(said, said_n, "%.*s", (int)said_n - 1, line + 2);
		} else if (sscanf(line, "%zu %lf %lf", &bytes, &value.s, &value.misses) == 3 &&
			   count < run->sizes->count && bytes == run->sizes->at[count]) {
			values[count++] = value;
		} else if (!*other && *line && line[0] != '-') {
			snprintf(other, other_n, "%.*s", (int)other_n - 1, line);
		}
	}
	return count;
}

/* other: what the run said that was not expected. */
static int end(FILE *in, bool complete, const char *other, char *why, size_t why_n)
{
	int status = pclose(in);

	if (!status && complete)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 124)
		snprintf(why, why_n, "it did not end within %d s", RUN_SECONDS);
	else
		snprintf(why, why_n, "it ended with status %d%s%s",
			 WIFEXITED(status) ? WEXITSTATUS(status) : 128, *other ? ": " : "", other);
	return -1;
}

int p2p_execute(const struct p2p_run *run, struct p2p_value *values, char *why, size_t why_n,
		char *said, size_t said_n)
{
	char *command = command_line(run), other[256] = "";
	FILE *in = command ? popen(command, "re") : NULL;
	unsigned int count;

	*said = '\0';
	free(command);
	if (!in) {
		snprintf(why, why_n, "it cannot be started: %s", strerror(errno));
		return -1;
	}
	count = read_values(in, run, values, said, said_n, other, sizeof(other));
	return end(in, count == run->sizes->count, other, why, why_n);
}

int p2p_launch(const struct p2p_run *run, const char *arguments, char *why, size_t why_n)
{
	char *command = NULL, line[256], other[256] = "";
	size_t length;
	FILE *out = open_memstream(&command, &length), *in = NULL;

	if (out) {
		put_launcher(out, run);
		fprintf(out, " %s 2>&1 </dev/null", arguments);
		if (!fclose(out))
			in = popen(command, "re");
	}
	free(command);
	if (!in) {
		snprintf(why, why_n, "it cannot be started: %s", strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*other && *line && line[0] != '-')
			snprintf(other, sizeof(other), "%s", line);
	}
	return end(in, true, other, why, why_n);
}
