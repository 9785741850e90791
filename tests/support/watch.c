/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/watch.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Processor time of spell() where WATCH_SILENCE_S was chosen: virtual machine, Intel Xeon at 2.1
 * GHz, gcc 12 -O2, 2026-11-23. A slower machine gets longer seconds, a faster one not shorter ones.
 */
#define SPELL_S 0.06
/* Silence before the engines are asked. */
#define ENGINE_FRACTION 20
#define ASKS_PER_SEARCH 16
enum { MOST_PROCESSES = 1024, MOST_ENGINES = 4, MOST_THREADS = 4096 };

struct process {
	pid_t pid;
	unsigned int asked; /* for its engines */
	unsigned int engines;
	uint64_t engine[MOST_ENGINES];
};

struct thread {
	pid_t tid;
	unsigned long long ran; /* ns */
	double stands_since_s;	/* it is to run, and has not run since, ... */
	double longer_s;	/* ... or for up to so long before that */
	double waited_s;	/* since it began */
	double waited_before_s; /* when something last advanced, less what it waited for the disk */
	bool there;		/* at the last look */
};

struct watch {
	double silence_s, longest_s;
	double last_look_s, advanced_s;
	uint64_t marks, engine_marks;
	bool begun, engine_seen;
	struct process process[MOST_PROCESSES];
	unsigned int processes;
	struct thread thread[MOST_THREADS];
	unsigned int threads;
};

static double clock_s(clockid_t id)
{
	struct timespec time;

	clock_gettime(id, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ull;
}

/* A file of /proc as text, at most bytes - 1; false: it is not there. */
static bool read_text(char *text, size_t bytes, const char *path)
{
	FILE *file = fopen(path, "re");
	size_t got = file ? fread(text, 1, bytes - 1, file) : 0;

	text[got] = '\0';
	if (file)
		fclose(file);
	return got > 0;
}

static bool of_process(char *text, size_t bytes, pid_t pid, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return read_text(text, bytes, path);
}

static char state_of(pid_t pid, pid_t tid)
{
	char name[64], text[512], *end = NULL;

	snprintf(name, sizeof(name), "task/%d/stat", (int)tid);
	if (of_process(text, sizeof(text), pid, name))
		end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* Calls `each` with the number of each entry of /proc/PID/task. */
static void each_thread(struct watch *watch, pid_t pid,
			void (*each)(struct watch *watch, pid_t pid, pid_t tid))
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] != '.')
			each(watch, pid, atoi(entry->d_name));
	}
	if (tasks)
		closedir(tasks);
}

static void add_children(struct watch *watch, pid_t pid, pid_t tid)
{
	char name[64], text[16384], *at = text;
	int child, length;

	snprintf(name, sizeof(name), "task/%d/children", (int)tid);
	if (!of_process(text, sizeof(text), pid, name))
		return;
	for (; sscanf(at, "%d%n", &child, &length) == 1; at += length) {
		if (watch->processes < MOST_PROCESSES)
			watch->process[watch->processes++] = (struct process){ .pid = child };
	}
}

/* All below this process. What was found of an earlier one's engine is kept. */
static void find_processes(struct watch *watch)
{
	static struct process before[MOST_PROCESSES];
	unsigned int count = watch->processes;

	memcpy(before, watch->process, count * sizeof(*before));
	watch->processes = 0;
	each_thread(watch, getpid(), add_children);
	for (unsigned int i = 0; i < watch->processes; i++)
		each_thread(watch, watch->process[i].pid, add_children);
	for (unsigned int i = 0; i < watch->processes; i++) {
		for (unsigned int j = 0; j < count; j++) {
			if (before[j].pid == watch->process[i].pid)
				watch->process[i] = before[j];
		}
	}
}

/*
 * How long the thread had to wait so far: for a CPU, as the scheduler counts it when the wait is
 * over, and before that if it is to run and has not since a look; for the disk, by looking.
 */
static void note_thread(struct watch *watch, pid_t pid, pid_t tid)
{
	double now_s = clock_s(CLOCK_MONOTONIC), waited_s;
	unsigned long long ran = 0, delayed = 0;
	struct thread *thread = NULL;
	char name[64], text[512];
	char state;

	watch->marks = mix(watch->marks, (uint64_t)tid);
	for (unsigned int i = 0; i < watch->threads && !thread; i++) {
		if (watch->thread[i].tid == tid)
			thread = &watch->thread[i];
	}
	state = state_of(pid, tid);
	snprintf(name, sizeof(name), "task/%d/schedstat", (int)tid);
	if (of_process(text, sizeof(text), pid, name))
		sscanf(text, "%llu %llu", &ran, &delayed);
	waited_s = 1e-9 * (double)delayed;
	if (!thread) {
		if (watch->threads < MOST_THREADS)
			watch->thread[watch->threads++] =
				(struct thread){ tid, ran, now_s, 0, waited_s, waited_s, true };
		return;
	}
	if (state != 'R' || thread->ran != ran) {
		thread->stands_since_s = now_s;
		/* It may have run right after the last look, and have waited since. */
		thread->longer_s = state == 'R' ? now_s - watch->last_look_s : 0;
	}
	if (state == 'D')
		thread->waited_before_s -= now_s - watch->last_look_s;
	thread->there = true;
	thread->ran = ran;
	thread->waited_s = waited_s + now_s - thread->stands_since_s;
}

/* Bytes written, and what program it is. */
static void note_process(struct watch *watch, struct process *process)
{
	unsigned long long written;
	char text[512], *at;

	if (of_process(text, sizeof(text), process->pid, "io") && (at = strstr(text, "wchar: ")) &&
	    sscanf(at, "wchar: %llu", &written) == 1)
		watch->marks = mix(watch->marks, written);
	if (of_process(text, sizeof(text), process->pid, "comm")) {
		for (at = text; *at; at++)
			watch->marks = mix(watch->marks, (unsigned char)*at);
	}
	each_thread(watch, process->pid, note_thread);
}

static void note_engine(struct watch *watch, struct process *process)
{
	struct watch_dwfl *d;

	/* An MPI loads the engine when it begins, which may be later. */
	if (!process->engines && process->asked++ % ASKS_PER_SEARCH == 0 &&
	    (d = watch_open(process->pid)) != NULL) {
		process->engines = watch_variable(d, "oci_engine", process->engine, MOST_ENGINES);
		watch_close(d);
	}
	for (unsigned int i = 0; i < process->engines; i++)
		watch->engine_marks = mix(watch->engine_marks,
					  watch_engine_marks(process->pid, process->engine[i]));
}

/* Has an engine advanced since this was asked last, or is this the first time? */
static bool engines_advanced(struct watch *watch)
{
	uint64_t before = watch->engine_marks;
	bool seen = watch->engine_seen;

	watch->engine_marks = 0;
	watch->engine_seen = true;
	for (unsigned int i = 0; i < watch->processes; i++)
		note_engine(watch, &watch->process[i]);
	return !seen || watch->engine_marks != before;
}

/* Some work that no compiler shortens; its processor time says how fast the machine is. */
static double spell(void)
{
	double begin = clock_s(CLOCK_THREAD_CPUTIME_ID);
	volatile uint64_t word = 1;

	for (int i = 0; i < 10 * 1000 * 1000; i++)
		word = mix(word, (uint64_t)i);
	return clock_s(CLOCK_THREAD_CPUTIME_ID) - begin;
}

struct watch *watch_begin(double silence_s)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch)
		watch->silence_s = silence_s > 0 ? silence_s : WATCH_SILENCE_S;
	return watch;
}

/* What they have waited until now is over; those that have ended are forgotten. */
static void begin_anew(struct watch *watch, double now_s)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < watch->threads; i++) {
		struct thread thread = watch->thread[i];

		if (!thread.there)
			continue;
		thread.waited_before_s = thread.waited_s;
		watch->thread[kept++] = thread;
	}
	watch->threads = kept;
	watch->advanced_s = now_s;
}

/* The seconds of silence that the thread which waited longest was given. */
static double given_s(const struct watch *watch, double now_s)
{
	double waited_s = 0;

	for (unsigned int i = 0; i < watch->threads; i++) {
		const struct thread *thread = &watch->thread[i];
		double this_s = thread->waited_s - thread->waited_before_s + thread->longer_s;

		if (this_s > waited_s)
			waited_s = this_s;
	}
	return now_s - watch->advanced_s - waited_s;
}

bool watch_look(struct watch *watch)
{
	double now_s = clock_s(CLOCK_MONOTONIC), slow, given;
	uint64_t before = watch->marks;

	watch->marks = 0;
	for (unsigned int i = 0; i < watch->threads; i++)
		watch->thread[i].there = false;
	find_processes(watch);
	for (unsigned int i = 0; i < watch->processes; i++)
		note_process(watch, &watch->process[i]);
	watch->last_look_s = now_s;
	/* Engines are asked last: their symbols take some 50 ms of a program of an MPI to read. */
	if (!watch->begun || watch->marks != before ||
	    (now_s - watch->advanced_s > watch->silence_s / ENGINE_FRACTION &&
	     engines_advanced(watch))) {
		watch->begun = true;
		begin_anew(watch, now_s);
		return false;
	}
	given = given_s(watch, now_s);
	if (given > watch->longest_s)
		watch->longest_s = given;
	if (given <= watch->silence_s)
		return false;
	slow = spell() / SPELL_S;
	return given > watch->silence_s * (slow > 1 ? slow : 1);
}

/* The variables by which the MPIs tell a rank its number. */
static void say_rank(pid_t pid, FILE *out)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK=", "PMI_RANK=" };
	char path[64], *variable = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	file = fopen(path, "re");
	while (file && getdelim(&variable, &room, '\0', file) > 0) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (!strncmp(variable, names[i], strlen(names[i])))
				fprintf(out, ", rank %s", variable + strlen(names[i]));
		}
	}
	free(variable);
	if (file)
		fclose(file);
}

static void say_thread(FILE *out, pid_t pid, pid_t tid)
{
	char name[64], text[512];

	fprintf(out, "  thread %d is in state %c", (int)tid, state_of(pid, tid));
	snprintf(name, sizeof(name), "task/%d/wchan", (int)tid);
	if (of_process(text, sizeof(text), pid, name) && strcmp(text, "0") != 0)
		fprintf(out, ", in the kernel's %s", text);
	snprintf(name, sizeof(name), "task/%d/schedstat", (int)tid);
	if (of_process(text, sizeof(text), pid, name))
		fprintf(out, ", ran and waited for a CPU (ns), turns: %.*s",
			(int)strcspn(text, "\n"), text);
	fputc('\n', out);
}

static FILE *report_to;

static void say_thread_of(struct watch *watch, pid_t pid, pid_t tid)
{
	(void)watch;
	say_thread(report_to, pid, tid);
}

static void say_process(struct watch *watch, struct process *process, FILE *out)
{
	char text[256], path[64], program[256];
	struct watch_dwfl *d;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
	length = readlink(path, program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	if (!of_process(text, sizeof(text), process->pid, "comm"))
		return; /* it has just ended */
	fprintf(out, "process %d, %.*s", (int)process->pid, (int)strcspn(text, "\n"), text);
	say_rank(process->pid, out);
	fprintf(out, " (%s)\n", program);
	for (unsigned int i = 0; i < process->engines; i++)
		watch_engine_say(process->pid, process->engine[i], out);
	report_to = out;
	each_thread(watch, process->pid, say_thread_of);
	d = watch_open(process->pid);
	if (d)
		watch_stacks(d, out);
	else
		fputs("  its stacks cannot be read: no such process, or no permission\n", out);
	watch_close(d);
}

void watch_report(struct watch *watch, FILE *out)
{
	fprintf(out,
		"---- no operation of the engine advanced, no byte was written and no process or "
		"thread began or ended for %.0f s that these processes were given:\n",
		watch->longest_s);
	for (unsigned int i = 0; i < watch->processes; i++)
		say_process(watch, &watch->process[i], out);
	fputs("----\n", out);
	fflush(out);
}

void watch_end(struct watch *watch)
{
	if (watch && watch->longest_s > watch->silence_s / 4)
		fprintf(stderr, "watch: no progress was seen for %.0f s, of the %.0f of a hang\n",
			watch->longest_s, watch->silence_s);
	free(watch);
}
