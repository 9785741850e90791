/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs in restricted, hostile and unquiet surroundings: system calls that are refused, descriptors
 * that are short, ranks that are stopped or debugged, processes that outlive the job. */
#include "driver.h"
#include "verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All is served; or nothing is, and there is a sentence with these words. */
static void check_served(const struct job_result *result, bool served, const char *words)
{
	if (served)
		verdict_served_at_least(result, NULL);
	else if (verdict_served(result, NULL, NULL, NULL) || !strstr(result->output, words))
		verdict_fail(result, "nothing should be served, and a sentence with '%s' say why",
			     words);
}

/*
 * Whatever is refused, the bytes are right. `served`: by us all the same; else a sentence says why
 * not.
 */
SCENARIO(refused_calls)
{
	static const struct {
		const char *calls, *error;
		bool served;
	} row[] = {
		{ "process_vm_readv,process_vm_writev", "ENOSYS", true },
		{ "process_vm_writev", "EPERM", true },
		{ "memfd_create", "ENOSYS", true },
		{ "pidfd_open", "ENOSYS", true },
		{ "fallocate", "EOPNOTSUPP", false },
		{ "getrandom", "ENOSYS", false },
		{ "madvise", "EINVAL", true },
		{ "prctl", "EPERM", true },
	};
	enum { ROWS = sizeof(row) / sizeof(row[0]) };

	for (int i = 0; i < ROWS; i++) {
		struct job job = job_mpi(2, NULL);
		struct job_result result;

		job_leave_cma_to_us(&job);
		job_set(&job, "OC_TEST_STOCK=1"); /* what the MPI gets wrong by itself */
		job_add_program(&job, "deny");
		job_add(&job, row[i].calls, row[i].error);
		job_add_program(&job, "surroundings");
		job_add(&job, job_text("%s of %s", row[i].error, row[i].calls));
		if (verdict_run(&job, &result, row[i].calls))
			check_served(&result, row[i].served, "stay with the MPI");
		job_free(&result);
	}
	verdict_done("refused_calls: %d refusals, every byte right\n", ROWS);
}

/* Runs `script` in a shell under onecopy, with mpirun, its arguments and what is added as "$@". */
static struct job job_scripted(int ranks, const char *script)
{
	struct job job = job_under_onecopy(), stock = job_stock(ranks, NULL);

	job_add_shell(&job, script);
	job_add(&job, "sh");
	job_add_words(&job, stock.word);
	return job;
}

static void run_daemon(struct job *job, struct job_result *result)
{
	const char *file = job_file(job_text("/tmp/onecopy-test-daemon-%d", (int)getpid()));

	job_add_program(job, "surroundings");
	job_add(job, "daemon", file);
	job_set(job, job_text("FILE=%s", file));
	unlink(file);
	if (mkfifo(file, 0600))
		verdict_fail(NULL, "%s: %s", file, strerror(errno));
	job_run(job, result);
	if (!strstr(result->output, "the daemon outlived the job"))
		verdict_fail(result, "the daemon did not do its work");
	unlink(file);
}

static bool can_unshare(const char *options)
{
	return !system(job_text("unshare %s true 2>/dev/null", options));
}

/*
 * namespaces: ranks in PID namespaces of their own, as containers may have them, know each other by
 * no number: their calls are the MPI's. (Open MPI 4.1.4 by itself crashes there, as both are
 * process 1.) In time namespaces of their own they are served.
 */
SCENARIO(namespaces)
{
	static const char *const pid = "-p -f --mount-proc", *const time = "-T -f --boottime 1000";
	bool pids = job_is_mpich && can_unshare(pid), times = can_unshare(time);
	struct job_result result;
	struct job job;

	(void)words;
	if (!pids && !times) {
		printf("skipped: no namespaces can be made here\n");
		exit(TEST_SKIPPED);
	}
	for (int i = 0; i < 2; i++) {
		if (!(i ? times : pids))
			continue;
		job = job_mpi(2, NULL);
		if (!i) /* by TCP, as between hosts */
			job_add_behind(&job, "leaves");
		if (i)
			job_add_shell(&job, "exec unshare -T -f --boottime "
					    "$((${OMPI_COMM_WORLD_RANK-$PMI_RANK} * 100000)) "
					    "\"$@\"");
		else
			job_add_shell(&job, job_text("exec unshare %s \"$@\"", pid));
		job_add(&job, "sh");
		job_add_program(&job, "surroundings");
		job_add(&job, "plain");
		job_set(&job, "OC_TEST_STOCK=1");
		if (verdict_run(&job, &result,
				i ? "ranks in time namespaces" : "ranks in PID namespaces"))
			check_served(&result, i, "is in another PID namespace");
		/* Of PIDs, each is process 1. */
		if (json_integer_value(json_object_get(result.stats, "ranks")) != 2)
			verdict_fail(&result, "the counters of both ranks should be there");
		job_free(&result);
	}
	verdict_done("namespaces: right in those%s%s\n", pids ? " of PIDs" : "",
		     times ? " of time" : "");
}

/* surroundings MODE RANKS [map]: see surroundings.c */
SCENARIO(surroundings)
{
	/* A pipe, which is open as MPICH's mpirun may wait for the daemon; it hangs for all to see
	 * if nobody writes. */
	static const char *const wait_for_daemon =
		"exec 3<>$FILE; \"$@\" 3<&- || exit; read line <&3; echo $line";
	bool is_daemon = words[0] && !strcmp(words[0], "daemon");
	bool is_locked = words[0] && !strcmp(words[0], "locked");
	int ranks = driver_ranks(words[0] ? words[1] : NULL);
	struct job_result result;
	struct job job;

	job_shares_heaps = words[2] && !strcmp(words[2], "map");
	job = is_daemon ? job_scripted(ranks, wait_for_daemon) : job_mpi(ranks, NULL);
	if (is_daemon) {
		run_daemon(&job, &result);
	} else {
		if (is_locked)
			job_set(&job, "OC_TEST_STOCK=1");
		job_add_program(&job, "surroundings");
		job_add(&job, words[0]);
		job_run(&job, &result);
	}
	verdict_skip(&result);
	if (verdict_ended_well(&result, words[0]))
		check_served(&result, !is_locked, "(ulimit -l)");
	verdict_done("surroundings: %d ranks, %s: every byte right\n", ranks, words[0]);
	job_free(&result);
}

/* Whether a tmpfs can be mounted in a mount name space of our own: `unshare` with what it takes. */
static const char *unshare_words(void)
{
	const char *words = geteuid() ? "unshare -rm" : "unshare -m";
	struct job job = { 0 };
	struct job_result result;
	int status;

	job_add_shell(&job, job_text("%s mount -t tmpfs none /sys/fs/cgroup", words));
	job_run(&job, &result);
	status = result.status;
	job_free(&result);
	return status ? NULL : words;
}

/*
 * memory_group: what the files of the memory group say is left, in both versions' files, as its
 * limit cannot be set everywhere: enough, no room to grow in, none for a segment. Pages that are
 * taken in spite of that would wake the OOM killer, which the MPI alone would not have.
 */
SCENARIO(memory_group)
{
	static const struct {
		const char *kib;
		bool served;
	} row[] = { { "100000", true }, { "200", true }, { "150", false } };
	static const char *const pretend =
		"mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir memory && "
		"echo 1073741824 | tee memory.max >memory/memory.limit_in_bytes && "
		"echo $((1073741824 - 1024 * $LEFT_KIB)) | "
		"tee memory.current >memory/memory.usage_in_bytes && cd / && exec \"$@\"";
	const char *unshare = unshare_words();

	if (!unshare) {
		printf("skipped: nothing can be mounted over /sys/fs/cgroup here\n");
		exit(TEST_SKIPPED);
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct job job =
			job_scripted(2, job_text("exec %s sh -c '%s' sh \"$@\"", unshare, pretend));
		struct job_result result;

		job_set(&job, "OC_TEST_STOCK=1", job_text("LEFT_KIB=%s", row[i].kib));
		job_add_program(&job, "surroundings");
		job_add(&job, job_text("%s KiB left in the memory group", row[i].kib));
		if (verdict_run(&job, &result, row[i].kib))
			check_served(&result, row[i].served, "Give the job more memory");
		job_free(&result);
	}
	verdict_done("memory_group: at the limit of its memory group a job is right, and takes "
		     "nothing that is not there\n");
}

/* A memory group of our own with that limit, of either version; NULL: none can be made here. */
static const char *make_memory_group(int mib)
{
	static const char *const parent[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };
	static const char *const limit[] = { "memory.limit_in_bytes", "memory.max" };

	for (int version = 0; version < 2; version++) {
		const char *path = job_text("%s/onecopy-test-%d", parent[version], (int)getpid());
		const char *name = job_text("%s/%s", path, limit[version]);
		FILE *file = mkdir(path, 0755) ? NULL : fopen(name, "r+");

		if (file && fprintf(file, "%d", mib << 20) > 0 && !fclose(file))
			return job_file(path);
		rmdir(path);
	}
	return NULL;
}

/*
 * memory_limit MIB plain|sparse: a job in a memory group that has hardly more than the MPI alone
 * takes, 27 MiB on 2 ranks, or than a program that uses little of what it has allocated, with and
 * without the shared heap: all is served, and the OOM killer ends nobody.
 */
SCENARIO(memory_limit)
{
	const char *group = make_memory_group(driver_ranks(words[0]));

	if (!group) {
		printf("skipped: no memory group can be made in /sys/fs/cgroup here\n");
		exit(TEST_SKIPPED);
	}
	for (int heap = 0; heap < 2; heap++) {
		struct job_result result;
		struct job job;

		job_shares_heaps = heap;
		job = job_mpi(2, NULL);
		job_set(&job, "OC_TEST_STOCK=1", job_text("GROUP=%s", group));
		job_add_shell(&job, "echo $$ >$GROUP/cgroup.procs && exec \"$@\"");
		job_add(&job, "sh");
		job_add_program(&job, "surroundings");
		job_add(&job, words[1]);
		if (verdict_run(&job, &result, "a job at the limit of its memory group"))
			check_served(&result, true, NULL);
		job_free(&result);
	}
	for (int i = 0; i < 100 && rmdir(group) && errno == EBUSY; i++)
		usleep(10000);
	verdict_done("memory_limit: in a memory group of %s MiB all is served, %s\n", words[0],
		     words[1]);
}

/* files RANKS LIMIT [map]: each rank has so few descriptors; with map, too few for a shared heap.
 */
SCENARIO(files)
{
	int ranks = driver_ranks(words[0]);
	struct job_result result;
	struct job job;

	job_shares_heaps = words[1] && words[2] && !strcmp(words[2], "map");
	job = job_mpi(ranks, NULL);
	job_set(&job, "OC_TEST_STOCK=1");
	job_add_shell(&job, job_text("ulimit -n %s; exec \"$@\"", words[1]));
	job_add(&job, "sh");
	job_add_program(&job, "surroundings");
	job_add(&job, "few descriptors");
	if (verdict_run(&job, &result, "few descriptors"))
		check_served(&result, verdict_served(&result, NULL, NULL, NULL),
			     "Too many open files");
	if (job_shares_heaps && !strstr(result.output, "the limit of open files (ulimit -n) is"))
		verdict_fail(&result, "why there is no shared heap is not said");
	verdict_done("files: %d ranks with %s descriptors each: every byte right\n", ranks,
		     words[1]);
	job_free(&result);
}
