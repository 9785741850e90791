/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation of a team: a state machine over the bootstrap's allgather, one look at a time.
 *
 *   HELLO    who I am, where my segment and region are, what I was told to do
 *   DECLARE  only under Yama scope 1: everyone has declared its tracer
 *   VERDICT  which peers I mapped and what I can do to each
 *   COMMIT   in shared memory: everyone is still there, or one has gone (commit.c, withdraw.c)
 *
 * Whatever is decided is decided from gathered data alone, so all ranks decide alike. A rank that
 * cannot take part says so in its message and goes on gathering: nobody waits in vain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/creation.h"
#include "team/ptracer.h"

#define GONE "a rank left while the team was prepared, as its program waits for something else"

/* What the rank can do to each: all ranks gather this of all ranks, so there are p * p of it. */
#define CAN_BITS 1
_Static_assert(OCI_MECH_SHM == CAN_BITS, "a bit for each mechanism before shm");

static void verdict_set_can(struct oci_verdict *verdict, uint32_t rank, uint32_t can)
{
	uint8_t *bits = (uint8_t *)(verdict + 1);

	bits[rank * CAN_BITS / 8] |= (uint8_t)(can << rank * CAN_BITS % 8);
}

static uint32_t verdict_can(const struct oci_verdict *verdict, uint32_t rank)
{
	const uint8_t *bits = (const uint8_t *)(verdict + 1);

	return bits[rank * CAN_BITS / 8] >> rank * CAN_BITS % 8 & ((1u << CAN_BITS) - 1);
}

static struct oci_verdict *verdict_of(const struct oci_creation *c, uint32_t rank)
{
	return (struct oci_verdict *)(c->verdicts + rank * c->verdict_bytes);
}

void oci_creation_free(struct oci_team *team)
{
	struct oci_creation *c = team->creation;

	if (!team->bootstrap_released && team->bootstrap.release)
		team->bootstrap.release(team->bootstrap.context);
	team->bootstrap_released = true;
	if (!c)
		return;
	free(c->cells);
	free(c->hellos);
	free(c->verdict);
	free(c->verdicts);
	free(c->all_declared);
	free(c->cpu_union);
	free(c);
	team->creation = NULL;
}

void oci_team_never_begun(struct oci_team *team)
{
	oci_creation_free(team);
}

static int creation_alloc(struct oci_team *team)
{
	struct oci_creation *c = calloc(1, sizeof(*c));
	size_t p = team->size;

	team->creation = c;
	if (!c)
		return -ENOMEM;
	/* Verdicts lie side by side. */
	c->verdict_bytes = sizeof(struct oci_verdict) + (p * CAN_BITS + 63) / 64 * 8;
	c->cells = calloc(p, sizeof(*c->cells));
	c->hellos = calloc(p, sizeof(*c->hellos));
	c->verdict = calloc(1, c->verdict_bytes);
	c->verdicts = calloc(p, c->verdict_bytes);
	c->all_declared = calloc(p, sizeof(*c->all_declared));
	c->cpu_union = calloc(OCI_CPU_WORDS, sizeof(*c->cpu_union));
	team->member = calloc(p, sizeof(*team->member));
	if (!c->cells || !c->hellos || !c->verdict || !c->verdicts || !c->all_declared ||
	    !c->cpu_union || !team->member)
		return -ENOMEM;
	return 0;
}

int oci_team_init(struct oci_team *team, const struct oc_bootstrap *bootstrap, oci_probe_fn probe)
{
	int error;

	if (!bootstrap || !bootstrap->size || bootstrap->rank >= bootstrap->size ||
	    !bootstrap->allgather_start || !bootstrap->allgather_test)
		return -EINVAL;
	oci_team_collect();
	*team = (struct oci_team){ .rank = bootstrap->rank,
				   .size = bootstrap->size,
				   .dead_rank = -1,
				   .bootstrap = *bootstrap,
				   .probe = probe,
				   .check_calls = oci_options()->check_calls,
				   .next = 1,
				   .done = 1,
				   .min_done = 1,
				   .due = UINT64_MAX,
				   .distance = { .until = UINT64_MAX } };
	error = creation_alloc(team);
	if (error) {
		team->bootstrap_released = true;
		oci_creation_free(team);
		free(team->member);
	}
	return error;
}

int oci_creation_gather(struct oci_team *team, enum oci_team_state next, const void *mine,
			size_t bytes, void *all)
{
	int error = team->bootstrap.allgather_start(team->bootstrap.context, mine, bytes, all);

	if (error) {
		oci_team_say(team, "the bootstrap cannot gather: %s", strerror(-error));
		return error;
	}
	team->state = next;
	return 0;
}

static int team_start(struct oci_team *team)
{
	struct oci_hello *hello = &team->creation->hello;

	hello->abi = OCI_ABI;
	hello->options = oci_options_hash();
	hello->model = team->model_hash;
	hello->error = oci_hello_fill(team, hello);
	return oci_creation_gather(team, OCI_TEAM_HELLO, hello, sizeof(*hello),
				   team->creation->hellos);
}

static int member_attach(struct oci_team *team, uint32_t r)
{
	const struct oci_hello *hello = &team->creation->hellos[r];
	struct oci_member *member = &team->member[r];
	int error = oci_peer_get(&member->peer, &hello->segment);

	if (error) {
		oci_info("rank %u cannot map the segment of rank %u (process %d): %s; "
			 "non-dumpable processes and other user namespaces forbid it",
			 team->rank, r, hello->segment.pid, strerror(-error));
		return error;
	}
	member->region = (struct oci_region *)(member->peer->base + hello->region_offset);
	member->tag = hello->tag;
	member->region_offset = hello->region_offset;
	member->pid = hello->segment.pid;
	member->place = hello->place;
	return 0;
}

/*
 * What this rank can do to a peer. A process is probed once: the segment's nonce says that it is
 * still the same one, and a mechanism that fails later is replaced transfer by transfer.
 */
static uint32_t probe(const struct oci_team *team, uint32_t r)
{
	const struct oci_hello *hello = &team->creation->hellos[r];
	struct oci_peer *peer = team->member[r].peer;
	uint32_t can = __atomic_load_n(&peer->can, __ATOMIC_RELAXED);
	char why[256] = "";

	if (can)
		return can;
	can = team->probe(hello->segment.pid, hello->nonce_address, hello->nonce,
			  hello->cells_address + 16ull * team->rank, why, sizeof(why));
	if (why[0])
		oci_info("rank %u: %s; this pair copies through shared memory", r, why);
	else
		__atomic_store_n(&peer->can, can, __ATOMIC_RELAXED);
	return can;
}

/*
 * Does a limit of the address space leave room for the segments that are not mapped here yet? A
 * quarter of it may go: what the program asks for later would fail otherwise.
 */
static int room_for_segments(const struct oci_team *team)
{
	static bool warned;
	size_t left = oci_os_address_space_left(), bytes = 0;

	for (uint32_t r = 0; r < team->size && left != SIZE_MAX; r++) {
		const struct oci_segment_id *id = &team->creation->hellos[r].segment;

		bytes += oci_peer_known(id) ? 0 : id->bytes;
	}
	if (bytes <= left / 4)
		return 0;
	oci_log(__atomic_test_and_set(&warned, __ATOMIC_RELAXED) ? OCI_LOG_INFO : OCI_LOG_WARN,
		"rank %u: the address space limit (ulimit -v) leaves %zu MiB, and the segments of "
		"the other ranks take %zu MiB; the collectives of this communicator stay with the "
		"MPI. Raise the limit, set it before the first communicator is used, and alike on "
		"all ranks, or lower ONECOPY_SEGMENT_BYTES",
		team->rank, left >> 20, bytes >> 20);
	return -ENOMEM;
}

static int team_probe(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	int no_room = room_for_segments(team);

	for (uint32_t r = 0; r < team->size; r++) {
		int error = no_room ?: member_attach(team, r);

		c->verdict->error = c->verdict->error ?: error;
		if (r != team->rank && !error)
			verdict_set_can(c->verdict, r, probe(team, r));
	}
	c->verdict->error = c->verdict->error ?: oci_team_places(team);
	return oci_creation_gather(team, OCI_TEAM_VERDICT, c->verdict, c->verdict_bytes,
				   c->verdicts);
}

static int team_greeted(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	char why[256];
	int error = oci_hellos_judge(team, why, sizeof(why));

	if (error) {
		oci_team_say(team, "%s", why);
		return error;
	}
	oci_hellos_oversubscription(team);
	if (!oci_hellos_declare(team))
		return team_probe(team);
	for (uint32_t r = 0; r < team->size; r++)
		team->member[r].pid = c->hellos[r].segment.pid;
	c->declared = oci_ptracer_declare(team);
	return oci_creation_gather(team, OCI_TEAM_DECLARE, &c->declared, sizeof(c->declared),
				   c->all_declared);
}

/* Best mechanism that both ends of a pair found to work. */
static uint8_t pair_mechanism(const struct oci_creation *c, uint32_t a, uint32_t b)
{
	uint32_t both = verdict_can(verdict_of(c, a), b) & verdict_can(verdict_of(c, b), a);

	return both ? (uint8_t)__builtin_ctz(both) : OCI_MECH_SHM;
}

static int team_agree(struct oci_team *team)
{
	struct oci_creation *c = team->creation;

	team->single_copy = team->mapped = true;
	for (uint32_t r = 0; r < team->size; r++) {
		team->mapped &= c->hellos[r].has_arena != 0;
	}
	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_verdict *verdict = verdict_of(c, r);

		if (verdict->error) {
			oci_team_say(team, "rank %u cannot take part in the team: %s", r,
				     strerror(-verdict->error));
			return verdict->error;
		}
		for (uint32_t s = 0; s < r; s++) {
			if (pair_mechanism(c, r, s) == OCI_MECH_SHM)
				team->single_copy = false;
		}
	}
	for (uint32_t r = 0; r < team->size; r++) {
		team->member[r].mechanism = r == team->rank ? OCI_MECH_SHM :
							      pair_mechanism(c, team->rank, r);
		if (r != team->rank && team->member[r].mechanism == OCI_MECH_SHM)
			team->any_shm = true;
	}
	oci_distance_init(team);
	team->state = OCI_TEAM_COMMIT;
	oci_commit_yes(team);
	return 0;
}

static void set_ready(struct oci_team *team)
{
	/* Release: all that calls go by comes first. Pairs with the acquire in oci_team_state(), of
	 * a thread that finds out by itself that the team is ready. */
	__atomic_store_n(&team->state, OCI_TEAM_READY, __ATOMIC_RELEASE);
}

/* As oci_team_step(). */
static int team_committed(struct oci_team *team, int outcome)
{
	if (outcome < 0) {
		oci_team_say(team, GONE);
		return oci_creation_refuse(team, outcome);
	}
	set_ready(team);
	/* The probes' targets may go: everyone has sent its verdict, so all probes are over. */
	oci_creation_free(team);
	oci_debug("team of %u ranks ready: %s, %s, %s", team->size,
		  team->single_copy ? "single copies between all pairs" :
				      "some pairs copy through shared memory",
		  team->mapped ? "shared heaps" : "not all with a shared heap",
		  team->oversubscribed ? "oversubscribed" : "a CPU for each rank");
	return 1;
}

int oci_creation_refuse(struct oci_team *team, int error)
{
	static bool warned;
	/* Nothing is wrong with the machine, and the next communicator will be served. */
	bool withdrawn = error == -ECANCELED;

	team->state = OCI_TEAM_REFUSED;
	team->error = error;
	oci_slots_forget(team); /* it has no operations */
	if (!team->draining)
		oci_creation_free(team);
	/* One line for the job: every rank knows the same sentence, and the next communicator will
	 * most likely be refused for the same reason. */
	oci_log(team->rank == 0 && !withdrawn && !__atomic_test_and_set(&warned, __ATOMIC_RELAXED) ?
			OCI_LOG_WARN :
			OCI_LOG_INFO,
		"%s; the collectives of this communicator stay with the MPI", team->sentence);
	return error;
}

/* The allgather of the present state has ended: on to the next. As oci_team_step(). */
static int creation_gathered(struct oci_team *team, int done)
{
	int error;

	if (done == -ECANCELED)
		oci_team_say(team, GONE);
	else if (done < 0)
		oci_team_say(team, "the bootstrap failed: %s", strerror(-done));
	if (done < 0)
		return oci_creation_refuse(team, done);
	if (team->state == OCI_TEAM_HELLO)
		error = team_greeted(team);
	else if (team->state == OCI_TEAM_DECLARE)
		error = team_probe(team);
	else
		error = team_agree(team);
	if (error)
		return oci_creation_refuse(team, error);
	return team->state == OCI_TEAM_COMMIT ? oci_team_step(team) : 0;
}

/* Has what the present state waits for come in? As oci_team_step(). */
static int creation_step(struct oci_team *team)
{
	int done;

	if (team->state == OCI_TEAM_COMMIT) {
		done = oci_commit_outcome(team);
		return done ? team_committed(team, done) : 0;
	}
	done = team->bootstrap.allgather_test(team->bootstrap.context);
	return done ? creation_gathered(team, done) : 0;
}

/* Do the members that we know still live? Before their hello we know none: then only the bootstrap
 * can tell. Asked of the kernel every few milliseconds. */
static int creation_look(struct oci_team *team)
{
	enum oci_team_state before;
	int done;

	if (team->state < OCI_TEAM_VERDICT || !oci_wait_is_long(&team->creation->wait))
		return 0;
	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_member *member = &team->member[r];

		if (!member->peer || !oci_peer_dead(member->peer))
			continue;
		/* It had withdrawn: what it owed the others has been sent. */
		if (team->member[0].region && oci_commit_outcome(team) < 0)
			continue;
		/* What it did may have come in meanwhile, as its last deed. */
		before = team->state;
		done = creation_step(team);
		if (done || team->state != before)
			return done;
		oci_team_fail(team, -EOWNERDEAD, (int)r,
			      "rank %u (process %d) died while a communicator was prepared; it "
			      "cannot be used any more",
			      r, (int)member->pid);
		/* Every call returns the error. The buffers stay while a gathering is under way
		 * into them, and peers may still probe them. */
		set_ready(team);
		if (before == OCI_TEAM_COMMIT)
			oci_creation_free(team);
		return 1;
	}
	return 0;
}

int oci_team_step(struct oci_team *team)
{
	int error, done;

	if (team->state == OCI_TEAM_READY)
		return 1;
	if (team->state == OCI_TEAM_REFUSED)
		return team->error;
	if (team->state == OCI_TEAM_START) {
		error = team_start(team);
		return error ? oci_creation_refuse(team, error) : 0;
	}
	done = creation_step(team);
	return done ? done : creation_look(team);
}
