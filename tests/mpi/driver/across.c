/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs over the hosts of tests/hosts. */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the launchers reach the hosts, and the MPIs each other. */
static void set_surroundings(struct job *job)
{
	job_set(job, "OMPI_MCA_plm_rsh_agent=" OC_TEST_HOSTS "/agent.sh",
		"OMPI_MCA_oob_tcp_if_include=10.77.0.0/16",
		"OMPI_MCA_btl_tcp_if_include=10.77.0.0/16", "OMPI_MCA_mpi_yield_when_idle=1",
		"UCX_NET_DEVICES=eth0");
}

/*
 * The launcher's list of hosts with so many ranks each, "3:1", and how many these are.
 */
static const char *host_list(const char *slots, int *hosts, int *ranks)
{
	const char *list = "";

	if (!slots || atoi(slots) < 1) {
		fprintf(stderr, "driver: ranks of each host were expected, such as 2:2\n");
		exit(2);
	}
	*hosts = *ranks = 0;
	for (; *slots; slots += strcspn(slots, ":") + (strchr(slots, ':') != NULL)) {
		int own = atoi(slots);

		++*hosts;
		*ranks += own;
		list = job_text("%s%snode%d:%d", list, *list ? "," : "", *hosts, own);
	}
	return list;
}

/* The ranks that `slots` says, "2:2", of `program` behind what `job` has; `by_turns`: the hosts
 * take turns. */
static void add_job_across(struct job *job, const char *slots, bool by_turns, const char *program)
{
	int hosts, ranks;
	const char *list = host_list(slots, &hosts, &ranks);

	set_surroundings(job);
	job_add(job, OC_TEST_HOSTS "/hosts.sh", job_text("%d", hosts));
	if (job_is_mpich) {
		job_add(job, "mpirun.mpich", "-launcher", "ssh", "-launcher-exec",
			OC_TEST_HOSTS "/agent.sh", "-iface", "eth0", "-hosts");
		if (by_turns)
			list = hosts == 2 ? "node1:1,node2:1" : "node1:1,node2:1,node3:1";
		job_add(job, list, "-n", job_text("%d", ranks));
		job_add_behind(job, "leaves");
	} else {
		job_add(job, "mpirun", "--oversubscribe", "--bind-to", "none", "--host", list,
			"--map-by", by_turns ? "node" : "slot", "-n", job_text("%d", ranks));
	}
	job_add_program(job, program);
}

static struct job job_across(const char *slots, bool by_turns, const char *program)
{
	struct job job = job_under_onecopy();

	add_job_across(&job, slots, by_turns, program);
	return job;
}

static long in_levels(const struct job_result *result, const char *collective)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(result->stats, "two_levels"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "collective")), collective))
			return (long)json_integer_value(json_object_get(row, "calls"));
	}
	return 0;
}

/* A tuning file that leaves to the MPI whatever parts on a node are. */
static const char *tuning_of_mpis(void)
{
	static const char *const parts[] = { "bcast",	 "gather", "scatter", "gatherv",
					     "scatterv", "reduce", "barrier" };
	const char *cells = "";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		cells = job_text("%s%s{\"collective\": \"%s\", \"algorithm\": \"mpi\"}", cells,
				 i ? ", " : "", parts[i]);
	return job_tuning(cells);
}

/* In a shell, which has the program behind it. */
static const char *denying(const char *calls)
{
	return job_text("set -- %s/oc_mpi_deny %s EPERM \"$@\"", job_programs, calls);
}

/*
 * across SLOTS [turns] [node2] [VARIABLE=VALUE|cells|denied|full|room|shares]: ranks on hosts,
 * "2:2" for two on each of two, or by turns. All calls of the program that can go in two levels do,
 * in shares where these can (shares), also with VARIABLE=VALUE on node2 alone, where a tuning file
 * there leaves their parts to the MPI (cells), process_vm_readv() is forbidden there (denied), or
 * its /dev/shm is full; with that on rank 1 none does, or, where it only keeps it from a team with
 * rank 0 (ONECOPY_MECHANISM), those without that rank. Nor does any where node2 has no memory for
 * teams: memfd_create() is forbidden there, and /dev/shm full (room).
 */
SCENARIO(across)
{
	bool turns = words[1] && !strcmp(words[1], "turns");
	bool host = words[1] && !strcmp(words[1], "node2");
	const char *how = words[1] ? words[turns || host ? 2 : 1] : NULL;
	bool cells = how && !strcmp(how, "cells"), shares = how && !strcmp(how, "shares");
	bool denied = how && !strcmp(how, "denied"), full = how && !strcmp(how, "full");
	bool room = how && !strcmp(how, "room");
	bool starts = getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL"); /* nonblocking ones, too */
	struct job job = job_across(words[0], turns, "across");
	bool refused = how && strstr(how, "MECHANISM") && !host;
	bool off = room || (how && !refused && !host && !shares);
	const char *path = cells ? tuning_of_mpis() : NULL;
	struct job_result result;
	long sum = 0;

	job_set(&job, shares ? "ONECOPY_LEVELS=shares" : "ONECOPY_LEVELS=on");
	if (shares)
		how = NULL;
	/* Open MPI by itself ends with SIGBUS where that is full. */
	if (full || room)
		job_set(&job, "OMPI_MCA_btl=self,tcp");
	if (full)
		job_add(&job, how);
	if (denied) {
		driver_need_mechanism("cma");
		job_set(&job, "OMPI_MCA_btl_vader_single_copy_mechanism=none",
			"UCX_TLS=self,posix,tcp");
	}
	if (how && !full) {
		job.word[--job.words] = NULL;
		job_add_shell(&job,
			      job_text("[ %s ] && %s; exec \"$@\"",
				       host ? "$(hostname) = node2" :
					      "\"${OMPI_COMM_WORLD_RANK-$PMI_RANK}\" = 1",
				       denied ? denying("process_vm_readv,process_vm_writev") :
				       room   ? denying("memfd_create") :
				       cells  ? job_text("export ONECOPY_TUNING=%s", path) :
						job_text("export %s", how)));
		job_add(&job, "sh");
		job_add_program(&job, "across");
		job_add(&job, refused ? "first" : room ? "room" : off ? "off" : "all");
	}
	if (verdict_run(&job, &result, "across failed")) {
		for (int i = 0; i < COLLECTIVES; i++) {
			const char *name = collective_names[i];
			char said[64] = "0";
			long expected, done = in_levels(&result, name);

			verdict_word(&result, job_text("levels %s", name), said, sizeof(said));
			expected = atol(said);
			sum += done;
			/* Open MPI makes some of its own, in MPI_Comm_split and inside others; of
			 * freed requests the program does not count. */
			if (off || (job_is_mpich && !starts) ? done != expected : done < expected)
				verdict_fail(&result, "of %ld calls of %s %ld went in two levels",
					     expected, name, done);
		}
		/* On a node's own communicators, not in thousands of parts. */
		if (cells &&
		    (!verdict_left_to_mpi(&result) || verdict_left_to_mpi(&result) > sum / 20))
			verdict_fail(&result, "the MPI's algorithm was chosen for %ld calls",
				     verdict_left_to_mpi(&result));
		if (shares && verdict_served(&result, "allgatherv", NULL, NULL) < sum / 20)
			verdict_fail(&result, "nodes had %ld Allgathervs, as of few shares",
				     verdict_served(&result, "allgatherv", NULL, NULL));
		if (denied && (!verdict_served(&result, NULL, NULL, "cma") ||
			       !verdict_served(&result, NULL, NULL, "shm")))
			verdict_fail(&result, "not one host had cma and the other one shm");
		if (room && !verdict_without_teams(&result))
			verdict_fail(&result, "no call was the MPI's for want of a team");
		if (!sum != off)
			verdict_fail(&result, "%ld calls went in two levels", sum);
	}
	verdict_done("across: %s%s%s%s%s: %ld calls in two levels, every byte right\n", words[0],
		     turns ? " by turns" : "", shares ? " in shares" : "",
		     !how ? "" :
		     host ? ", one host with " :
			    ", one rank with ",
		     how ? how : "", sum);
	job_free(&result);
}

/* across_runs PROGRAM SLOTS [WORD]: a program that looks at its bytes by itself, of which something
 * goes in two levels; or nothing, where Open MPI's own two levels are on. As users run it (auto),
 * Gathervs do under MPICH alone, and there with four ranks on a node, which the first has then. */
SCENARIO(across_runs)
{
	bool han = getenv("OMPI_MCA_coll_han_priority");
	struct job job = job_across(words[1], false, words[0]);
	struct job_result result;
	long sum = 0;

	if (!getenv("OC_TEST_SET"))
		job_set(&job, "ONECOPY_LEVELS=on");
	if (words[2])
		job_add(&job, words[2]);
	if (verdict_run(&job, &result, "across_runs failed"))
		for (int i = 0; i < COLLECTIVES; i++)
			sum += in_levels(&result, collective_names[i]);
	if (!sum != han)
		verdict_fail(&result, han ? "something went in our two levels" :
					    "nothing went in two levels");
	if (words[2] && !strcmp(words[2], "auto") &&
	    !in_levels(&result, "gatherv") == (job_is_mpich && atoi(words[1]) >= 4))
		verdict_fail(&result, "%ld Gathervs went in two levels",
			     in_levels(&result, "gatherv"));
	/* Nonblocking ones alone: twelve rounds with each blocking call, of six collectives in
	 * turn. */
	if (!strcmp(words[0], "progress") && in_levels(&result, "gather") < 200)
		verdict_fail(&result, "%ld Igathers went in two levels",
			     in_levels(&result, "gather"));
	if (words[2] && !strcmp(words[2], "auto") && job_is_mpich &&
	    !in_levels(&result, "scan") != !getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL"))
		verdict_fail(&result, "%ld Iscans went in two levels", in_levels(&result, "scan"));
	verdict_done("across_runs: %s over %s: %ld calls in two levels\n", words[0], words[1], sum);
	job_free(&result);
}

/*
 * across_many SLOTS: what of 128 ranks the one allocates that allocates least, in its first calls
 * over nodes (docs/cluster.md): so little that one KiB more for each other rank would be seen.
 */
SCENARIO(across_many)
{
	static const struct {
		const char *name;
		double most_kib;
	} grows[] = { { "memory_least_kib", 200 }, { "nonblocking_least_kib", 300 } };
	struct job job = job_across(words[0], false, "setup");
	char value[2][64] = { "", "" }, key[64];
	struct job_result result;
	int hosts, ranks;

	host_list(words[0], &hosts, &ranks);
	job_set(&job, "ONECOPY_LEVELS=on");
	if (verdict_run(&job, &result, "across_many failed")) {
		if (in_levels(&result, "allreduce") < ranks)
			verdict_fail(&result, "no Allreduce went in two levels");
		for (int i = 0; i < 2; i++) {
			snprintf(key, sizeof(key), "%s %d", grows[i].name, ranks);
			if (!verdict_word(&result, key, value[i], sizeof(value[i])) ||
			    atof(value[i]) <= 0 || atof(value[i]) > grows[i].most_kib)
				verdict_fail(&result, "%s '%s' KiB, at most %.0f", key, value[i],
					     grows[i].most_kib);
		}
	}
	verdict_done(
		"across_many: %d ranks on %d hosts, each allocated %s KiB at least, and %s in nonblocking calls\n",
		ranks, hosts, value[0], value[1]);
	job_free(&result);
}

/* across_mpis SLOTS: where a Bcast is the MPI's, the rest goes in two levels, also what has a Bcast
 * on a node as a part, whose ranks give it unlike types. */
SCENARIO(across_mpis)
{
	static const char *const all[] = { "allgather", "allgatherv", "reduce", "gather" };
	struct job job = job_across(words[0], false, "across");
	struct job_result result;

	job_set(&job, "ONECOPY_LEVELS=on", "ONECOPY_BCAST=mpi");
	if (verdict_run(&job, &result, "across_mpis failed")) {
		if (in_levels(&result, "bcast"))
			verdict_fail(&result, "%ld calls of bcast went in two levels",
				     in_levels(&result, "bcast"));
		for (int i = 0; i < 4; i++)
			if (!in_levels(&result, all[i]))
				verdict_fail(&result, "no %s went in two levels", all[i]);
	}
	verdict_done("across_mpis: %s: but for the MPI's Bcast all in two levels\n", words[0]);
	job_free(&result);
}

/* across_cut SLOTS: a host's link is down for a second in the midst of calls in two levels. */
SCENARIO(across_cut)
{
	struct job job = job_across(words[0], false, "across");
	struct job_result result;

	job_set(&job, "ONECOPY_LEVELS=on");
	job_add(&job, "cut");
	if (verdict_run(&job, &result, "across_cut failed") &&
	    (!strstr(result.output, "the link is cut") || !in_levels(&result, "allreduce") ||
	     !in_levels(&result, "bcast")))
		verdict_fail(&result, "no link was cut amid calls in two levels");
	verdict_done("across_cut: %s, a link down for a second: all calls were right\n", words[0]);
	job_free(&result);
}

/* across_left SLOTS: the ranks of node2 are killed in the midst of calls in two levels: the job
 * ends, as the MPI has it, and nobody waits. */
SCENARIO(across_left)
{
	struct job job = job_across(words[0], false, "across");
	struct job_result result;

	job_set(&job, "ONECOPY_LEVELS=on");
	job_add(&job, "leave");
	job.silence_s = 20;
	job_run(&job, &result);
	verdict_skip(&result);
	if (result.hung || !result.status || !strstr(result.output, "a rank of node2 goes"))
		verdict_fail(&result, "the job %s",
			     result.hung ? "waits" : "did not end as one whose ranks are killed");
	verdict_done("across_left: %s, the ranks of node2 killed: the job has ended\n", words[0]);
	job_free(&result);
}

/*
 * across_differ: ranks 1 and 2, on node2, call other things than each other: both say so of ranks 1
 * and 2, not of the first two of a node. What is wrong with an info key is said once.
 */
SCENARIO(across_differ)
{
	struct job job = job_across("1:2", false, "across");
	struct job_result result;
	int warned;

	(void)words;
	job_set(&job, "ONECOPY_LEVELS=on");
	job_add(&job, "differ");
	job.silence_s = 20;
	job_run(&job, &result);
	verdict_skip(&result);
	if (result.hung)
		verdict_fail(&result, "the job waits");
	for (int rank = 1; rank <= 2; rank++) {
		const char *key = job_text("rank %d heard:", rank);
		char line[512] = "";

		if (!verdict_word(&result, key, line, sizeof(line)) ||
		    !strstr(line, "mismatched collectives: ") || !strstr(line, "rank 1 called ") ||
		    !strstr(line, "rank 2 called "))
			verdict_fail(&result, "%s '%s'", key, line);
	}
	warned = verdict_count(&result, "=nonsense of a communicator is ignored");
	if (warned != 1)
		verdict_fail(&result, "a wrong info key was warned of %d times", warned);
	verdict_done("across_differ: two ranks of node2 differ, and are named\n");
	job_free(&result);
}

/* across_fails SLOTS: rank 1 differs from rank 0, on its node: from there on the calls of all
 * ranks fail but for some of the first ones, and nobody waits. */
SCENARIO(across_fails)
{
	struct job job = job_across(words[0], false, "across");
	struct job_result result;
	enum { SOME = 8 }; /* of each of five lanes, with those of a root that does not know yet */
	char line[512];
	int hosts, ranks;

	host_list(words[0], &hosts, &ranks);
	job_set(&job, "ONECOPY_LEVELS=on");
	job_add(&job, "fails");
	job.silence_s = 20;
	job_run(&job, &result);
	verdict_skip(&result);
	if (result.hung)
		verdict_fail(&result, "the job waits");
	else if (verdict_ended_well(&result, "across_fails failed"))
		for (int rank = 0; rank < ranks; rank++) {
			const char *key = job_text("rank %d:", rank);
			int served, failed;

			line[0] = '\0';
			if (!verdict_word(&result, key, line, sizeof(line)) ||
			    sscanf(line, "%d served, %d failed", &served, &failed) != 2 ||
			    served > SOME || failed < 100)
				verdict_fail(&result, "%s '%s'", key, line);
		}
	verdict_done("across_fails: %s: where a node's calls fail, all do and nobody waits\n",
		     words[0]);
	job_free(&result);
}

/* ---- bytes between hosts ----------------------------------------------------------------------
 *
 * Two hosts of two ranks, root 0. Headers and acknowledgements come on top of what the algorithms
 * send, and to both the meeting before a call; of small messages they are all there is, so packets
 * count messages there. What TCP sends again where a receiver is slow is not counted, but each is
 * acknowledged; another algorithm sends half as much again, or more.
 */

struct sent {
	char collective[32];
	long size;
	double bytes, packets; /* by all hosts, in a call */
};

/* ONE_PACKET: of so many bytes a message is one packet; how many more are is TCP's affair. */
enum { MOST_SENT = 128, ONE_PACKET = 4096 };
#define SLACK 1.25

/* What two levels send, in messages or blocks of the call: MPICH's leaders reduce in halves, and
 * tell each other their sums of a Scan both ways. */
static const struct {
	const char *collective;
	double openmpi, mpich;
} sends[] = {
	{ "barrier", 0, 0 },	{ "bcast", 1, 1 },	    { "reduce", 1, 1.5 },
	{ "allreduce", 2, 2 },	{ "gather", 2, 2 },	    { "gatherv", 2, 2 },
	{ "scatter", 2, 2 },	{ "scatterv", 2, 2 },	    { "allgather", 4, 4 },
	{ "allgatherv", 4, 4 }, { "alltoall", 8, 8 },	    { "scan", 1, 2 },
	{ "exscan", 1, 2 },	{ "reduce_scatter", 4, 4 }, { "reduce_scatter_block", 4, 4 },
};

enum { SENDS = sizeof(sends) / sizeof(sends[0]) };

/* Rows that it has printed. */
static int measure_sent(struct job job, struct sent *sent, const char *what)
{
	struct job_result result;
	const char *line;
	int rows = 0;

	add_job_across(&job, "2:2", false, "timing");
	job_add(&job, "1");
	for (int i = 0; i < SENDS; i++)
		job_add(&job, sends[i].collective);
	if (verdict_run(&job, &result, what))
		for (line = result.output; line && rows < MOST_SENT;
		     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
			rows += sscanf(line, "%31s %ld %*f %lf %lf", sent[rows].collective,
				       &sent[rows].size, &sent[rows].bytes,
				       &sent[rows].packets) == 4;
	job_free(&result);
	return rows;
}

static void fail_sent(const struct sent *sent, const char *than, double most)
{
	verdict_fail(NULL, "%s of %ld bytes sent %.0f bytes between hosts, %s %.0f",
		     sent->collective, sent->size, sent->bytes, than, most);
}

/* across_bytes: each call sends at most the bytes that its algorithm has to, and no more bytes and
 * messages than the MPI's. */
SCENARIO(across_bytes)
{
	static struct sent ours[MOST_SENT], stock[MOST_SENT];
	int rows = measure_sent((struct job){ 0 }, stock, "the MPI alone");
	struct job job = job_under_onecopy();
	double saved = 0, all = 0;

	job_set(&job, "ONECOPY_LEVELS=on");
	if (!rows || measure_sent(job, ours, "two levels") != rows)
		verdict_fail(NULL, "rows are missing");
	for (int i = 0; i < rows; i++) {
		double least = 0;

		for (int k = 0; k < SENDS; k++)
			if (!strcmp(sends[k].collective, ours[i].collective))
				least = (job_is_mpich ? sends[k].mpich : sends[k].openmpi) *
					(double)ours[i].size;
		if (ours[i].bytes > SLACK * least + 2000)
			fail_sent(&ours[i], "and has to", least);
		if (ours[i].bytes > SLACK * stock[i].bytes + 300)
			fail_sent(&ours[i], "the MPI alone", stock[i].bytes);
		if (ours[i].size <= ONE_PACKET && ours[i].packets > SLACK * stock[i].packets + 2)
			verdict_fail(NULL, "%s of %ld bytes sent %.1f packets, the MPI alone %.1f",
				     ours[i].collective, ours[i].size, ours[i].packets,
				     stock[i].packets);
		saved += stock[i].bytes - ours[i].bytes;
		all += stock[i].bytes;
	}
	verdict_done("across_bytes: %d cells, none beyond its algorithm or the MPI's own; %.0f %% "
		     "less in all\n",
		     rows, 100 * saved / all);
}
