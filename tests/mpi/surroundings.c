/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All collectives, small and large, while something is wrong around them; every byte must be right.
 *
 * surroundings plain            nothing that the program itself does; whoever started it did
 * surroundings sparse           each rank has a large table, and uses little of it
 * surroundings descriptors      each rank has used up its descriptors
 * surroundings address_space    each rank's address space has a limit, and room for what it wants
 * surroundings locked           all that is mapped later is locked, against a limit as usual
 * surroundings stopped          the last rank is stopped for a while, now and then
 * surroundings traced           a tracer holds the last rank now and then, as a debugger does
 * surroundings daemon FILE      rank 0 leaves a process behind, which outlives the job
 */
#include "case.h"
#include "support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 200, MEDIUM = 20000, LARGE = 300000, STOPS = 2, STOP_MS = 700, MOST_FILES = 256 };

static int rank, ranks;
static size_t large_bytes = LARGE;

static void all_collectives(MPI_Comm comm)
{
	static unsigned int calls;

	for (int c = CASE_BARRIER; c < CASE_COLLECTIVES; c++) {
		for (int large = 0; large < 2; large++) {
			struct case_call call = { .collective = (enum case_collective)c,
						  .bytes = large ? large_bytes / (size_t)ranks :
								   SMALL,
						  .root = (int)calls % ranks,
						  .in_place = calls % 3 == 1,
						  .kind = (int)calls % CASE_KINDS,
						  .salt = calls };

			case_run(comm, &call);
			calls++;
		}
	}
}

static int taken[MOST_FILES], taken_files;

static void use_up_descriptors(void)
{
	int fd;

	oct_limit(RLIMIT_NOFILE, MOST_FILES);
	while (taken_files < MOST_FILES && (fd = open("/dev/null", O_RDONLY)) >= 0)
		taken[taken_files++] = fd;
	if (errno != EMFILE)
		case_fail("/dev/null: %s", strerror(errno));
}

/* As a user without privileges, to whom the limit applies. */
static void lock_memory(void)
{
	enum { LIMIT = 8 << 20 };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];
	struct rlimit limit;

	if (syscall(SYS_capget, &header, have))
		case_fail("capget: %s", strerror(errno));
	have[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, have) || oct_limit(RLIMIT_MEMLOCK, LIMIT) ||
	    getrlimit(RLIMIT_MEMLOCK, &limit))
		case_fail("the limit of locked memory cannot be set: %s", strerror(errno));
	large_bytes = MEDIUM; /* the MPIs themselves lock much of it */
	if (limit.rlim_cur == LIMIT && !mlockall(MCL_FUTURE))
		return;
	if (!rank)
		printf("skipped: so little memory may be locked here (ulimit -l) that MPIs get none\n");
	MPI_Finalize();
	exit(77);
}

enum { LEFT_MIB = 2560, WANTED = 1 << 30 };

/* Of what the limit leaves, 1 GiB is the program's still. */
static void want_address_space(void)
{
	char *memory = malloc(WANTED);

	if (!memory)
		case_fail("of %d MiB of address space %d MiB are not there any more", LEFT_MIB,
			  WANTED >> 20);
	memory[WANTED / 2] = 1;
	free(memory);
}

/* When the ranks have met, and at the end, when they have used all that there is. */
static void limit_address_space(void)
{
	if (oct_limit_address_space((size_t)LEFT_MIB << 20))
		case_fail("the address space cannot be limited: %s", strerror(errno));
	case_barrier(MPI_COMM_WORLD);
	want_address_space();
}

static void pause_ms(int ms)
{
	usleep((useconds_t)ms * 1000);
}

static void stop_now_and_then(pid_t process)
{
	for (int i = 0; i < STOPS; i++) {
		pause_ms(STOP_MS / 4);
		if (kill(process, SIGSTOP))
			_exit(1);
		pause_ms(STOP_MS);
		kill(process, SIGCONT);
	}
}

static void trace_now_and_then(pid_t process)
{
	for (int i = 0; i < STOPS; i++) {
		int status;

		pause_ms(STOP_MS / 4);
		if (ptrace(PTRACE_ATTACH, process, NULL, NULL) ||
		    waitpid(process, &status, __WALL) != process)
			_exit(1);
		pause_ms(STOP_MS);
		ptrace(PTRACE_DETACH, process, NULL, NULL);
	}
}

/*
 * Once told to, a child treats the calling process so. It is made before MPI_Init, as not every MPI
 * likes fork().
 */
static pid_t helper;
static int tell = -1;

static void make_helper(void (*treat)(pid_t))
{
	pid_t me = getpid();
	int pipes[2];
	char byte;

	if (pipe(pipes) || (helper = fork()) < 0)
		exit(1);
	close(pipes[helper ? 0 : 1]);
	tell = pipes[1];
	if (helper) {
		prctl(PR_SET_PTRACER, (unsigned long)helper, 0, 0, 0);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(pipes[0], &byte, 1) == 1)
		treat(me);
	_exit(0);
}

/* Collectives until the last rank's helper is done with it; at least once. */
static void go_on_while_treated(void)
{
	int status = 0, over = 0;

	if (helper && write(tell, "", 1) != 1)
		case_fail("the helper has ended: %s", strerror(errno));
	while (!over) {
		all_collectives(MPI_COMM_WORLD);
		over = helper && waitpid(helper, &status, WNOHANG) == helper;
		MPI_Bcast(&over, 1, MPI_INT, ranks - 1, MPI_COMM_WORLD);
	}
	if (status)
		case_fail("the helper could not do its work");
}

/* It has all memory of rank 0, and uses it when the job has gone. */
static void leave_daemon(const char *file)
{
	char *text = strdup("the daemon has what was there"), *more;
	pid_t parent = getpid();
	FILE *report;

	if (rank || fork())
		return;
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	while (getppid() == parent)
		pause_ms(10);
	pause_ms(300);
	more = malloc(LARGE);
	memset(more, 1, LARGE);
	report = fopen(file, "w");
	if (report && !strcmp(text, "the daemon has what was there") && more[LARGE - 1] == 1)
		fputs("the daemon outlived the job\n", report);
	if (report)
		fclose(report);
	_exit(0);
}

/* The rank that is treated is the last one: only it may have the helper. */
static int is_last(void)
{
	const char *ompi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");

	if (!size)
		size = getenv("PMI_SIZE");
	if (!ompi)
		ompi = pmi;
	return ompi && size && atoi(ompi) == atoi(size) - 1;
}

/* A table of which little is used, as programs have that leave it to the kernel what there is. */
static void take_sparse_memory(void)
{
	enum { TABLE = 1 << 30, STEP = 16 << 20, SMALL = 20 << 20 };
	char *table = malloc(TABLE), *small;

	for (size_t at = 0; table && at < TABLE; at += STEP)
		table[at] = 1;
	for (size_t taken = 0; taken < SMALL; taken += 1000) {
		small = malloc(1000);
		if (small)
			memset(small, 1, 1000);
	}
	if (!table)
		case_fail("no memory for a table of %d bytes", TABLE);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	MPI_Comm again;

	if (!strcmp(mode, "stopped") && is_last())
		make_helper(stop_now_and_then);
	if (!strcmp(mode, "traced") && is_last())
		make_helper(trace_now_and_then);
	case_begin(&argc, &argv, &rank, &ranks);
	if (!strcmp(mode, "locked"))
		lock_memory();
	if (!strcmp(mode, "address_space"))
		limit_address_space();
	all_collectives(MPI_COMM_WORLD);
	if (!strcmp(mode, "sparse"))
		take_sparse_memory();
	if (!strcmp(mode, "descriptors"))
		use_up_descriptors();
	else if (!strcmp(mode, "stopped") || !strcmp(mode, "traced"))
		go_on_while_treated();
	else if (!strcmp(mode, "daemon"))
		leave_daemon(argv[2]);
	/* Not only what is there already, but what has to be made. */
	MPI_Comm_dup(MPI_COMM_WORLD, &again);
	all_collectives(again);
	MPI_Comm_free(&again);
	all_collectives(MPI_COMM_WORLD);
	if (!strcmp(mode, "address_space"))
		want_address_space();
	while (taken_files) /* for the statistics' file */
		close(taken[--taken_files]);
	return case_end("surroundings: %d ranks, %s: every byte right\n", ranks, mode);
}
