/* SPDX-License-Identifier: BSD-3-Clause */
/* What users type wrong, in the command and in the environment of a job; what outlives a job. */
#include "driver.h"
#include "lab/harness/stock_environment.h"
#include "verdict.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `words`, separated by blanks, behind onecopy: the status, and parts of what it says. */
static void expect(const char *words, int status, const char *first, const char *second)
{
	struct job job = { 0 };
	struct job_result result;
	char *rest = strdup(words), *word;

	job_add(&job, job_onecopy);
	while ((word = strsep(&rest, " ")))
		job_add(&job, word);
	job_run(&job, &result);
	if (result.status != status || !strstr(result.output, first) ||
	    !strstr(result.output, second))
		verdict_fail(&result,
			     "onecopy %s: expected status %d and a sentence with '%s' and "
			     "'%s'",
			     words, status, first, second);
	job_free(&result);
}

/* What `onecopy run` does with LD_PRELOAD, for a library in `dir`; what it says, in one string. */
static char *preloaded(const char *dir)
{
	struct job job = { 0 };
	struct job_result result;
	char *output;

	job_add(&job, job_onecopy, "run");
	job_add_shell(&job, "echo \"list=$LD_PRELOAD;\"");
	job_set(&job, job_text("ONECOPY_PRELOAD_DIR=%s", dir),
		"ONECOPY_COMPONENT_DIR=/no/such/folder", "LD_PRELOAD=libm.so.6");
	job_run(&job, &result);
	if (result.status)
		verdict_fail(&result, "the program under 'onecopy run' failed");
	output = strdup(result.output);
	job_free(&result);
	return output;
}

static void expect_preload(const char *dir, const char *first, const char *second)
{
	char *output = preloaded(dir);

	if (!strstr(output, first) || !strstr(output, second))
		verdict_fail(NULL, "library in '%s': expected '%s' and '%s' in: %s", dir, first,
			     second, output);
	free(output);
}

/* The library joins LD_PRELOAD behind what is there; where it cannot, a sentence. */
static void preload_rows(void)
{
	char plain[] = "/tmp/onecopy-test-XXXXXX";
	const char *blank, *library;

	if (!mkdtemp(plain)) {
		verdict_fail(NULL, "no temporary folder");
		return;
	}
	blank = job_text("%s/a b", plain);
	mkdir(blank, 0700);
	/* An empty file is enough: the dynamic linker complains and goes on. */
	library = job_text("%s/libonecopy-pmpi.so", plain);
	fclose(fopen(library, "w"));
	fclose(fopen(job_text("%s/libonecopy-pmpi.so", blank), "w"));
	expect_preload(plain, job_text("list=libm.so.6:%s;", library),
		       job_text("MPICH library %s", library));
	expect_preload(blank, "list=libm.so.6;", "cannot be preloaded");
	expect_preload("/no/such/folder", "list=libm.so.6;", "runs as without onecopy");
	unlink(library);
	unlink(job_text("%s/libonecopy-pmpi.so", blank));
	rmdir(blank);
	rmdir(plain);
}

SCENARIO(command)
{
	static const struct {
		const char *words;
		int status;
		const char *first, *second;
	} row[] = {
		{ "rum true", 2, "'rum' is not a command",
		  "run, info, tune, model, explain, bench" },
		{ "--frobnicate", 2, "--frobnicate", "--version" },
		{ "help rum", 2, "'rum' is not a command",
		  "run, info, tune, model, explain, bench" },
		{ "help run extra", 2, "'extra'", "too many" },
		{ "--version extra", 2, "'extra'", "too many" },
		{ "--help extra", 2, "'extra'", "too many" },
		{ "run", 2, "no command", "mpirun" },
		{ "run --shared-heap", 2, "no command", "mpirun" },
		{ "run --stats-json /no/such/folder/x echo ran", 2, "/no/such/folder/x",
		  "cannot be written" },
		{ "run --stats-json= true", 2, "--stats-json needs a value", "FILE" },
		{ "explain bcast -b", 2, "-b needs a value", "-b SIZE" },
		{ "explain bcast -zj", 2, "'-zj'", "-b, --bytes SIZE" },
		{ "explain --json -zj", 2, "'-zj'", "-b, --bytes SIZE" },
		{ "bench mechanisms --out=", 2, "--out needs a value", "--out DIR" },
		{ "bench programs --bytes 4K", 2, "--bytes", "blocks or messages" },
		{ "bench contention --all", 2, "--all", "'algorithms' and 'model'" },
		{ "bench start --bytes 4K", 2, "--bytes", "blocks or messages" },
		{ "bench collectives --quick --everything", 2, "--everything",
		  "exclude each other" },
		{ "bench collectives --night --quick", 2, "--night", "exclude each other" },
		{ "bench collectives --night --gate --rounds 2", 2, "--gate", "at least 6 rounds" },
		{ "info --json --plan bcast knomial:4 8", 2, "--plan", "--profile" },
		{ "run --sta true", 2, "'--sta' is not", "--stats-json FILE" },
		{ "run --stats-j", 2, "--stats-j needs a value", "FILE" },
		{ "run --sttas true", 2, "--sttas", "--stats-json FILE" },
		{ "run -x true", 2, "-x", "--quiet" },
		{ "run --mechanism", 2, "--mechanism needs a value", "NAME" },
		{ "run --mechanism teleport true", 2, "'teleport'", "cma" },
		{ "run --log loud true", 2, "'loud'", "error, warn, info, debug" },
		{ "run --force bcast true", 2, "COLLECTIVE=ALGORITHM", "bcast" },
		{ "run --force broadcast=knomial true", 2, "'broadcast'", "allreduce" },
		{ "run --force bcast=knomail true", 2, "'knomail'", "knomial" },
		{ "run --force bcast=knomial:0 true", 2, "knomial:0", "knomial" },
		{ "run --force bcast=knomial:x true", 2, "knomial:x", "knomial" },
		{ "run --quiet no-such-command-here", 127,
		  "no-such-command-here: command not found", "PATH" },
		{ "run --stats no-such-command-here", 127,
		  "no-such-command-here: command not found", "PATH" },
		{ "run --quiet ./no-such-script", 127, "./no-such-script: command not found",
		  "interpreter" },
		{ "run --quiet /etc/passwd", 126, "/etc/passwd", "denied" },
		{ "run --quiet --stats false", 1, "nothing was served", "" },
		{ "run --quiet sh -c exit\t7", 7, "", "" },
		{ "run --stats sh -c exit\t7", 7, "", "" },
		{ "info extra", 2, "'extra'", "--plan" },
		{ "info --jsn", 2, "--jsn", "--algorithms" },
		{ "info --plan bcast", 2, "COLLECTIVE ALGORITHM RANKS", "" },
		{ "info --plan bcast knomial:2 none", 2, "'none'", "1 to" },
		{ "info --plan bcast nonsense 4", 2, "'nonsense'", "knomial" },
		{ "info --plan bcast knomial:2 4", 0, "digraph", "}" },
		{ "info", 0, "Mechanisms", "Topology" },
		{ "info", 0, "Open MPI component", "MPICH library" },
		{ "info --json", 0, "\"preload\"", "\"built_for_mpich\"" },
		{ "info --json", 0, "\"kmod\"", "\"module\"" },
		{ "info --options", 0, "ONECOPY_MECHANISM", "default" },
		{ "info --algorithms", 0, "knomial", "pairwise" },
		{ "tune extra", 2, "'extra'", "options only" },
		{ "tune --ranks 0", 2, "'0'", "1 to 256" },
		{ "tune --ranks many", 2, "'many'", "1 to 256" },
		{ "tune --ranks", 2, "--ranks needs a value", "--ranks N" },
		{ "tune --fast", 2, "--fast", "--quick" },
		{ "tune --output a --system", 2, "--output and --system", "one of them" },
		{ "tune --output /dev/null", 1, "/dev/null", "not a regular file" },
		{ "tune --output /proc/none/x", 1, "/proc/none/x", "--output FILE" },
		{ "tune --help", 0, "--quick", "Exit status" },
		{ "model", 2, "needs a collective", "scatter" },
		{ "model brodcast", 2, "'brodcast'", "bcast, scatter" },
		{ "model bcast gather", 2, "'gather'", "one collective" },
		{ "model bcast --ranks 0", 2, "'0'", "2 to 1024" },
		{ "model bcast --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "model bcast --bytes 1K,many", 2, "'many'", "such as" },
		{ "model bcast --profile cray", 2, "'cray'", "knl" },
		{ "model bcast --profile /no/such.json", 2, "/no/such.json", "No such file" },
		{ "model allreduce --measured --bytes 100", 2, "100", "multiples of 8" },
		{ "model bcast --measured --bytes 4K,0", 2, "--bytes 0", "1 and more" },
		{ "model bcast --bytes 0 --plot plots", 2, "--plot", "1 and more" },
		{ "model scatterv --measured", 2, "scatterv", "equal blocks" },
		{ "model bcast --plot", 2, "--plot needs a value", "DIR" },
		{ "model bcast --bytes 4K --plot /proc/none", 1, "/proc/none", "cannot be made" },
		{ "model barrier --plot plots", 2, "--plot", "a barrier has none" },
		{ "model bcast --no-single-copy --bytes 64", 0, "chosen", "only compared" },
		{ "model scatter --ranks 64 --profile knl --bytes 64K", 0, "throttled-read:8",
		  "closed form" },
		{ "model alltoallv --ranks 4 --json", 0, "\"virtual_time\"", "\"pairwise\"" },
		{ "model gather --ranks 2 --bytes 64 --measured", 0, "measured", "inline" },
		{ "model alltoall --ranks 16 --bytes 64G --measured", 1, "were not measured",
		  "of memory are left" },
		{ "model --help", 0, "--measured", "Exit status" },
		{ "explain", 2, "needs a collective", "explain bcast" },
		{ "explain bcast --bytes -1", 2, "'-1'", "such as" },
		{ "explain bcast --ranks 99999", 2, "'99999'", "2 to 1024" },
		{ "explain bcast --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "explain barrier", 0, "barrier on 2 ranks: ", "total" },
		{ "explain bcast", 0, "* ", "- shm" },
		{ "explain bcast --why", 2, "--why", "--profile" },
		{ "explain bcast --bytes 1M --ranks 16 --profile knl", 0, "cheapest by the model",
		  "* scatter-" },
		{ "explain bcast --bytes 1M --ranks 16 --profile knl", 0, "memory  reduce  signals",
		  "191.00    0.00    0.00     0.00" },
		{ "explain bcast --bytes 1M --profile default", 0, "table of measurements",
		  "* cooperative" },
		{ "info --plan allgather ring-neighbor:2 4", 2, "ring-neighbor:2", "divisor" },
		{ "info --plan bcast knomial 4 --profile /etc/passwd", 2, "/etc/passwd:1",
		  "tuning file" },
		{ "explain bcast --ranks 16 --json --profile knl", 0, "\"contention_s\"",
		  "\"chosen\"" },
		{ "bench everything", 2, "'everything'", "algorithms, mechanisms" },
		{ "bench mechanisms bcast", 2, "'bcast'", "take collectives" },
		{ "bench algorithms brodcast", 2, "'brodcast'", "bcast, scatter" },
		{ "bench algorithms gatherv", 2, "gatherv", "equal blocks" },
		{ "bench --rounds 0", 2, "'0'", "1 to 401" },
		{ "bench --bytes 4K,0", 2, "--bytes 0", "1 and more" },
		{ "bench algorithms allreduce --bytes 20", 2, "20", "multiples of 8" },
		{ "bench model --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "bench p2p --bytes x", 2, "'x'", "such as" },
		{ "bench p2p --rounds 0", 2, "'0'", "1 to 401" },
		{ "bench p2p --out /etc/passwd", 1, "/etc/passwd", "--out DIR writes elsewhere" },
		{ "bench p2p bcast", 2, "'bcast'", "take collectives" },
		{ "bench p2p --bytes 2G", 2, "--bytes 2147483648", "1 to 1073741824" },
		{ "bench p2p --bytes 0", 2, "--bytes 0", "1 to 1073741824" },
		{ "bench p2p --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "bench p2p --ranks 4", 2, "--ranks 4", "of 2 ranks" },
		{ "bench start bcast", 2, "'bcast'", "take collectives" },
		{ "bench start --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "bench algorithms --touch", 2, "--touch", "only 'p2p'" },
		{ "bench start --ranks 2,4", 2, "several numbers", "only 'collectives'" },
		{ "bench start --ways all", 2, "--ways", "only 'collectives'" },
		{ "bench messages lam", 2, "'lam'", "openmpi or mpich" },
		{ "bench contention --mpi mpich", 2, "--mpi", "'collectives' and 'programs'" },
		{ "bench collectives --bytes 4G", 2, "--bytes 4294967296", "below 2 GiB" },
		{ "bench collectives brodcast", 2, "'brodcast'", "neighbor_alltoallv" },
		{ "bench collectives --collectives bcast,nothing", 2, "'nothing'",
		  "allreduce, scatterv" },
		{ "bench collectives --mpi lam", 2, "'lam'", "both" },
		{ "bench collectives --ways slow", 2, "'slow'", "first-1000, or all" },
		{ "bench collectives --ranks 2,0", 2, "'0'", "1 to 1024" },
		{ "bench collectives --ranks 2,1", 2, "--ranks 1", "2 and more" },
		{ "bench collectives --ranks 2,3,4,5,6,7,8,9,10", 2, "--ranks", "more than 8" },
		{ "bench collectives --sizes 4,huge,1M", 2, "'huge'", "such as" },
		{ "bench collectives --sizes 0", 2, "--bytes 0", "1 and more" },
		{ "bench collectives reduce --bytes 6", 2, "6", "multiples of 4" },
		{ "bench collectives --runs 0", 2, "'0'", "1 to 401" },
		{ "bench collectives --cached --cold", 2, "--cached and --cold", "exclude" },
		{ "bench collectives --gate --runs 5", 2, "--gate", "at least 6" },
		{ "bench collectives --better --mpi both", 2, "--better", "one of them" },
		{ "bench collectives --better --two-copies", 2, "--two-copies", "exclude" },
		{ "bench p2p --two-copies", 2, "--two-copies", "'collectives'" },
		{ "bench collectives --out /etc/passwd", 1, "/etc/passwd",
		  "--out DIR writes elsewhere" },
		{ "bench programs --only nothing", 2, "no program 'nothing'", "asp" },
		{ "bench programs --paper --only asp", 2, "no program 'asp'", "128 KiB" },
		{ "bench programs --paper --mpi mpich", 2, "its columns are Open MPI's", "--mpi" },
		{ "bench programs --ranks 1", 2, "--ranks 1", "2 and more" },
		{ "bench programs --seconds 0", 2, "--seconds takes a whole number from 1", "" },
		{ "bench programs --out /etc/passwd", 1, "/etc/passwd",
		  "--out DIR writes elsewhere" },
		{ "bench start --mpirun-mpich x", 2, "--mpirun-mpich", "only 'programs'" },
		{ "bench --out", 2, "--out needs a value", "DIR" },
		{ "bench --out /proc/none/x", 1, "/proc/none/x", "cannot be made" },
		{ "bench --json /no/such/x", 1, "/no/such/x", "--json FILE writes elsewhere" },
		{ "bench model bcast --quick --ranks 2 --bytes 4K --rounds 1", 0, "direct-read",
		  "Predicted against measured" },
		{ "bench algorithms barrier --quick --rounds 1 --json -", 0, "\"samples\"",
		  "dissemination" },
		{ "bench contention --quick --rounds 1", 0, "throughput", "256K" },
		{ "bench --help", 0, "--rounds", "Exit status" },
		{ "--version", 0, "onecopy ", "." },
		{ "--help", 0, "run", "info" },
		{ "help run", 0, "--stats-json", "Exit status" },
		{ "info --help", 0, "--algorithms", "Exit status" },
	};
	enum { ROWS = sizeof(row) / sizeof(row[0]) };

	for (int i = 0; i < ROWS; i++)
		expect(row[i].words, row[i].status, row[i].first, row[i].second);
	expect(job_text("run -q env ONECOPY_BCAST=foo %s info --options", job_onecopy), 0,
	       "ONECOPY_BCAST=foo cannot be used", "algorithm of Bcast");
	preload_rows();
	verdict_done("command: %d command lines, right and wrong, answered as they should be\n",
		     ROWS);
}

static const char *name_of(const char *name_is_value)
{
	return job_text("%.*s", (int)strcspn(name_is_value, "="), name_is_value);
}

static bool is_set(const struct job *job, const char *name_is_value)
{
	size_t length = strcspn(name_is_value, "=") + 1;

	for (int i = 0; i < job->variables; i++)
		if (!strncmp(job->environment[i], name_is_value, length))
			return true;
	return false;
}

/* One warning for the job that names the variable, and the calls are served all the same. */
SCENARIO(environment)
{
	static const char *const bad[] = {
		"ONECOPY_BCAST=knomail",
		"ONECOPY_BCAST=knomial:0",
		"ONECOPY_MECHANISM=teleport",
		"ONECOPY_SPINS=many",
		"ONECOPY_SEGMENT_BYTES=-5",
		"ONECOPY_CHECK=perhaps",
		"ONECOPY_PTRACER=me",
		"ONECOPY_LOG=loud",
		"ONECOPY_BCSAT=knomial",
		"ONECOPY=maybe",
		"ONECOPY_TUNING=/no/file",
		"ONECOPY_TUNING=/etc/passwd",
		"ONECOPY_P2P=teleport",
		"ONECOPY_P2P_EAGER=some",
		"ONECOPY_HEAP_BYTES=-1",
		"ONECOPY_MAP_BYTES=much",
		"ONECOPY_TUNING=/dev/zero",
		"ONECOPY_TUNING=/proc/self/mem",
		"ONECOPY_BCAST=",
		"ONECOPY_ALLREDUCE=knomial",
		"ONECOPY_SPINS=-1",
		"ONECOPY_HEAP_BYTES=99999999999999999999999",
		"ONECOPY_SEGMENT_BYTES=1",
		"ONECOPY_MECHANISM=\xff\x1b[31m%s%n",
	};
	enum { BAD = sizeof(bad) / sizeof(bad[0]) };
	bool used[BAD] = { false };
	int jobs = 0;

	for (int left = BAD; left; jobs++) {
		struct job job = job_mpi(2, "bytes");
		struct job_result result;
		int set = 0;

		job_add(&job, "bcast");
		/* A job has a value of each variable at most. */
		for (int i = 0; i < BAD; i++) {
			if (used[i] || is_set(&job, bad[i]))
				continue;
			job_set(&job, bad[i]);
			used[i] = true;
			set++;
		}
		left -= set;
		if (verdict_run(&job, &result, "a job with bad values")) {
			int warnings = verdict_count(&result, "warning: ");

			verdict_served_exactly(&result, "bcast", NULL, NULL);
			for (int i = 0; i < job.variables; i++)
				if (!strstr(result.output, name_of(job.environment[i])))
					verdict_fail(&result, "no warning names the variable of %s",
						     job.environment[i]);
			if (warnings != set)
				verdict_fail(&result, "%d bad values gave %d warnings", set,
					     warnings);
		}
		job_free(&result);
	}
	verdict_done(
		"environment: %d bad values in %d jobs: one warning each, the jobs went on with "
		"the defaults\n",
		BAD, jobs);
}

/* The default that the manual page says of a variable; NULL: the variable is not there. */
static const char *manual_default(const char *manual, const char *variable)
{
	/* As a heading of its own, alone or with the asterisk. */
	const char *heading = strstr(manual, job_text("\n.B %s\n", variable));
	const char *says;

	if (!heading)
		heading = strstr(manual, job_text("\n.BR %s *\n", variable));
	says = heading ? strstr(heading, "Default") : NULL;
	if (!says)
		return NULL;
	if (!strncmp(says, "Default: none", 13))
		return "";
	says = strchr(says, '\n') + 1;
	says += strncmp(says, ".BR ", 4) ? strlen(".B ") : strlen(".BR ");
	return job_text("%.*s", (int)strcspn(says, " \n"), says);
}

/* onecopy-environment(7) has every option, with the default that it has. */
SCENARIO(manual)
{
	struct job job = { 0 };
	struct job_result result;
	const json_t *row;
	json_t *json;
	char *manual = NULL;
	size_t i, bytes = 0;
	FILE *file = fopen(OC_TEST_MANUAL, "r");

	if (!file || getdelim(&manual, &bytes, '\0', file) < 0) {
		verdict_fail(NULL, "%s cannot be read", OC_TEST_MANUAL);
		return;
	}
	fclose(file);
	job_add(&job, job_onecopy, "info", "--options", "--json");
	/* The command's own variable is no option, and no reason for a warning. */
	job_set(&job, "ONECOPY_COMPONENT_DIR=/no/such/folder");
	job_run(&job, &result);
	json = json_loads(result.output, 0, NULL);
	if (!json_array_size(json_object_get(json, "options")))
		verdict_fail(&result, "onecopy info --options --json lists nothing");
	json_array_foreach(json_object_get(json, "options"), i, row)
	{
		const char *variable = json_string_value(json_object_get(row, "variable"));
		const char *is = json_string_value(json_object_get(row, "default"));
		const char *said = manual_default(manual, variable);

		if (!said || strcmp(said, is))
			verdict_fail(NULL, "%s: the manual page says the default '%s', it is '%s'",
				     variable, said ? said : "(nothing)", is);
	}
	verdict_done("manual: %zu options and their defaults are in the page\n", i);
	json_decref(json);
	job_free(&result);
	free(manual);
}

/* Files in the statistics' directory that are truncated or not ours: named, left out. */
SCENARIO(foreign_stats)
{
	static const char *const script =
		"cd $ONECOPY_STATS_DIR && echo '{\"onecopy\": \"0' >a.json && echo '[1]' >b.json && "
		"echo '{\"onecopy\": \"1\", \"collectives\": [{\"calls\": \"x\"}], "
		"\"handed_back\": []}' >c.json && echo 7 >not-json && "
		"echo '{\"onecopy\": \"1\", \"rank\": 0, \"job_ranks\": 3, \"collectives\": [{\"collective\": \"bcast\", "
		"\"algorithm\": \"cico\", \"mechanism\": \"shm\", \"calls\": 3, \"bytes\": 12}], "
		"\"handed_back\": []}' >d.json";
	struct job job = { 0 };
	struct job_result result;

	job_add(&job, job_onecopy, "run", "--stats");
	job_add_shell(&job, script);
	job_run(&job, &result);
	if (result.status || verdict_count(&result, "left out of the statistics") != 3 ||
	    !strstr(result.output, "summed over 1 of 3 ranks\n") ||
	    !strstr(result.output, "2 ranks left no statistics: "))
		verdict_fail(&result,
			     "three files should have been left out, one counted, two missing");
	job_free(&result);
	verdict_done("foreign_stats: 3 broken files named and left out, the good one counted\n");
}

/* Of an environment under onecopy nothing is left that loads or sets it, and all else stays. */
SCENARIO(stock)
{
	static const char *const path = "OMPI_MCA_mca_base_component_path";
	char dropped[1024];

	setenv(path, job_text("%s:/elsewhere:SYSTEM_DEFAULT", OC_TEST_COMPONENT_DIR), 1);
	setenv("ONECOPY", "on", 1);
	setenv("ONECOPY_BCAST", "mpi", 1);
	setenv("ONECOPYRIGHT", "no option of ours", 1);
	setenv("OMPI_MCA_coll_onecopy_priority", "-1", 1);
	setenv("LD_PRELOAD", "/one/libfirst.so:/onecopy/libonecopy-pmpi.so /onecopy/liblast.so", 1);
	if (!stock_environment(dropped, sizeof(dropped)) || !strstr(dropped, "ONECOPY_BCAST") ||
	    !strstr(dropped, path))
		verdict_fail(NULL, "it says that it dropped '%s'", dropped);
	if (getenv("ONECOPY") || getenv("ONECOPY_BCAST") ||
	    getenv("OMPI_MCA_coll_onecopy_priority"))
		verdict_fail(NULL, "a setting of onecopy is left");
	if (!getenv("ONECOPYRIGHT"))
		verdict_fail(NULL, "a variable that is not onecopy's is gone");
	if (strcmp(getenv(path), "/elsewhere:SYSTEM_DEFAULT"))
		verdict_fail(NULL, "the component path is '%s'", getenv(path));
	if (strcmp(getenv("LD_PRELOAD"), "/one/libfirst.so:/onecopy/liblast.so"))
		verdict_fail(NULL, "LD_PRELOAD is '%s'", getenv("LD_PRELOAD"));
	if (stock_environment(dropped, sizeof(dropped)))
		verdict_fail(NULL, "the second time it still drops '%s'", dropped);
	verdict_done("stock: onecopy leaves an environment without a trace\n");
}
