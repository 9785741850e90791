/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/team.h"

/* Polls between two looks at the MPI's progress engine while spinning: an opal_progress() with
 * nothing to do costs about as much as ten polls, so it slows the wait by a tenth. */
#define OCI_POLLS_PER_DRIVE 128
/* A peer's death is to be noticed within 100 ms: by who waits for it and then by all, on CPUs that
 * many ranks share. */
#define OCI_LOOK_NS 4000000u
/*
 * Of a rank, for each rank of its team: then those that wait wake every 50 us in all, however many
 * they are. What a wake-up costs is taken from the ranks that work: with 50 us whatever the size 16
 * messages of 1 MiB to one of 5 and of 8 waiting ranks took 1.4 and 1.5 times as long as beside
 * ranks that wait in the MPI, so 1.1 (Xeon guest of 2 CPUs, 2026-11-25, oc_mpi_driver asked).
 */
#define OCI_SLEEP_FIRST_US 50
#define OCI_SLEEP_LAST_US 1000
/* Yields before the first sleep of an oversubscribed team. */
#define OCI_YIELDS 64
/* Of those, how many for one look at the MPI: the peer that shares our CPU is what we wait for. */
#define OCI_YIELDS_PER_DRIVE 4
/*
 * A yield that takes longer has given the CPU to somebody who keeps it. Among ranks that yield so
 * does one in 400 (8 ranks, 2 CPUs); two behind each other say that a rank computes, or another job
 * is there. Then who waits sleeps at once, so many times as long: the kernel gives who is woken the
 * CPU before those who have had much of it, and who yields comes behind them all. What it gains:
 * docs/results/experiments.md, Beside busy processes.
 */
#define OCI_LONG_YIELD_NS 2000000
#define OCI_SLEEPS_PER_YIELD 16
/*
 * A look that takes longer has moved a message. On the Xeon guest, 2026-11-23, load 20: idle ones
 * take 0.03 to 0.1 us in both MPIs, 99 % of those after a sleep at most 1.1; the kernel's copy of
 * 16 KiB takes 4.
 */
#define OCI_LONG_LOOK_NS 2000
/*
 * Where others may ask at any moment, they may ask for little: an atomic operation on a window
 * makes a look of MPICH's 0.5 to 1 us long (17000 of them); of idle ones at most one in 3000 is as
 * long, when an interrupt comes (oc_mpich_asked, Xeon guest of model 167, 2026-11-28). So the third
 * within this time is others that ask, and behind each one we look for so long before we sleep.
 */
#define OCI_ANSWER_NS 400
#define OCI_ANSWERS_NS 40000
/*
 * A look as long as this may be one in which the thread lost its CPU, as it does all the time where
 * ranks that spin share CPUs with those that sleep and wake: no answer. Nor are looks that begin
 * within OCI_ANSWERS_NS behind it or behind a sleep, which are slow as caches are cold. Taken for
 * answers they kept ranks awake: of oc_mpich_asked, 4 ranks on 2 CPUs (there), 8 of 24 medians of
 * nonblocking atomics were 1.9 s, since then all 24 at most 0.04, and an atomic operation each 100
 * us took 0.2 to 5.2 ms in the mean, since then 0.01 to 0.5 (12 runs).
 */
#define OCI_LOST_NS 5000
/*
 * There we sleep when nobody has asked so for longer than the scheduler takes for a few turns, and
 * not for long, as some ask more slowly (oc_mpich_asked: docs/results/asked.csv).
 */
#define OCI_NEEDED_QUIET_NS 25000000
#define OCI_SLEEP_NEEDED_US 200
/* A sleep is at most this part of the time since we were last asked for something: however slowly
 * they ask, we delay the askers by no more than that. */
#define OCI_QUIET_PER_SLEEP 8
/* By this part of it a sleep is longer than the one before, so no longer than the first one and
 * this part of the time that the wait has lasted: who asks for a first time is delayed by no more.
 */
#define OCI_SLEEP_GROWTH 16
/* How much later than told a sleep may end: what Linux allows itself (PR_SET_TIMERSLACK). */
#define OCI_SLACK_US 50

/* What a hook says that gives up the CPU itself (onecopy.h). */
#define OCI_NEEDED_YIELDS 2

int (*oci_progress_hook)(void);
int (*oci_engine_hook)(void);
/* What any thread of the process knows is of use to all; relaxed. */
static bool crowded;	  /* there is a team of more ranks than CPUs */
static int needed;	  /* what the hook said last: others may ask us at any moment */
static uint64_t asked_ns; /* when others last asked us for something beside what we wait for */
static _Thread_local uint64_t answered[2];   /* the last two looks that may have been answers */
static _Thread_local uint64_t cold_until_ns; /* the caches, as far as we know */
static _Thread_local long preemptions;	     /* until the last look that was long */
static _Thread_local bool was_long;	     /* the last yield */
static _Thread_local uint64_t busy_until_ns; /* the CPU, with who keeps it; 0: it is not */

bool oci_wait_drive(void)
{
	int (*hook)(void) = __atomic_load_n(&oci_progress_hook, __ATOMIC_ACQUIRE);
	bool outstanding = oci_engine_hook && oci_engine_hook();

	__atomic_store_n(&needed, hook ? hook() : 0, __ATOMIC_RELAXED);
	return outstanding;
}

/* The team has failed at rank `from`, so here, too. */
static int pass_on(struct oci_team *team, uint32_t from, uint64_t poison)
{
	int error = oci_poison_error(poison);

	if (error == -EOWNERDEAD)
		return oci_team_fail(team, error, (int)oci_poison_rank(poison),
				     "rank %u died during a collective (rank %u noticed it); this "
				     "communicator cannot be used any more",
				     oci_team_name(team, oci_poison_rank(poison)),
				     oci_team_name(team, from));
	if (error == -EPROTO && oci_poison_rank(poison) < team->size)
		return oci_team_fail(team, error, (int)oci_poison_rank(poison),
				     "mismatched collectives: the calls of ranks %u and %u differ "
				     "(rank %u said how); all ranks must call alike",
				     oci_team_name(team, from),
				     oci_team_name(team, oci_poison_rank(poison)),
				     oci_team_name(team, from));
	return oci_team_fail(team, error, -1,
			     "rank %u gave up a collective (%s); this communicator cannot be used "
			     "any more",
			     oci_team_name(team, from), strerror(-error));
}

int oci_team_hear(struct oci_team *team, const struct oci_awaited *awaited)
{
	for (uint32_t r = 0; r < team->size; r++) {
		/* Acquire: pairs with the release in oci_team_fail(). */
		uint64_t poison = oci_load_acquire(&team->member[r].region->progress.poison);

		if (poison && r != team->rank)
			/* Acquire: what was waited for has come all the same. */
			return oci_load_acquire(awaited->word) >= awaited->target ?
				       0 :
				       pass_on(team, r, poison);
	}
	return 0;
}

int oci_team_look(struct oci_team *team, const struct oci_awaited *awaited)
{
	struct oci_member *member = &team->member[awaited->peer];
	/* Before the poison: a peer that failed has poisoned before it leaves or ends, and why it
	 * failed is what is to be said then. Acquire, both; pair with its releases. */
	bool left = oci_member_has_left(member);
	bool dead = !left && oci_peer_dead(member->peer);
	uint64_t poison = oci_load_acquire(&member->region->progress.poison);

	if (!poison && !left && !dead)
		return 0;
	/* The peer may have raised the flag as its last deed: acquire, pairs with its release. */
	if (oci_load_acquire(awaited->word) >= awaited->target)
		return 0;
	if (dead && !poison)
		return oci_team_fail(team, -EOWNERDEAD, (int)awaited->peer,
				     "rank %u (process %d) died during a collective; this "
				     "communicator cannot be used any more",
				     oci_team_name(team, awaited->peer), (int)member->pid);
	if (left && !poison)
		return oci_team_fail(team, -EPROTO, (int)awaited->peer,
				     "mismatched collectives: rank %u has left the team (its "
				     "communicator was freed) without the collective that rank %u "
				     "called; all ranks must call alike",
				     oci_team_name(team, awaited->peer),
				     oci_team_name(team, team->rank));
	return pass_on(team, awaited->peer, poison);
}

/* The futex is the half of a flag that every raise changes. */
static uint32_t *futex_half(uint64_t *flag)
{
	return (uint32_t *)flag + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static uint32_t first_sleep_us(const struct oci_team *team, bool stays)
{
	uint32_t us = OCI_SLEEP_FIRST_US * team->size;

	if (stays && us < OCI_SLEEP_NEEDED_US)
		us = OCI_SLEEP_NEEDED_US;
	return us < OCI_SLEEP_LAST_US ? us : OCI_SLEEP_LAST_US;
}

static void wait_sleep(struct oci_wait *wait, const struct oci_awaited *awaited, uint32_t first_us,
		       uint64_t most_us)
{
	uint32_t *half = futex_half(awaited->word);
	uint64_t seen;

	if (wait->sleep_us < first_us)
		wait->sleep_us = first_us;
	if (wait->sleep_us > most_us)
		wait->sleep_us = (uint32_t)most_us;
	/*
	 * Sequentially consistent: the count must be seen before the flag is read again, as
	 * oci_team_raise() writes the flag before it reads the count. One of the two sees the
	 * other; were it not so, the bounded sleep would end all the same.
	 */
	__atomic_fetch_add(awaited->waiters, 1, __ATOMIC_SEQ_CST);
	oci_stall();
	seen = __atomic_load_n(awaited->word, __ATOMIC_SEQ_CST);
	oci_stall();
	if (seen < awaited->target) {
		int woken = oci_os_futex_wait(half, (uint32_t)seen, wait->sleep_us * 1000ull);

		if (woken == -ETIMEDOUT && wait->sleep_us < OCI_SLEEP_LAST_US)
			wait->sleep_us += wait->sleep_us / OCI_SLEEP_GROWTH;
	}
	__atomic_fetch_sub(awaited->waiters, 1, __ATOMIC_SEQ_CST);
}

bool oci_wait_is_long(struct oci_wait *wait)
{
	uint64_t now = oci_clock_ns();
	/* The first time only sets the clock: a wait that just began has nothing to suspect. */
	bool due = wait->next_look_ns && now >= wait->next_look_ns;

	if (due || !wait->next_look_ns)
		wait->next_look_ns = now + OCI_LOOK_NS;
	return due;
}

static void caches_are_cold(uint64_t now)
{
	cold_until_ns = now + OCI_ANSWERS_NS;
}

/* Did the thread lose its CPU in a look of so long, or since the last long one? The kernel is asked
 * where it matters alone. */
static bool lost_the_cpu(uint64_t took_ns)
{
	long before = preemptions;

	if (took_ns < OCI_LOST_NS)
		return false;
	preemptions = oci_os_preemptions();
	return preemptions != before;
}

/* A look from `begin` to `now`: did it do something for others, who may ask for more? */
static void note_look(uint64_t begin, uint64_t now, bool stays)
{
	bool asked = now - begin > OCI_LONG_LOOK_NS;

	if (stays) {
		bool slow = now - begin > OCI_ANSWER_NS, lost = slow && lost_the_cpu(now - begin);

		asked = slow && !lost && (int64_t)(begin - answered[1]) < OCI_ANSWERS_NS;
		if (lost) {
			caches_are_cold(now);
		} else if (slow) {
			answered[1] = answered[0] < cold_until_ns ? 0 : answered[0];
			answered[0] = now;
		}
	}
	if (asked)
		__atomic_store_n(&asked_ns, now, __ATOMIC_RELAXED);
}

/* How long a sleep may be, by how long nobody has asked. */
static uint64_t most_sleep_us(uint64_t now, bool stays)
{
	/* Another thread may have been asked after `now`. */
	int64_t quiet_ns = (int64_t)(now - __atomic_load_n(&asked_ns, __ATOMIC_RELAXED)), us;

	if (stays)
		return quiet_ns < OCI_NEEDED_QUIET_NS || now - answered[0] < OCI_ANSWERS_NS ?
			       0 :
			       OCI_SLEEP_LAST_US;
	us = quiet_ns / 1000 / OCI_QUIET_PER_SLEEP - OCI_SLACK_US;
	return us > 0 ? (uint64_t)us : 0;
}

/* A look at the MPI and the engine; it says what others may do. How long may we sleep behind it? */
static uint64_t look_around(bool *stays)
{
	uint64_t begin = oci_clock_ns(), now;
	bool outstanding = oci_wait_drive();
	int asked = __atomic_load_n(&needed, __ATOMIC_RELAXED);

	now = oci_clock_ns();
	*stays = asked != 0;
	if (asked == OCI_NEEDED_YIELDS)
		return 0;
	note_look(begin, now, *stays);
	if (outstanding)
		__atomic_store_n(&asked_ns, now, __ATOMIC_RELAXED);
	return most_sleep_us(now, *stays);
}

static void yield(void)
{
	uint64_t begin = oci_clock_ns(), now;
	bool is_long;

	oci_os_yield();
	now = oci_clock_ns();
	is_long = now - begin > OCI_LONG_YIELD_NS;
	if (is_long && was_long)
		busy_until_ns = now + OCI_SLEEPS_PER_YIELD * (now - begin);
	was_long = is_long;
}

/* Is somebody there who would keep the CPU that a yield gives away? */
static bool is_busy(void)
{
	if (!busy_until_ns)
		return false;
	if (oci_clock_ns() >= busy_until_ns)
		busy_until_ns = 0;
	return busy_until_ns != 0;
}

/*
 * More ranks than CPUs. At first the peer that shares our CPU is most likely what we wait for, so
 * it gets the CPU, unless somebody else would keep it. Then we sleep, which burdens nobody; but a
 * sleeper answers nobody, so not while others ask. Where they may at any moment we do not yield:
 * askers that spin in the MPI, as MPICH's do, would gain nothing by it and keep the CPU for
 * milliseconds. We sleep all the same when nobody has for long: else two that ask each other may
 * share a CPU for seconds, while others spin on theirs. Not where the hook yields, as a wait of the
 * MPI's own does then: its time does not tell who asks, and in one of seven runs of oc_mpi_asked on
 * 5 ranks each of 250 atomic operations took a sleep, 0.24 ms instead of 0.01 (EPYC guest of 2
 * CPUs, 2026-11-29).
 */
static void turn_of_many(const struct oci_team *team, struct oci_wait *wait,
			 const struct oci_awaited *awaited, uint32_t polls)
{
	bool stays = __atomic_load_n(&needed, __ATOMIC_RELAXED) != 0;
	bool busy = !stays && is_busy(), sleeps = busy || polls >= OCI_YIELDS;
	uint64_t most_us = 0;
	uint32_t first_us;

	if (stays || sleeps || polls % OCI_YIELDS_PER_DRIVE == OCI_YIELDS_PER_DRIVE - 1)
		most_us = look_around(&stays);
	first_us = first_sleep_us(team, stays);
	/* Whoever asks is answered sooner than behind such a yield. */
	if (busy && !stays && most_us < first_us)
		most_us = first_us;
	if (sleeps && awaited->waiters && most_us >= first_us) {
		wait_sleep(wait, awaited, first_us, stays ? first_us : most_us);
		caches_are_cold(oci_clock_ns());
	} else if (busy && most_us >= first_us) {
		/* Nobody wakes us. */
		oci_os_sleep_us(OCI_SLEEP_FIRST_US);
		caches_are_cold(oci_clock_ns());
	} else if (!stays) {
		yield();
	}
}

void oci_wait_crowd(void)
{
	__atomic_store_n(&crowded, true, __ATOMIC_RELAXED);
}

/*
 * Who polls for several things sleeps for the first time's length alone: nobody wakes it, and its
 * operations go on in its turns only. With it, 16 messages of 1 MiB to one of 3 ranks of MPICH that
 * wait in nonblocking calls took 0.53 [0.44, 0.76] of the MPI's own time, with yields alone 1.00
 * [0.62, 1.70] (means over 17 kinds of call, 9 rounds, EPYC guest of 2 CPUs, 2026-11-26,
 * oc_mpich_asked).
 */
void oci_wait_polled(bool stays)
{
	static _Thread_local uint64_t left_ns;
	uint32_t us = stays ? OCI_SLEEP_NEEDED_US : OCI_SLEEP_FIRST_US;
	uint64_t now;
	bool sleeps;

	if (__atomic_load_n(&crowded, __ATOMIC_RELAXED)) {
		now = oci_clock_ns();
		/* The caller's turn was such a look, or is its first. */
		note_look(left_ns, now, stays);
		sleeps = most_sleep_us(now, stays) >= us;
		if (sleeps)
			oci_os_sleep_us(us);
		else if (!stays)
			oci_os_yield();
		left_ns = oci_clock_ns();
		if (sleeps)
			caches_are_cold(left_ns);
	} else if (stays) {
		oci_cpu_relax();
	} else {
		oci_os_yield();
	}
}

bool oci_wait_turn(struct oci_team *team, struct oci_wait *wait, const struct oci_awaited *awaited)
{
	uint32_t polls = wait->polls++;

	if (team->oversubscribed) {
		turn_of_many(team, wait, awaited, polls);
	} else if (polls < oci_options()->spins) {
		oci_cpu_relax();
		if (polls % OCI_POLLS_PER_DRIVE != OCI_POLLS_PER_DRIVE - 1)
			return false;
		oci_wait_drive();
	} else {
		oci_wait_drive();
		oci_os_yield();
	}
	return oci_wait_is_long(wait);
}

void oci_team_raise(const struct oci_team *team, uint64_t *flag, uint32_t *waiters, uint64_t value)
{
	if (!team->oversubscribed) {
		/* Release: everything written for the readers of this flag comes before it. Pairs
		 * with the acquire of the executor's waits. */
		oci_store_release(flag, value);
		return;
	}
	/* Sequentially consistent, see wait_sleep(). */
	oci_stall();
	__atomic_store_n(flag, value, __ATOMIC_SEQ_CST);
	oci_stall();
	if (__atomic_load_n(waiters, __ATOMIC_SEQ_CST))
		oci_os_futex_wake(futex_half(flag), INT32_MAX);
}
