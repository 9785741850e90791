/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "api/helper.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "base/shelf.h"
#include "copy/invite.h"
#include "copy/kmod.h"
#include "copy/map.h"
#include "copy/vm.h"
#include "os/object.h"
#include "os/os.h"

struct oci_engine oci_engine = { .lock = PTHREAD_MUTEX_INITIALIZER, .last = &oci_engine.first };

static struct oci_forced forced_by_environment[OC_COLLECTIVES];

/* The algorithms of the environment, once; a wrong one is named once and ignored. */
static void parse_environment(void)
{
	const char *const *words = oci_options()->algorithm;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		const char *expected = "";
		char variable[64] = "ONECOPY_";

		if (!oci_forced_parse(c, words[c], &forced_by_environment[c], &expected))
			continue;
		for (const char *s = oci_collective_name(c); *s; s++)
			strncat(variable, &(char){ (char)toupper(*s) }, 1);
		oci_option_reject(variable, words[c], expected);
	}
}

/* Can an algorithm that was forced serve no call at all with so many ranks? Then says why. */
static bool is_unfit(enum oc_collective collective, const struct oci_forced *forced, uint32_t size,
		     char *why, size_t n)
{
	struct oci_shape shape = { .collective = collective, .unit = 1, .size = size };
	const struct oci_algorithm *a;

	if (!forced->forced || forced->choice.algorithm == OCI_CHOICE_MPI)
		return false;
	a = oci_algorithm(collective, forced->choice.algorithm);
	if (!a->needs || a->fits(&shape, forced->choice.parameter))
		return false;
	snprintf(why, n, "%s cannot be %s:%u on a team of %u: it needs %s",
		 oci_collective_name(collective), a->name, forced->choice.parameter, size,
		 a->needs);
	return true;
}

/* One line a process and collective is enough, however many communicators it has. */
static void warn_of_unfit(const struct oc_team *team)
{
	static bool warned[OC_COLLECTIVES];
	char why[256];

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++)
		if (is_unfit(c, &forced_by_environment[c], team->team.size, why, sizeof(why)) &&
		    !__atomic_exchange_n(&warned[c], true, __ATOMIC_RELAXED))
			oci_log(oci_option_warning_level(), "%s; the automatic choice is used",
				why);
}

const struct oci_forced *oci_forced_by_environment(enum oc_collective collective)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, parse_environment);
	return &forced_by_environment[collective];
}

/* In a child of fork(2): teams, requests and memory are the parent's; a new team starts afresh. */
static void fork_child(void)
{
	pthread_mutex_init(&oci_engine.lock, NULL);
	oci_engine.teams = NULL;
	oci_engine.first = oci_engine.spare[0] = oci_engine.spare[1] = NULL;
	oci_engine.messaging = NULL;
	oci_engine.inside = false;
	oci_engine.last = &oci_engine.first;
	oci_engine.pending = 0;
	oci_helper_fork_child();
	oci_stats_fork_child();
	oci_shelf_fork_child();
	oci_memory_fork_child();
	oci_invite_fork_child();
	oci_team_fork_child();
}

/* What choices go by, and its hash: the process's. */
static const struct oci_model *model;
static uint64_t model_hash;

static void add_handler(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

void oci_engine_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, add_handler);
}

void oc_serve_messages(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	/* Mappings are of the teams' kind. */
	oci_engine_watch_forks();
	pthread_once(&once, oci_vm_serve);
}

int oc_share_messages(const char *library, uint32_t node_ranks)
{
	oci_engine_watch_forks();
	return oci_vm_share(library, node_ranks);
}

void oc_share_turn(void)
{
	if (oci_invite_turn())
		oci_invite_help();
}

int oc_bind(const char *library, const char *name, void (*ours)(void))
{
	return oci_object_bind_in(library, name, (void *)ours);
}

static void prepare_process(void)
{
	model = oci_coll_model();
	model_hash = oci_model_hash(model);
	if (model->dma_min.given)
		oci_kmod_engines_above((size_t)model->dma_min.value);
	oci_forced_by_environment(OC_BARRIER);
	oci_engine_hook = oci_engine_drive;
	oci_engine_watch_forks();
}

int oc_team_create(struct oc_team **created, const struct oc_bootstrap *bootstrap)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct oc_team *team = calloc(1, sizeof(*team));
	int error = team ? 0 : -ENOMEM;

	pthread_once(&once, prepare_process);
	oci_map_publish();
	if (!error)
		error = oci_team_init(&team->team, bootstrap, oci_copy_probe);
	if (error) {
		if (bootstrap && bootstrap->release)
			bootstrap->release(bootstrap->context);
		free(team);
		return error;
	}
	memcpy(team->forced, forced_by_environment, sizeof(team->forced));
	team->message_last = &team->message;
	team->model = model;
	team->team.model_hash = model_hash;
	team->team.prefers_kmod = oci_model_prefers_kmod(model, team->team.size);
	warn_of_unfit(team);
	oci_engine_lock();
	team->next = oci_engine.teams;
	team->link = &oci_engine.teams;
	if (team->next)
		team->next->link = &team->next;
	oci_engine.teams = team;
	oci_engine_unlock();
	*created = team;
	return 0;
}

int oc_team_progress(struct oc_team *team)
{
	int result;

	oci_engine_lock();
	result = oci_team_step(&team->team);
	oci_engine_unlock();
	return result;
}

static void team_release(struct oci_team *left)
{
	struct oc_team *team = (struct oc_team *)left;

	if (team->p2p)
		oci_p2p_destroy(team->p2p);
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++)
		free(team->recent[c]);
	free(team);
}

int oc_team_destroy(struct oc_team *team)
{
	enum oci_team_state state;
	bool last;

	oci_engine_lock();
	state = team->team.state;
	/* Under creation the others wait for our hello, or our card. */
	if (team->outstanding || (state > OCI_TEAM_START && state < OCI_TEAM_READY)) {
		oci_engine_unlock();
		return -EBUSY;
	}
	oci_messaging_remove(team);
	*team->link = team->next;
	if (team->next)
		team->next->link = team->link;
	oci_counts_merge(&team->counts);
	last = !oci_engine.teams;
	oci_engine_unlock();
	if (last)
		oci_helper_stop();
	oci_recent_forget(team);
	oci_cache_clear(&team->cache);
	oci_team_leave(&team->team, team_release);
	return 0;
}

uint32_t oc_team_rank(const struct oc_team *team)
{
	return team->team.rank;
}

uint32_t oc_team_size(const struct oc_team *team)
{
	return team->team.size;
}

const char *oc_team_error(const struct oc_team *team)
{
	return team->team.sentence;
}

int oc_team_dead_rank(const struct oc_team *team)
{
	return team->team.dead_rank;
}

void oc_team_serve_all(struct oc_team *team)
{
	team->serves_all = true;
}

int oc_team_force(struct oc_team *team, const char *collective, const char *algorithm)
{
	const char *expected = "";
	char valid[256] = "", why[256];
	struct oci_forced forced;
	int error;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		snprintf(valid + strlen(valid), sizeof(valid) - strlen(valid), "%s%s",
			 c ? ", " : "", oci_collective_name(c));
		if (strcmp(oci_collective_name(c), collective))
			continue;
		error = oci_forced_parse(c, algorithm, &forced, &expected);
		if (error)
			return oci_team_say(&team->team, error,
					    "%s has no algorithm '%s'; valid are: %s", collective,
					    algorithm, expected);
		if (is_unfit(c, &forced, team->team.size, why, sizeof(why)))
			return oci_team_say(&team->team, -EINVAL, "%s", why);
		oci_engine_lock();
		oci_recent_forget(team);
		team->forced[c] = forced;
		oci_engine_unlock();
		return 0;
	}
	return oci_team_say(&team->team, -EINVAL, "there is no collective '%s'; valid are: %s",
			    collective, valid);
}

void oc_set_threads(int many)
{
	/* The helper comes beside whatever the program's threads do. */
	oci_engine.alone = !many && !__atomic_load_n(&oci_helper_runs, __ATOMIC_RELAXED);
}

void oc_set_progress(int (*progress)(void))
{
	__atomic_store_n(&oci_progress_hook, progress, __ATOMIC_RELEASE);
}

int oc_peer_ended(void)
{
	/* Who was only read from has no team with this process. */
	oci_invite_forget_dead();
	return oci_peers_any_dead();
}

uint64_t oc_node(void)
{
	uint64_t hash = oci_hash(OCI_HASH_START, OC_VERSION, sizeof(OC_VERSION));
	uint8_t boot_id[16];
	char host[256] = "";

	if (oci_os_boot_id(boot_id) || gethostname(host, sizeof(host) - 1))
		return 0;
	hash = oci_hash(hash, boot_id, sizeof(boot_id));
	/* Both MPIs tell nodes by their names; containers of one machine may be several. */
	hash = oci_hash(hash, host, strlen(host) + 1);
	return hash ? hash : 1;
}

const char *oc_version(void)
{
	return OC_VERSION;
}
