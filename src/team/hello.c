/* SPDX-License-Identifier: BSD-3-Clause */
/* What each rank tells the others, in its hello and on its card, and what all of them conclude from
 * it, alike. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "os/os.h"
#include "team/creation.h"

/* What does not change in the life of a process; reading it costs dozens of system calls. */
static struct {
	uint32_t yama_scope;
	double cgroup_cpus;
} constants;

static void read_constants(void)
{
	int scope = oci_os_yama_scope();

	constants.yama_scope = scope > 0 ? (uint32_t)scope : 0;
	constants.cgroup_cpus = oci_os_cgroup_cpus();
}

static pthread_mutex_t place_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t place_read_for;

void oci_hello_fork_child(void)
{
	pthread_mutex_init(&place_lock, NULL);
	place_read_for = 0;
}

/* Where this rank runs; the place only when the mask is not the last one's, or was read for two
 * ranks. */
static void card_place(struct oci_card *card, uint32_t ranks)
{
	static uint64_t last[OCI_CPU_WORDS];
	static struct oci_topo_place place;
	static bool is_told;

	oci_os_affinity(0, card->cpus, OCI_CPU_WORDS);
	pthread_mutex_lock(&place_lock);
	if (memcmp(last, card->cpus, sizeof(last)) || place_read_for < ranks) {
		memcpy(last, card->cpus, sizeof(last));
		is_told = oci_topo_self(&place, ranks);
		place_read_for = ranks > 2 ? UINT32_MAX : ranks;
	}
	card->place = place;
	card->is_told = is_told && oci_near_source.by_places;
	pthread_mutex_unlock(&place_lock);
}

/* It takes reading a file. */
static uint32_t cpus_online(void)
{
	static uint32_t online;
	uint32_t known = __atomic_load_n(&online, __ATOMIC_RELAXED);

	if (!known) {
		known = oci_os_cpus_online();
		__atomic_store_n(&online, known, __ATOMIC_RELAXED);
	}
	return known;
}

static void card_fill(const struct oci_team *team, struct oci_card *card)
{
	card->options = oci_options_hash();
	card->model = team->model_hash;
	card->cgroup_cpus = constants.cgroup_cpus;
	card->node_ranks = team->bootstrap.node_ranks;
	card->cpus_online = card->node_ranks > team->size ? cpus_online() : 0;
	card->has_arena = oci_arena_published();
	card_place(card, team->size);
}

int oci_hello_fill(struct oci_team *team, struct oci_hello *hello)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t ranks = team->size > team->bootstrap.node_ranks ? team->size :
								   team->bootstrap.node_ranks;
	int error = oci_segment_self(&hello->segment, ranks);

	hello->abi = OCI_ABI;
	pthread_once(&once, read_constants);
	if (error)
		return error;
	oci_registrations_begin();
	error = oci_slots_guarantee(team);
	if (error)
		return error;
	hello->region_offset = oci_segment_alloc(oci_region_bytes(team->size));
	if (hello->region_offset < 0)
		return (int)hello->region_offset;
	team->region_offset = hello->region_offset;
	team->own = (struct oci_region *)((uint8_t *)oci_segment_base() + hello->region_offset);
	error = oci_os_random(&hello->tag, sizeof(hello->tag));
	if (!error)
		error = oci_os_node()->error;
	if (error)
		return error;
	/* Atomic: a late reader of what the region was before may look for the tag. */
	oci_store_relaxed(&team->own->progress.tag, hello->tag);
	team->own->progress.done = team->done;
	card_fill(team, &team->own->card);
	oci_near_offer(team->own);
	memcpy(hello->boot_id, oci_os_node()->boot_id, sizeof(hello->boot_id));
	hello->pid_namespace = oci_os_node()->pid_namespace;
	return 0;
}

int oci_hellos_judge(const struct oci_team *team, char *why, size_t n)
{
	const struct oci_hello *hellos = team->creation->hellos, *first = &hellos[0];
	uint32_t first_name = oci_team_name(team, 0);

	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_hello *h = &hellos[r];
		uint32_t name = oci_team_name(team, r);

		if (h->abi != first->abi) {
			snprintf(why, n,
				 "rank %u runs another version of onecopy than rank %u: "
				 "use one build for the whole job",
				 name, first_name);
			return -EPROTO;
		}
		if (h->error) {
			snprintf(why, n, "rank %u has no shared memory for onecopy: %s", name,
				 strerror(-h->error));
			return h->error;
		}
		if (memcmp(h->boot_id, first->boot_id, 16)) {
			snprintf(why, n, "rank %u is on another node than rank %u", name,
				 first_name);
			return -EXDEV;
		}
		if (h->pid_namespace != first->pid_namespace) {
			snprintf(why, n,
				 "rank %u is in another PID namespace than rank %u (a "
				 "container of its own): start all ranks of a node in one "
				 "container",
				 name, first_name);
			return -EXDEV;
		}
	}
	return 0;
}

bool oci_hello_declares(void)
{
	return constants.yama_scope == 1;
}

void oci_cards_count_cpus(struct oci_team *team)
{
	uint32_t ranks = team->size, node_ranks = 0, online = oci_card_of(team, 0)->cpus_online;
	uint64_t all[OCI_CPU_WORDS] = { 0 };
	bool bound = true;
	double cpus = 0, granted = 0, share;

	for (uint32_t r = 0; r < team->size; r++) {
		const struct oci_card *card = oci_card_of(team, r);

		for (unsigned int w = 0; w < OCI_CPU_WORDS; w++)
			all[w] |= card->cpus[w];
		bound &= card->place.cpus == 1 || card->place.core != OCI_TOPO_NOWHERE;
		if (card->node_ranks > node_ranks)
			node_ranks = card->node_ranks;
		if (card->cgroup_cpus > 0 && (granted == 0 || card->cgroup_cpus < granted))
			granted = card->cgroup_cpus;
	}
	for (unsigned int w = 0; w < OCI_CPU_WORDS; w++)
		cpus += __builtin_popcountll(all[w]);
	team->may_part = !bound && cpus > team->size;
	/* Of the node's ranks outside of the team, those compete that fall on our CPUs: all when
	 * the ranks are not bound, none when each is bound to its own. */
	share = online ? node_ranks * cpus / online : 0;
	if (share > ranks)
		ranks = (uint32_t)share;
	if (granted > 0 && granted < cpus)
		cpus = granted;
	team->oversubscribed = cpus > 0 && ranks > cpus;
	if (team->oversubscribed)
		oci_wait_crowd();
}
