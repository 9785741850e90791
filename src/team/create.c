/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation of a team: a state machine over the bootstrap's allgather, one look at a time.
 *
 *   HELLO    who I am, where my segment and region are, what I was told to do
 *   DECLARE  only under Yama scope 1: everyone has declared its tracer
 *   VERDICT  which peers I mapped and what I can do to each
 *
 * Whatever is decided is decided from gathered data alone, so all ranks decide alike. A rank that
 * cannot take part says so in its message and goes on gathering: nobody waits in vain.
 *
 * A little over 500 lines: the states share their buffers, and each is short.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/ptracer.h"
#include "team/team.h"

#define OCI_CPU_WORDS 128 /* 8192 CPUs, the largest that Linux can be built for (x86, arm64) */

struct oci_hello {
	uint32_t abi;
	int32_t error; /* this rank cannot take part: -errno */
	uint64_t options, model;
	uint8_t boot_id[16];
	uint64_t pid_namespace;
	struct oci_segment_id segment;
	int64_t region_offset;
	uint64_t tag;
	uint8_t nonce[16]; /* what a probe must read at nonce_address */
	uint64_t nonce_address;
	uint64_t cells_address; /* 16 bytes a rank, for the probes' writes */
	struct oci_topo_place place;
	uint32_t yama_scope; /* 0 also when there is no Yama */
	double cgroup_cpus;
	uint32_t node_ranks; /* as the front end of this rank counts them */
	uint32_t cpus_online;
	uint32_t has_arena; /* peers may map the shared heap of this rank */
	uint64_t cpus[OCI_CPU_WORDS];
};

struct oci_verdict {
	int32_t error;
	uint32_t reserved;
	/* uint32_t can[size] follows */
};

struct oci_creation {
	uint8_t nonce[16];
	uint8_t (*cells)[16];
	struct oci_hello hello;
	struct oci_hello *hellos;
	struct oci_verdict *verdict;
	uint8_t *verdicts;
	size_t verdict_bytes;
	struct oci_wait wait;
	int32_t declared, *all_declared;
	uint64_t *cpu_union;
};

static uint32_t *verdict_can(struct oci_verdict *verdict)
{
	return (uint32_t *)(verdict + 1);
}

static struct oci_verdict *verdict_of(const struct oci_creation *c, uint32_t rank)
{
	return (struct oci_verdict *)(c->verdicts + rank * c->verdict_bytes);
}

static void creation_free(struct oci_team *team)
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
	creation_free(team);
}

static int creation_alloc(struct oci_team *team)
{
	struct oci_creation *c = calloc(1, sizeof(*c));
	size_t p = team->size;

	team->creation = c;
	if (!c)
		return -ENOMEM;
	c->verdict_bytes = sizeof(struct oci_verdict) + ((p + 1) & ~1ul) * sizeof(uint32_t);
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
		creation_free(team);
		free(team->member);
	}
	return error;
}

/* What does not change in the life of a process; reading it costs dozens of system calls. */
static struct {
	uint8_t boot_id[16];
	int boot_id_error;
	uint64_t pid_namespace;
	uint32_t yama_scope;
	double cgroup_cpus;
	uint32_t cpus_online;
} constants;

static void read_constants(void)
{
	int scope = oci_os_yama_scope();

	constants.boot_id_error = oci_os_boot_id(constants.boot_id);
	constants.pid_namespace = oci_os_pid_namespace();
	constants.yama_scope = scope > 0 ? (uint32_t)scope : 0;
	constants.cgroup_cpus = oci_os_cgroup_cpus();
	constants.cpus_online = oci_os_cpus_online();
}

/* Where this rank runs; the place only when the mask is not the last one's. */
static void hello_place(struct oci_hello *hello)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t last[OCI_CPU_WORDS];
	static struct oci_topo_place place;

	oci_os_affinity(hello->cpus, OCI_CPU_WORDS);
	pthread_mutex_lock(&lock);
	if (memcmp(last, hello->cpus, sizeof(last))) {
		memcpy(last, hello->cpus, sizeof(last));
		oci_topo_self(&place);
	}
	hello->place = place;
	pthread_mutex_unlock(&lock);
}

/* Everything that this rank brings; an error is told to the others, not returned. */
static int hello_fill(struct oci_team *team, struct oci_hello *hello)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct oci_creation *c = team->creation;
	int error = oci_segment_self(&hello->segment);

	pthread_once(&once, read_constants);
	if (error)
		return error;
	/* One for a plan and one for a transfer by shm: with them every operation gets on. */
	error = oci_slots_reserve(2);
	if (error)
		return error;
	hello->region_offset = oci_segment_alloc(sizeof(struct oci_region));
	if (hello->region_offset < 0)
		return (int)hello->region_offset;
	team->region_offset = hello->region_offset;
	team->own = (struct oci_region *)((uint8_t *)oci_segment_base() + hello->region_offset);
	error = oci_os_random(&hello->tag, sizeof(hello->tag));
	if (!error)
		error = oci_os_random(c->nonce, sizeof(c->nonce));
	if (!error)
		error = constants.boot_id_error;
	if (error)
		return error;
	team->own->progress.tag = hello->tag;
	team->own->progress.done = team->done;
	memcpy(hello->nonce, c->nonce, sizeof(hello->nonce));
	hello->nonce_address = (uintptr_t)c->nonce;
	hello->cells_address = (uintptr_t)c->cells;
	memcpy(hello->boot_id, constants.boot_id, sizeof(hello->boot_id));
	hello->pid_namespace = constants.pid_namespace;
	hello->yama_scope = constants.yama_scope;
	hello->cgroup_cpus = constants.cgroup_cpus;
	hello->node_ranks = team->bootstrap.node_ranks;
	hello->cpus_online = constants.cpus_online;
	hello->has_arena = oci_arena_published();
	hello_place(hello);
	return 0;
}

static int gather(struct oci_team *team, enum oci_team_state next, const void *mine, size_t bytes,
		  void *all)
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
	hello->error = hello_fill(team, hello);
	return gather(team, OCI_TEAM_HELLO, hello, sizeof(*hello), team->creation->hellos);
}

/* 0 when the ranks can be a team; otherwise the sentence is the same on all ranks. */
static int hellos_judge(struct oci_team *team)
{
	const struct oci_hello *hellos = team->creation->hellos, *first = &hellos[0];

	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_hello *h = &hellos[r];

		if (h->abi != first->abi) {
			oci_team_say(team,
				     "rank %u runs another version of onecopy than rank 0: "
				     "use one build for the whole job",
				     r);
			return -EPROTO;
		}
		if (h->error) {
			oci_team_say(team, "rank %u has no shared memory for onecopy: %s", r,
				     strerror(-h->error));
			return h->error;
		}
		if (h->options != first->options) {
			oci_team_say(team,
				     "rank %u has other ONECOPY_ options than rank 0: set "
				     "them alike on all ranks",
				     r);
			return -EPROTO;
		}
		if (h->model != first->model) {
			oci_team_say(
				team,
				"rank %u goes by another cost model than rank 0: give all "
				"ranks the same tuning file (ONECOPY_TUNING, see onecopy-tune)",
				r);
			return -EPROTO;
		}
		if (memcmp(h->boot_id, first->boot_id, 16)) {
			oci_team_say(team, "rank %u is on another node than rank 0", r);
			return -EXDEV;
		}
		if (h->pid_namespace != first->pid_namespace) {
			oci_team_say(team,
				     "rank %u is in another PID namespace than rank 0 (a "
				     "container of its own): start all ranks of a node in one "
				     "container",
				     r);
			return -EXDEV;
		}
	}
	return 0;
}

/* CPUs that the ranks may use together, and the ranks that want them. */
static void judge_oversubscription(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	uint32_t ranks = team->size, node_ranks = 0;
	double cpus = 0, granted = 0, share;

	for (uint32_t r = 0; r < team->size; r++) {
		for (unsigned int w = 0; w < OCI_CPU_WORDS; w++)
			c->cpu_union[w] |= c->hellos[r].cpus[w];
		if (c->hellos[r].node_ranks > node_ranks)
			node_ranks = c->hellos[r].node_ranks;
		if (c->hellos[r].cgroup_cpus > 0 &&
		    (granted == 0 || c->hellos[r].cgroup_cpus < granted))
			granted = c->hellos[r].cgroup_cpus;
	}
	for (unsigned int w = 0; w < OCI_CPU_WORDS; w++)
		cpus += __builtin_popcountll(c->cpu_union[w]);
	/* Of the node's ranks outside of the team, those compete that fall on our CPUs: all when
	 * the ranks are not bound, none when each is bound to its own. */
	share = node_ranks * cpus / c->hellos[0].cpus_online;
	if (share > ranks)
		ranks = (uint32_t)share;
	if (granted > 0 && granted < cpus)
		cpus = granted;
	team->oversubscribed = cpus > 0 && ranks > cpus;
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

static int team_probe(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	uint32_t *can = verdict_can(c->verdict);

	for (uint32_t r = 0; r < team->size; r++) {
		int error = member_attach(team, r);

		c->verdict->error = c->verdict->error ?: error;
		if (r != team->rank && !error)
			can[r] = probe(team, r);
	}
	c->verdict->error = c->verdict->error ?: oci_team_places(team);
	return gather(team, OCI_TEAM_VERDICT, c->verdict, c->verdict_bytes, c->verdicts);
}

static int team_greeted(struct oci_team *team)
{
	struct oci_creation *c = team->creation;
	int error = hellos_judge(team);

	if (error)
		return error;
	judge_oversubscription(team);
	if (c->hellos[0].yama_scope != 1)
		return team_probe(team);
	for (uint32_t r = 0; r < team->size; r++)
		team->member[r].pid = c->hellos[r].segment.pid;
	c->declared = oci_ptracer_declare(team);
	return gather(team, OCI_TEAM_DECLARE, &c->declared, sizeof(c->declared), c->all_declared);
}

/* Best mechanism that both ends of a pair found to work. */
static uint8_t pair_mechanism(const struct oci_creation *c, uint32_t a, uint32_t b)
{
	uint32_t both = verdict_can(verdict_of(c, a))[b] & verdict_can(verdict_of(c, b))[a];

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
	team->state = OCI_TEAM_READY;
	oci_debug("team of %u ranks ready: %s, %s, %s", team->size,
		  team->single_copy ? "single copies between all pairs" :
				      "some pairs copy through shared memory",
		  team->mapped ? "shared heaps" : "not all with a shared heap",
		  team->oversubscribed ? "oversubscribed" : "a CPU for each rank");
	return 0;
}

static int team_refuse(struct oci_team *team, int error)
{
	static bool warned;

	team->state = OCI_TEAM_REFUSED;
	team->error = error;
	creation_free(team);
	/* One line for the job: every rank knows the same sentence, and the next communicator will
	 * most likely be refused for the same reason. */
	oci_log(team->rank == 0 && !__atomic_test_and_set(&warned, __ATOMIC_RELAXED) ?
			OCI_LOG_WARN :
			OCI_LOG_INFO,
		"%s; the collectives of this communicator stay with the MPI", team->sentence);
	return error;
}

/* The allgather of the present state has ended: on to the next. As oci_team_step(). */
static int creation_gathered(struct oci_team *team, int done)
{
	int error;

	if (done < 0) {
		oci_team_say(team, "the bootstrap failed: %s", strerror(-done));
		return team_refuse(team, done);
	}
	if (team->state == OCI_TEAM_HELLO)
		error = team_greeted(team);
	else if (team->state == OCI_TEAM_DECLARE)
		error = team_probe(team);
	else
		error = team_agree(team);
	if (error)
		return team_refuse(team, error);
	if (team->state != OCI_TEAM_READY)
		return 0;
	/* The probes' targets may go: everyone has sent its verdict, so all probes are over. */
	creation_free(team);
	return 1;
}

/* Do the members that we know still live? Before their hello we know none: then only the bootstrap
 * can tell. Asked of the kernel every few milliseconds. */
static int creation_look(struct oci_team *team)
{
	int done;

	if (team->state != OCI_TEAM_VERDICT || !oci_wait_is_long(&team->creation->wait))
		return 0;
	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_member *member = &team->member[r];

		if (!member->peer || !oci_peer_dead(member->peer))
			continue;
		/* Its message may have come in meanwhile, as its last deed. */
		done = team->bootstrap.allgather_test(team->bootstrap.context);
		if (done)
			return creation_gathered(team, done);
		oci_team_fail(team, -EOWNERDEAD, (int)r,
			      "rank %u (process %d) died while a communicator was prepared; it "
			      "cannot be used any more",
			      r, (int)member->pid);
		/* Every call returns the error. The buffers stay: a gathering is under way into
		 * them, and peers may still probe them. */
		team->state = OCI_TEAM_READY;
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
		return error ? team_refuse(team, error) : 0;
	}
	done = team->bootstrap.allgather_test(team->bootstrap.context);
	if (done == 0)
		return creation_look(team);
	return creation_gathered(team, done);
}
