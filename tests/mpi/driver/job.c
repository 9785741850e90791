/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include "lab/harness/clock.h"
#include "lab/harness/descendants.h"
#include "lab/harness/stock_environment.h"
#include "support/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *job_onecopy = OC_TEST_ONECOPY, *job_programs = OC_TEST_PROGRAMS;

bool job_is_mpich, job_shares_heaps;

/* mpirun ends its ranks on SIGTERM, given a moment. */
enum { GRACE_MS = 5000, GRACE_IN_ALL_S = 60 };

/*
 * What ends the driver ends its job first. While there is a job these signals are blocked, except
 * inside ppoll(): one that comes just before it is not missed.
 */
static const int endings[] = { SIGHUP, SIGINT, SIGTERM };
static volatile sig_atomic_t ended_by;
static sigset_t mask_before;

static void die(const char *what)
{
	fprintf(stderr, "driver: %s: %s\n", what, strerror(errno));
	exit(1);
}

const char *job_text(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		die("no memory");
	va_end(arguments);
	return text;
}

static const char *files[32];
static int file_count;

static void remove_files(void)
{
	while (file_count)
		remove(files[--file_count]);
}

const char *job_file(const char *path)
{
	if (file_count == sizeof(files) / sizeof(files[0])) {
		errno = E2BIG;
		die("too many files");
	}
	if (!file_count)
		atexit(remove_files);
	files[file_count++] = path;
	return path;
}

const char *job_tuning(const char *cells)
{
	char *path = strdup("/tmp/onecopy-tuning-XXXXXX");
	FILE *info = fopen("/proc/cpuinfo", "re");
	char line[256], cpu[128] = "";
	int fd = path ? mkstemp(path) : -1;

	if (fd < 0)
		die("a tuning file");
	/* It is taken on the machine alone that it names. */
	while (info && !*cpu && fgets(line, sizeof(line), info))
		sscanf(line, "model name : %127[^\n]", cpu);
	if (info)
		fclose(info);
	dprintf(fd,
		"{\"onecopy\": \"tuning\", \"version\": 1, \"name\": \"cells\", \"machine\": {"
		"\"host\": \"*\", \"cpu\": \"%s\", \"cpus\": %ld, \"page_bytes\": %ld}, "
		"\"terms\": {}, \"cells\": [%s]}\n",
		cpu, sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_PAGESIZE), cells);
	close(fd);
	return job_file(path);
}

void job_add_words(struct job *job, const char *const *words)
{
	for (; *words; words++) {
		if (job->words + 1 >= JOB_WORDS) {
			errno = E2BIG;
			die(*words);
		}
		job->word[job->words++] = *words;
	}
}

void job_add_shell(struct job *job, const char *script)
{
	job_add(job, "sh", "-c", script);
}

void job_set_variables(struct job *job, const char *const *names_are_values)
{
	enum { MOST = sizeof(job->environment) / sizeof(job->environment[0]) };

	for (; *names_are_values; names_are_values++) {
		if (job->variables >= MOST) {
			errno = E2BIG;
			die(*names_are_values);
		}
		job->environment[job->variables++] = *names_are_values;
	}
}

static void add_mpirun(struct job *job, int ranks, const char *program)
{
	if (job_is_mpich)
		job_add(job, "mpirun.mpich");
	else
		job_add(job, "mpirun", "--oversubscribe", "--bind-to", "none");
	job_add(job, "-n", job_text("%d", ranks));
	job->yields = job_is_mpich && ranks > sysconf(_SC_NPROCESSORS_ONLN);
	if (program)
		job_add_program(job, program);
}

struct job job_stock(int ranks, const char *program)
{
	struct job job = { 0 };

	add_mpirun(&job, ranks, program);
	return job;
}

struct job job_under_onecopy(void)
{
	struct job job = { .wants_stats = true };

	job_add(&job, job_onecopy, "run", "--quiet", "--stats-json");
	job_add(&job, ""); /* job_run() names the file */
	if (job_shares_heaps)
		job_add(&job, "--shared-heap");
	if (getenv("OC_TEST_SET"))
		job_set(&job, job_text("ONECOPY_%s", getenv("OC_TEST_SET")));
	return job;
}

struct job job_mpi(int ranks, const char *program)
{
	struct job job = job_under_onecopy();

	add_mpirun(&job, ranks, program);
	return job;
}

void job_add_behind(struct job *job, const char *how)
{
	job_set(job, job_text("OC_TEST_BEHIND=%s", how));
	job_add_shell(job,
		      job_text("LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}%s/liboc_mpich_behind.so "
			       "\"$@\"",
			       job_programs));
	job_add(job, "sh");
}

void job_leave_cma_to_us(struct job *job)
{
	job_set(job, job_is_mpich ? "UCX_TLS=self,posix" :
				    "OMPI_MCA_btl_vader_single_copy_mechanism=none");
}

void job_add_program(struct job *job, const char *name)
{
	job_add(job, job_text("%s/oc_%s_%s", job_programs, job_is_mpich ? "mpich" : "mpi", name));
}

static void note_ending(int signal)
{
	ended_by = signal;
}

/* What is ignored stays so: nohup, and a shell's jobs in the background. */
static void hold_endings(void)
{
	struct sigaction action = { .sa_handler = note_ending }, before;
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (sigaction(endings[i], NULL, &before))
			die("sigaction");
		if (before.sa_handler == SIG_IGN)
			continue;
		sigaction(endings[i], &action, NULL);
		sigaddset(&held, endings[i]);
	}
	sigprocmask(SIG_BLOCK, &held, &mask_before);
}

/* The job is over: what ended it, or comes from now on, ends the driver. */
static void release_endings(void)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		struct sigaction before;

		if (!sigaction(endings[i], NULL, &before) && before.sa_handler == note_ending)
			signal(endings[i], SIG_DFL);
	}
	if (ended_by)
		exit(128 + ended_by);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

/* As ppoll(); an ending lets it return at once. */
static int await(int fd, double seconds)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct timespec time = { .tv_sec = (time_t)seconds };

	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	return ppoll(&ready, 1, &time, &mask_before);
}

/* What has come through the pipe; false: it is at its end. */
static bool read_some(int fd, char **output, size_t *length)
{
	ssize_t got;

	*output = realloc(*output, *length + 4096);
	if (!*output)
		die("no memory");
	got = read(fd, *output + *length, 4095);
	if (got < 0 && errno == EINTR)
		return true;
	*length += got > 0 ? (size_t)got : 0;
	(*output)[*length] = '\0';
	return got > 0;
}

enum read_end { READ_ALL, READ_ENDED, READ_HUNG };

/* Everything up to the end of the pipe, or an ending, or until the job hangs. */
static enum read_end read_output(int fd, struct watch *watch, char **output, size_t *length)
{
	enum read_end end = READ_ALL;
	double look_s = now_s();

	while (end == READ_ALL) {
		int ready = await(fd, WATCH_LOOK_MS * 1e-3);

		if (ended_by)
			end = READ_ENDED;
		else if (ready > 0 && !read_some(fd, output, length))
			break;
		else if (now_s() - look_s < WATCH_LOOK_MS * 1e-3)
			continue;
		else if (watch_look(watch))
			end = READ_HUNG;
		look_s = now_s();
	}
	if (end == READ_HUNG)
		watch_report(watch, stdout);
	return end;
}

/* What else comes from a job that was told to end; false: all of it. */
static bool read_rest(int fd, char **output, size_t *length)
{
	double end = now_s() + GRACE_MS * 1e-3;

	while (now_s() < end) {
		if (await(fd, end - now_s()) > 0 && !read_some(fd, output, length))
			return false;
	}
	return true;
}

/*
 * With AddressSanitizer its library has to be in front of ours in LD_PRELOAD: mpirun and the shells
 * get ours too. Leaks are not looked for: both MPIs leave with memory that they never free.
 */
static void set_preload(const struct job *job)
{
#ifdef OC_TEST_ASAN
	(void)job;
	setenv("LD_PRELOAD", OC_TEST_ASAN, 1);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
#else
	const char *others = getenv("LD_PRELOAD");

	if (job->yields)
		setenv("LD_PRELOAD",
		       job_text("%s/liboc_mpich_yield.so%s%s", job_programs, others ? ":" : "",
				others ? others : ""),
		       1);
#endif
}

static void become(const struct job *job, char **argv, int fd)
{
	int input = open("/dev/null", O_RDONLY);
	char dropped[1024];

	/* Its own group, so that a deadline ends the command together with what it started. */
	setpgid(0, 0);
	/* It ends when the driver is killed, too: `onecopy run` and mpirun pass this on. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	dup2(input, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	/* mpirun refuses root, which is what containers run as, without these. */
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	/* Not what the tester's shell has, but what the test sets. */
	stock_environment(dropped, sizeof(dropped));
	/* What it takes on one machine anyway: to look for networks first takes a fifth of a
	 * second. */
	setenv("OMPI_MCA_pml", "ob1", 0);
	/* Of a job that lost a rank mpirun ends the others, and then waits a second without
	 * looking. */
	setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 0);
	/* Jobs on one node that meet: Open MPI 5 does not find each network's way to itself. */
	setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
	set_preload(job);
	for (int i = 0; i < job->variables; i++)
		putenv((char *)(uintptr_t)job->environment[i]);
	execvp(argv[0], argv);
	fprintf(stderr, "driver: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* A job whose output is at an end may go on; an ending ends it then, too, and so does a hang. */
static int wait_for(pid_t pid, struct watch *watch, bool *hung)
{
	double end_s = now_s() + GRACE_MS * 1e-3;
	int fd = pidfd_open(pid, 0), status;
	bool told = ended_by || *hung;

	while (fd >= 0 && await(fd, WATCH_LOOK_MS * 1e-3) <= 0) {
		if (!told && watch_look(watch)) {
			watch_report(watch, stdout);
			*hung = true;
		}
		if (!told && (ended_by || *hung)) {
			kill(-pid, SIGTERM);
			told = true;
			end_s = now_s() + GRACE_MS * 1e-3;
		} else if (told && now_s() >= end_s) {
			kill(-pid, SIGKILL);
			break;
		}
	}
	if (fd >= 0)
		close(fd);
	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether something that it has started does not end by itself: it does not get on, or for ever. */
static bool leaves_something(void)
{
	struct watch *watch = watch_begin(GRACE_MS * 1e-3);
	double begin_s = now_s(), look_s = begin_s;
	bool left = false;

	while (!descendants_gone() && !ended_by && !left) {
		await(-1, 0.01);
		if (now_s() - look_s < WATCH_LOOK_MS * 1e-3)
			continue;
		left = !watch || watch_look(watch) || now_s() - begin_s > GRACE_IN_ALL_S;
		look_s = now_s();
	}
	if (watch && left)
		watch_report(watch, stdout);
	watch_end(watch);
	return left;
}

/* The file for the statistics takes the place that job_mpi() left for it. */
static char *prepare_stats(const struct job *job, char **argv)
{
	char *file = strdup("/tmp/onecopy-test-XXXXXX");
	int fd;

	for (int i = 0; i < job->words; i++)
		argv[i] = (char *)(uintptr_t)job->word[i];
	argv[job->words] = NULL;
	if (!job->wants_stats) {
		free(file);
		return NULL;
	}
	fd = file ? mkstemp(file) : -1;
	if (fd < 0)
		die("a temporary file");
	close(fd);
	argv[4] = file;
	return file;
}

void job_run(const struct job *job, struct job_result *result)
{
	char *argv[JOB_WORDS + 1];
	char *file = prepare_stats(job, argv);
	double start = now_s();
	size_t length = 0;
	struct watch *watch = watch_begin(job->silence_s);
	enum read_end end;
	int fds[2];
	pid_t pid;

	*result = (struct job_result){ .output = strdup("") };
	if (!watch)
		die("no memory");
	if (pipe2(fds, O_CLOEXEC))
		die("pipe");
	fflush(NULL);
	descendants_adopt();
	hold_endings();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		become(job, argv, fds[1]);
	close(fds[1]);
	end = read_output(fds[0], watch, &result->output, &length);
	result->hung = end == READ_HUNG;
	if (end != READ_ALL) {
		kill(-pid, SIGTERM);
		if (read_rest(fds[0], &result->output, &length))
			kill(-pid, SIGKILL);
	}
	close(fds[0]);
	result->status = wait_for(pid, watch, &result->hung);
	watch_end(watch);
	if (job->leaves_nothing)
		result->left_behind = leaves_something();
	descendants_end();
	result->seconds = now_s() - start;
	if (file) {
		result->stats = json_load_file(file, 0, NULL);
		unlink(file);
		free(file);
	}
	release_endings();
}

void job_free(struct job_result *result)
{
	free(result->output);
	json_decref(result->stats);
	*result = (struct job_result){ 0 };
}
