/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation of a team: a state machine, one look at a time.
 *
 *   HELLO    the bootstrap's allgather: where each rank's segment and region are
 *   HERE     in shared memory: everyone has mapped the others, and says on its card who it is
 *   VERDICT  likewise: everyone has tried the others and says what it can do to each
 *
 * Whatever is decided is decided from what all ranks see alike. A rank that cannot take part says
 * so, in its hello or on its card, and waits for nobody. Who hears a no says it, too. So all ranks
 * come to know: whoever cannot map a card that says no cannot take part either.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/creation.h"
#include "team/ptracer.h"

void oci_creation_free(struct oci_team *team)
{
	struct oci_creation *c = team->creation;

	if (!c)
		return;
	if (team->bootstrap.release)
		team->bootstrap.release(team->bootstrap.context);
	free(c->hellos);
	free(c);
	team->creation = NULL;
}

int oci_team_init(struct oci_team *team, const struct oc_bootstrap *bootstrap, oci_probe_fn probe)
{
	struct oci_creation *c;

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
				   .min_done = 1 };
	c = calloc(1, sizeof(*c));
	if (c)
		c->hellos = calloc(team->size, sizeof(*c->hellos));
	team->member = calloc(team->size, sizeof(*team->member));
	if (bootstrap->names)
		team->names = malloc(team->size * sizeof(*team->names));
	if (team->names)
		memcpy(team->names, bootstrap->names, team->size * sizeof(*team->names));
	if (c && c->hellos && team->member && (team->names || !bootstrap->names)) {
		team->creation = c;
		return 0;
	}
	free(team->names);
	free(team->member);
	if (c)
		free(c->hellos);
	free(c);
	return -ENOMEM;
}

/* Release: what is on the card comes first. Pairs with the acquire in hear(). */
static void say(struct oci_team *team, enum oci_said said)
{
	oci_store_release(&team->own->card.said, said);
	team->creation->heard = 0;
}

static void put_no(struct oci_team *team, enum oci_no no, uint32_t culprit, int error)
{
	struct oci_card *card = &team->own->card;

	/* Relaxed: say() releases them. Atomic, as hear() may come late. */
	__atomic_store_n(&card->no, no, __ATOMIC_RELAXED);
	__atomic_store_n(&card->culprit, culprit, __ATOMIC_RELAXED);
	__atomic_store_n(&card->error, error, __ATOMIC_RELAXED);
	say(team, OCI_SAID_NO);
}

static void set_ready(struct oci_team *team)
{
	oci_creation_free(team);
	/* Release: all that calls go by comes first. Pairs with the acquire in oci_team_state(), of
	 * a thread that finds out by itself that the team is ready. */
	__atomic_store_n(&team->state, OCI_TEAM_READY, __ATOMIC_RELEASE);
}

/* The team is there, and every call on it returns the error. The others hear it from the card: they
 * may have heard all that the dead rank was to say, and would wait for this one. */
static int died(struct oci_team *team, uint32_t rank)
{
	put_no(team, OCI_NO_DIED, rank, -EOWNERDEAD);
	oci_team_fail(team, -EOWNERDEAD, (int)rank,
		      "rank %u (process %d) died while a communicator was prepared; it cannot be "
		      "used any more",
		      oci_team_name(team, rank), team->creation->hellos[rank].segment.pid);
	set_ready(team);
	return -EOWNERDEAD;
}

/* Says no, and why: by itself or because another rank has. error. */
static int say_no(struct oci_team *team, enum oci_no no, uint32_t culprit, int error)
{
	uint32_t name = oci_team_name(team, culprit), first = oci_team_name(team, 0);

	if (no == OCI_NO_DIED)
		return died(team, culprit);
	if (no == OCI_NO_OPTIONS)
		oci_team_say(team, error,
			     "rank %u has other ONECOPY_ options than rank %u: set them alike on "
			     "all ranks",
			     name, first);
	else if (no == OCI_NO_MODEL)
		oci_team_say(team, error,
			     "rank %u goes by another cost model than rank %u: give all ranks the "
			     "same tuning file (ONECOPY_TUNING, see onecopy-tune)",
			     name, first);
	else
		oci_team_say(team, error, "rank %u cannot take part in the team: %s", name,
			     strerror(-error));
	put_no(team, no, culprit, error);
	return error;
}

/* Has this member said it? 1; 0: not yet; -errno: it says no, and so does this rank now. */
static int hear(struct oci_team *team, uint32_t rank, enum oci_said said)
{
	const struct oci_member *member = &team->member[rank];
	const struct oci_card *card = oci_card_of(team, rank);
	/* Acquire: pairs with the release in say(). */
	uint64_t heard = oci_load_acquire(&card->said);
	/* Acquire: the tag is read behind them. Without it, which team_give_back() takes off first,
	 * the region may be another team's by now, and what is read here its. */
	uint32_t no = __atomic_load_n(&card->no, __ATOMIC_ACQUIRE);
	uint32_t culprit = __atomic_load_n(&card->culprit, __ATOMIC_ACQUIRE);
	int error = __atomic_load_n(&card->error, __ATOMIC_ACQUIRE);

	if (oci_load_relaxed(&member->region->progress.tag) != member->tag)
		return say_no(team, OCI_NO_PART, rank, -ECANCELED);
	if (heard == OCI_SAID_NO)
		return say_no(team, no, culprit, error);
	return heard >= said;
}

/* Have all? As above. A no is heard whatever ranks before it have still to say. */
static int hear_all(struct oci_team *team, enum oci_said said)
{
	uint32_t *heard = &team->creation->heard;
	int result;

	for (uint32_t r = *heard; r < team->size; r++) {
		result = hear(team, r, said);
		if (result < 0)
			return result;
		if (result && r == *heard)
			++*heard;
	}
	return *heard == team->size;
}

/* 1, or the error. */
static int refuse(struct oci_team *team, int error)
{
	static bool warned;

	if (team->state == OCI_TEAM_READY)
		return 1; /* a rank died */
	/* What only this rank knows, of its bootstrap: the others may be waiting for its card. */
	if (team->own && oci_load_relaxed(&team->own->card.said) != OCI_SAID_NO)
		put_no(team, OCI_NO_PART, team->rank, error);
	team->state = OCI_TEAM_REFUSED;
	team->error = error;
	oci_slots_forget(team); /* it has no operations */
	oci_creation_free(team);
	/* One line for the job: every rank knows the same sentence, and the next communicator will
	 * most likely be refused for the same reason. */
	oci_log(team->rank == 0 && !__atomic_test_and_set(&warned, __ATOMIC_RELAXED) ?
			OCI_LOG_WARN :
			OCI_LOG_INFO,
		"%s; the collectives of this communicator stay with the MPI", team->sentence);
	return error;
}

static int team_start(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	struct oc_bootstrap *b = &team->bootstrap;
	int error;

	c->hello.error = oci_hello_fill(team, &c->hello);
	error = b->allgather_start(b->context, &c->hello, sizeof(c->hello), c->hellos);
	if (error)
		return oci_team_say(team, error, "the bootstrap cannot gather: %s",
				    strerror(-error));
	team->state = OCI_TEAM_HELLO;
	return 0;
}

static int member_attach(struct oci_team *team, uint32_t r)
{
	const struct oci_hello *hello = &team->creation->hellos[r];
	struct oci_member *member = &team->member[r];
	int error = oci_peer_get(&member->peer, &hello->segment);

	if (error) {
		oci_info("rank %u cannot map the segment of rank %u (process %d): %s; "
			 "non-dumpable processes and other user namespaces forbid it",
			 oci_team_name(team, team->rank), oci_team_name(team, r),
			 hello->segment.pid, strerror(-error));
		return error;
	}
	member->region = (struct oci_region *)oci_peer_region(member->peer, hello->region_offset,
							      oci_region_bytes(team->size));
	member->tag = hello->tag;
	member->pid = hello->segment.pid;
	return 0;
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
		oci_team_name(team, team->rank), left >> 20, bytes >> 20);
	return -ENOMEM;
}

static bool has_ended(pid_t pid)
{
	struct oci_os_image image = oci_os_image(pid);

	return oci_os_process_ended(pid, &image);
}

static int attach_all(struct oci_team *team)
{
	int error = room_for_segments(team);
	uint32_t r = 0;

	while (!error && r < team->size && !(error = member_attach(team, r)))
		r++;
	if (!error)
		return 0;
	if (r < team->size && has_ended(team->creation->hellos[r].segment.pid))
		return died(team, r);
	return say_no(team, OCI_NO_PART, team->rank, error);
}

/* All hellos are in. */
static int team_greeted(struct oci_team *team)
{
	char why[256];
	int error = oci_hellos_judge(team, why, sizeof(why));

	if (error)
		return oci_team_say(team, error, "%s", why);
	error = attach_all(team);
	if (error)
		return error;
	if (oci_hello_declares())
		oci_ptracer_declare(team);
	say(team, OCI_SAID_HERE);
	team->state = OCI_TEAM_HERE;
	return 0;
}

/*
 * What this rank can do to a peer. A process is probed once: the segment's nonce says that it is
 * still the same one, and a mechanism that fails later is replaced transfer by transfer.
 */
static uint32_t probe(const struct oci_team *team, uint32_t r)
{
	struct oci_peer *peer = team->member[r].peer;
	uint32_t can = __atomic_load_n(&peer->can, __ATOMIC_RELAXED);
	char why[256] = "";

	if (can)
		return can;
	can = team->probe(peer, why, sizeof(why));
	if (why[0])
		oci_info("rank %u: %s; this pair copies %s", oci_team_name(team, r), why,
			 can & 1u << OCI_MECH_CMA ? "by cma" : "through shared memory");
	else
		__atomic_store_n(&peer->can, can, __ATOMIC_RELAXED);
	return can;
}

/* What must be alike on all ranks. 0, or this rank says no. */
static int compare_cards(struct oci_team *team)
{
	const struct oci_card *first = oci_card_of(team, 0);

	for (uint32_t r = 1; r < team->size; r++) {
		if (oci_card_of(team, r)->options != first->options)
			return say_no(team, OCI_NO_OPTIONS, r, -EPROTO);
		if (oci_card_of(team, r)->model != first->model)
			return say_no(team, OCI_NO_MODEL, r, -EPROTO);
	}
	return 0;
}

/* Takes over what the cards say, and groups the ranks by their places. 0 or -ENOMEM. */
static int take_cards(struct oci_team *team)
{
	struct oci_topo_place *places = calloc(team->size, sizeof(*places));
	int error;

	if (!places)
		return -ENOMEM;
	team->mapped = true;
	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_card *card = oci_card_of(team, r);

		team->mapped &= card->has_arena != 0;
		team->member[r].place = places[r] = card->place;
		team->member[r].is_told = card->is_told;
	}
	error = oci_hierarchy_get(places, team->size, &team->hierarchy);
	free(places);
	return error;
}

/* Everyone is here. */
static int team_probe(struct oci_team *team)
{
	uint8_t *can = oci_region_can(team->own);
	uint32_t reaches = ~0u;
	int error = compare_cards(team);

	if (error)
		return error;
	oci_cards_count_cpus(team);
	error = take_cards(team);
	if (error)
		return say_no(team, OCI_NO_PART, team->rank, error);
	for (uint32_t r = 0; r < team->size; r++) {
		if (r == team->rank)
			continue;
		can[r] = (uint8_t)probe(team, r);
		reaches &= can[r];
	}
	team->own->card.reaches = reaches;
	team->own->card.common = oci_near_find(team);
	say(team, OCI_SAID_VERDICT);
	team->state = OCI_TEAM_VERDICT;
	return 0;
}

/* Before cma? Alike on all ranks, as options, model and size of the team are. */
static bool kmod_first(const struct oci_team *team)
{
	enum oci_way way = oci_options()->mechanism;

	return way == OCI_WAY_KMOD || (way == OCI_WAY_AUTO && team->prefers_kmod);
}

/* The best of those that both ends of a pair found to work, and the next of them. */
static void pair(struct oci_team *team, uint32_t r)
{
	struct oci_member *member = &team->member[r];
	uint32_t both = r == team->rank ? 0 :
					  oci_region_can(team->own)[r] &
						  oci_region_can(member->region)[team->rank];
	bool kmod = kmod_first(team) && both & 1u << OCI_MECH_KMOD;

	member->mechanism = kmod ? OCI_MECH_KMOD :
			    both ? (uint8_t)__builtin_ctz(both) :
				   OCI_MECH_SHM;
	/* Of kmod alone: what it reaches is a matter of each buffer. */
	member->instead = kmod && both & 1u << OCI_MECH_CMA ? OCI_MECH_CMA : member->mechanism;
	team->any_kmod |= member->mechanism == OCI_MECH_KMOD;
	if (r != team->rank && member->mechanism == OCI_MECH_SHM)
		team->any_shm = true;
}

/* Everyone has said what it can do. */
static int team_agree(struct oci_team *team)
{
	uint32_t all = ~0u;

	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_card *card = oci_card_of(team, r);

		all &= card->reaches;
		if (card->common > team->common)
			team->common = card->common;
		pair(team, r);
	}
	/* By one mechanism at least everybody reaches everybody. */
	team->single_copy = all != 0;
	/* As each pair has it. */
	team->kmod = all & 1u << OCI_MECH_KMOD && (kmod_first(team) || !(all & 1u << OCI_MECH_CMA));
	set_ready(team);
	oci_debug("team of %u ranks ready: %s, %s, %s, %s", team->size,
		  team->single_copy ? "single copies between all pairs" :
				      "some pairs copy through shared memory",
		  team->mapped ? "shared heaps" : "not all with a shared heap",
		  team->oversubscribed ? "oversubscribed" : "a CPU for each rank",
		  oci_topo_near(team->common) ? "all share a cache" : "no cache that all share");
	return 0;
}

/* What the present state waits for: 1 it is there, 0 not yet, or -errno with the sentence. */
static int heard(struct oci_team *team)
{
	struct oc_bootstrap *b = &team->bootstrap;
	int done;

	if (team->state != OCI_TEAM_HELLO)
		return hear_all(team,
				team->state == OCI_TEAM_HERE ? OCI_SAID_HERE : OCI_SAID_VERDICT);
	done = b->allgather_test(b->context);
	if (done < 0)
		oci_team_say(team, done, "the bootstrap failed: %s", strerror(-done));
	return done;
}

static int on_to_the_next(struct oci_team *team)
{
	if (team->state == OCI_TEAM_HELLO)
		return team_greeted(team);
	return team->state == OCI_TEAM_HERE ? team_probe(team) : team_agree(team);
}

/* Do the members live that we wait for? Before their hellos we know none: then only the bootstrap
 * can tell. Asked of the kernel every few milliseconds. */
static int creation_look(struct oci_team *team)
{
	enum oci_said said = team->state == OCI_TEAM_HERE ? OCI_SAID_HERE : OCI_SAID_VERDICT;

	if (team->state == OCI_TEAM_HELLO || !oci_wait_is_long(&team->creation->wait))
		return 0;
	for (uint32_t r = 0; r < team->size; r++) {
		int result;

		if (!oci_peer_dead(team->member[r].peer))
			continue;
		/* It may have said it as its last deed. */
		result = hear(team, r, said);
		if (result <= 0)
			return refuse(team, result ? result : died(team, r));
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
		return error ? refuse(team, error) : 0;
	}
	while ((done = heard(team)) == 1) {
		error = on_to_the_next(team);
		if (error)
			return refuse(team, error);
		if (team->state == OCI_TEAM_READY)
			return 1;
	}
	return done ? refuse(team, done) : creation_look(team);
}
