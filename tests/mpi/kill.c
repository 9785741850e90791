/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kill COLLECTIVE VICTIM inside|outside|pipes NAME: that rank is killed while all are in the
 * collective (by a timer, among large calls), or while the others wait in it and it has not come;
 * with pipes, after each rank's program has put a pipe of its own in place of each pidfd, which it
 * did not open.
 * kill SEED VICTIM random NAME: at any moment of a mix of all collectives.
 * kill COLLECTIVE VICTIM finalize NAME: outside; the others have nothing left but MPI_Finalize.
 * kill await SURVIVORS NAME: no rank; until so many have reported.
 *
 * Each survivor prints "survivor RANK: dead rank VICTIM after S s", from the sentence that belongs
 * to the error code; that a later call fails at once is checked too. In S is not what it waited for
 * a CPU, nor, as the victim had to wait for one to die and others to tell of it, what some calls
 * take that go well: milliseconds where nothing else runs.
 */
#include "case.h"

#include "support/mix.h"
#include "support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	WARM_UP = 20,
	BYTES = 1 << 20,
	CALLS_TAKEN_OFF = 10,
	GIVE_UP_CALLS = 1000,
	LATER_CALL_MS = 100,
	SOON_US = 50000,
	LATEST_US = 300000
};

/* What the ranks tell each other beside the MPI, which is broken from a point on. */
struct board {
	_Atomic(double) killed_at; /* 0: not yet */
	atomic_int done;	   /* survivors that have reported */
};
static struct board *board;

struct plan {
	enum case_collective collective;
	uint64_t seed; /* 0: only that collective */
};

static void open_board(const char *name)
{
	int fd = shm_open(name, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*board)))
		case_fail("the shared board cannot be made");
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		case_fail("the shared board cannot be mapped");
	close(fd);
}

static void take_pidfds(void)
{
	int ends[2];

	if (pipe(ends))
		case_fail("no pipe");
	oct_replace_pidfds(ends[0]);
}

static void die(int signal)
{
	(void)signal;
	atomic_store(&board->killed_at, case_seconds());
	kill(getpid(), SIGKILL);
}

static void die_in(int us)
{
	struct itimerval timer = { .it_value = { .tv_usec = us } };

	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* What all ranks call the i-th time. */
static int one_call(const struct plan *plan, unsigned int i)
{
	struct case_call call = { .collective = plan->collective,
				  .bytes = BYTES / 4,
				  .kind = (int)i % 5,
				  .salt = i };

	if (plan->seed) {
		uint64_t random = oct_mix(plan->seed + oct_mix(i + 1));

		call.collective = (enum case_collective)(random % CASE_COLLECTIVES);
		call.bytes = (size_t)8 << (random >> 32) % 16;
	}
	return case_run(MPI_COMM_WORLD, &call);
}

/* The rank behind "rank " in the sentence; -1: it names none. */
static int named_rank(const char *sentence)
{
	const char *at = strstr(sentence, "rank ");
	int rank = -1;

	if (at)
		sscanf(at, "rank %d", &rank);
	return rank;
}

/* `waited_s`: what oct_waited_s() said before the rank was killed; `call_s`: what a call took. */
static void report(int rank, int error, const struct plan *plan, double waited_s, double call_s)
{
	double after =
		oct_given_s(atomic_load(&board->killed_at), waited_s) - CALLS_TAKEN_OFF * call_s;
	char sentence[MPI_MAX_ERROR_STRING] = "";
	int length;
	double start;

	MPI_Error_string(error, sentence, &length);
	printf("survivor %d: dead rank %d after %.3f s: %s\n", rank, named_rank(sentence), after,
	       sentence);
	waited_s = oct_waited_s();
	start = case_seconds();
	error = one_call(plan, 0);
	after = oct_given_s(start, waited_s);
	if (error == MPI_SUCCESS)
		printf("survivor %d: WRONG: a later call succeeded\n", rank);
	else if (after > LATER_CALL_MS * 1e-3)
		printf("survivor %d: WRONG: a later call failed only after %.3f s\n", rank, after);
	fflush(stdout);
}

/* A rank dies, and the others do nothing more with it. */
static void finalize(int rank, int victim)
{
	if (rank == victim)
		kill(getpid(), SIGKILL);
	usleep(SOON_US);
	printf("finalizes %d\n", rank);
	fflush(stdout);
	MPI_Finalize();
	printf("finalized %d\n", rank);
	exit(0);
}

static void await_reports(int survivors)
{
	while (atomic_load(&board->done) < survivors)
		usleep(1000);
}

/* Nobody leaves before all have reported: mpirun may end the others when one leaves like this. */
static void leave(int survivors)
{
	atomic_fetch_add(&board->done, 1);
	await_reports(survivors);
	usleep(200000);
	_exit(0);
}

int main(int argc, char **argv)
{
	int ranks, rank, victim, inside, error = MPI_SUCCESS, calls_after = 0;
	struct plan plan = { .seed = 0 };
	double waited_s = 0, call_s;

	if (argc == 4 && !strcmp(argv[1], "await")) {
		open_board(argv[3]);
		await_reports(atoi(argv[2]));
		return 0;
	}
	case_begin(&argc, &argv, &rank, &ranks);
	if (argc != 5)
		case_fail("usage: kill COLLECTIVE|SEED VICTIM "
			  "inside|outside|pipes|random|finalize NAME");
	if (!strcmp(argv[3], "random"))
		plan.seed = strtoul(argv[1], NULL, 10);
	else
		plan.collective = case_parse(argv[1], strlen(argv[1]));
	victim = atoi(argv[2]);
	inside = strcmp(argv[3], "outside") != 0;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	open_board(argv[4]);
	one_call(&plan, 0);
	call_s = case_seconds();
	for (unsigned int i = 1; i < WARM_UP; i++)
		one_call(&plan, i);
	call_s = (case_seconds() - call_s) / (WARM_UP - 1);
	if (!strcmp(argv[3], "pipes"))
		take_pidfds();

	if (!strcmp(argv[3], "finalize"))
		finalize(rank, victim);
	if (rank == victim) {
		die_in(plan.seed ? 1 + (int)(oct_mix(plan.seed) % LATEST_US) : SOON_US);
		while (!inside)
			pause();
	}
	for (unsigned int i = WARM_UP; !error && calls_after < GIVE_UP_CALLS; i++) {
		if (!calls_after)
			waited_s = oct_waited_s();
		error = one_call(&plan, i);
		calls_after += atomic_load(&board->killed_at) > 0;
	}
	if (error)
		report(rank, error, &plan, waited_s, call_s);
	else
		printf("survivor %d: WRONG: no error\n", rank);
	leave(ranks - 1);
}
