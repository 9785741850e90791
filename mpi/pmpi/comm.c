/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One object per communicator, kept as its attribute. MPI_Comm_dup does not copy the attribute, so
 * a duplicate gets an object of its own.
 *
 * A handle that was freed comes back as another communicator. The attribute dies with its
 * communicator, so it is always right; the cache in front of it, one per thread, is good for one
 * generation, and each death of a communicator begins a new one.
 *
 * MPICH calls the attribute's delete function when the last operation on the communicator is over,
 * from inside its progress, which may itself run inside the engine. So the function only puts the
 * object on a list; oci_pmpi_comm_reap() destroys the team from our own functions.
 */
#include "pmpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

OCI_TLS struct oci_comm_cache oci_comm_cache[OCI_CACHE_SLOTS];
uint32_t oci_comm_generation = 1; /* the empty cache's is 0 */

static int key = MPI_KEYVAL_INVALID;

/* Pushed by any thread, emptied by reap. */
static struct oci_pmpi_comm *freed;
/* Of reap alone, with the lock: operations are still outstanding on these teams. */
static struct oci_pmpi_comm *busy;
static pthread_mutex_t reap_lock = PTHREAD_MUTEX_INITIALIZER;

/* All that are alive, for MPI_Finalize. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct oci_pmpi_comm *list;

static void list_add(struct oci_pmpi_comm *state)
{
	pthread_mutex_lock(&list_lock);
	state->alive_next = list;
	state->alive_link = &list;
	if (list)
		list->alive_link = &state->alive_next;
	list = state;
	pthread_mutex_unlock(&list_lock);
}

static void list_remove(struct oci_pmpi_comm *state)
{
	pthread_mutex_lock(&list_lock);
	*state->alive_link = state->alive_next;
	if (state->alive_next)
		state->alive_next->alive_link = state->alive_link;
	pthread_mutex_unlock(&list_lock);
}

static int comm_gone(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct oci_pmpi_comm *state = value;

	(void)keyval;
	(void)extra;
	oci_pmpi_failure_comm_gone(comm);
	list_remove(state);
	state->comm = MPI_COMM_NULL;
	/* Release: who sees the new generation does not use the old object. */
	__atomic_fetch_add(&oci_comm_generation, 1, __ATOMIC_RELEASE);
	oci_pmpi_attend(1);
	state->next = __atomic_load_n(&freed, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&freed, &state->next, state, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return MPI_SUCCESS;
}

static void state_free(struct oci_pmpi_comm *state);

/* False: its team has an operation outstanding. */
static bool destroy(struct oci_pmpi_comm *state)
{
	if (__atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE) ||
	    (state->team && oc_team_destroy(state->team) == -EBUSY))
		return false;
	state_free(state);
	oci_pmpi_attend(-1);
	return true;
}

void oci_pmpi_comm_reap(void)
{
	struct oci_pmpi_comm *state, *next;

	if (!__atomic_load_n(&freed, __ATOMIC_RELAXED) && !__atomic_load_n(&busy, __ATOMIC_RELAXED))
		return;
	if (pthread_mutex_trylock(&reap_lock))
		return;
	state = busy;
	__atomic_store_n(&busy, NULL, __ATOMIC_RELAXED);
	for (int turn = 0; turn < 2; turn++) {
		for (; state; state = next) {
			next = state->next;
			if (destroy(state))
				continue;
			state->next = busy;
			__atomic_store_n(&busy, state, __ATOMIC_RELAXED);
		}
		/* Acquire: pairs with the release of the pushes. */
		state = __atomic_exchange_n(&freed, NULL, __ATOMIC_ACQUIRE);
	}
	for (; state; state = next) {
		next = state->next;
		state->next = busy;
		__atomic_store_n(&busy, state, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&reap_lock);
}

/* Of MPI_COMM_WORLD's size. The lock is not list_lock, which is taken inside the MPI too. */
static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
static int *reserve_ranks;

int oci_pmpi_comm_start(void)
{
	reserve_ranks = malloc((size_t)oci_pmpi_job.size * sizeof(*reserve_ranks));
	if (!reserve_ranks)
		return MPI_ERR_NO_MEM;
	return PMPI(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, comm_gone, &key, NULL);
}

/* Whoever looks later finds no key: oci_pmpi_job.active is cleared before the MPI goes on. */
void oci_pmpi_comm_stop(void)
{
	while (list) {
		struct oci_pmpi_comm *state = list;

		if (PMPI(Comm_delete_attr)(state->comm, key) != MPI_SUCCESS)
			break;
	}
	oci_pmpi_comm_reap();
	PMPI(Comm_free_keyval)(&key);
	free(reserve_ranks);
	reserve_ranks = NULL;
}

bool oci_pmpi_world_ranks(MPI_Group group, int size, int *ranks)
{
	int *own = NULL, error;

	if (size > oci_pmpi_job.size) { /* a group with processes of other jobs */
		own = malloc((size_t)size * sizeof(*own));
		if (!own)
			return false;
		for (int r = 0; r < size; r++)
			own[r] = r;
	}
	error = PMPI(Group_translate_ranks)(group, size, own ? own : oci_pmpi_job.ascending,
					    oci_pmpi_job.group, ranks);
	free(own);
	return error == MPI_SUCCESS;
}

/*
 * Objects and memory for a process that has no other: a communicator whose members disagree on
 * whether it has a team would be worse than one that is refused by all.
 */
#define RESERVED 16
static struct oci_pmpi_comm reserve[RESERVED];
static bool reserved[RESERVED];

static struct oci_pmpi_comm *state_allocate(void)
{
	struct oci_pmpi_comm *state = calloc(1, sizeof(*state));

	pthread_mutex_lock(&list_lock);
	for (int i = 0; !state && i < RESERVED; i++) {
		if (reserved[i])
			continue;
		reserved[i] = true;
		state = &reserve[i];
		*state = (struct oci_pmpi_comm){ 0 };
	}
	pthread_mutex_unlock(&list_lock);
	return state;
}

static void state_free(struct oci_pmpi_comm *state)
{
	if (state < reserve || state >= reserve + RESERVED) {
		free(state);
		return;
	}
	pthread_mutex_lock(&list_lock);
	reserved[state - reserve] = false;
	pthread_mutex_unlock(&list_lock);
}

struct members {
	bool known, here;
};

static bool look_through(MPI_Group group, int size, int *ranks, struct members *members)
{
	if (!oci_pmpi_world_ranks(group, size, ranks))
		return false;
	for (int r = 0; r < size; r++) {
		if (ranks[r] == MPI_UNDEFINED)
			members->known = members->here = false;
		else if (!oci_pmpi_job.here[ranks[r]])
			members->here = false;
	}
	return true;
}

static bool look_at(MPI_Group group, struct members *members)
{
	int size = 0, *ranks;
	bool done = false;

	PMPI(Group_size)(group, &size);
	ranks = malloc((size_t)size * sizeof(*ranks));
	if (ranks) {
		done = look_through(group, size, ranks, members);
	} else if (size <= oci_pmpi_job.size) {
		pthread_mutex_lock(&reserve_lock);
		done = look_through(group, size, reserve_ranks, members);
		pthread_mutex_unlock(&reserve_lock);
	}
	free(ranks);
	return done;
}

static bool members_of(const struct oci_pmpi_comm *state, struct members *members)
{
	MPI_Group group;
	bool done;

	*members = (struct members){ .known = true, .here = true };
	if (PMPI(Comm_group)(state->comm, &group) != MPI_SUCCESS)
		return false;
	done = look_at(group, members);
	PMPI(Group_free)(&group);
	if (!done || !state->inter)
		return done;
	if (PMPI(Comm_remote_group)(state->comm, &group) != MPI_SUCCESS)
		return false;
	done = look_at(group, members);
	PMPI(Group_free)(&group);
	return done;
}

/* Decided from what all members see alike. False: no memory to look. */
static bool evaluate(struct oci_pmpi_comm *state)
{
	struct members members;
	int inter = 0, rank = 0, size = 0;

	PMPI(Comm_test_inter)(state->comm, &inter);
	PMPI(Comm_rank)(state->comm, &rank);
	PMPI(Comm_size)(state->comm, &size);
	state->inter = inter;
	state->rank = (uint32_t)rank;
	state->size = (uint32_t)size;
	if (!members_of(state, &members))
		return false;
	state->known = members.known;
	if (inter)
		state->reason = "it is an intercommunicator";
	else if (size < 2)
		state->reason = "it has one process";
	else if (!members.known)
		state->reason = "it joins processes of several jobs";
	else if (!members.here)
		state->reason = "it spans nodes, or onecopy is switched off or of another version "
				"in one of its processes";
	return true;
}

/* Another thread may have made one meanwhile, which stays, as it may be in use. NULL: no memory. */
static struct oci_pmpi_comm *keep(MPI_Comm comm, struct oci_pmpi_comm *state)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct oci_pmpi_comm *other = NULL;
	int found = 0;

	pthread_mutex_lock(&lock);
	if (PMPI(Comm_get_attr)(comm, key, &other, &found) == MPI_SUCCESS && found) {
		state = other;
	} else {
		list_add(state);
		if (PMPI(Comm_set_attr)(comm, key, state) != MPI_SUCCESS) {
			list_remove(state);
			state = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	return state;
}

static struct oci_pmpi_comm *create(MPI_Comm comm)
{
	struct oci_pmpi_comm *state = state_allocate(), *kept;

	if (!state)
		return NULL;
	state->comm = comm;
	if (!evaluate(state)) {
		state_free(state);
		return NULL;
	}
	kept = keep(comm, state);
	if (kept != state) {
		state_free(state);
		return kept;
	}
	if (state->reason) {
		char name[MPI_MAX_OBJECT_NAME] = "";
		int length;

		PMPI(Comm_get_name)(comm, name, &length);
		oci_mpi_info("communicator %s stays with the MPI: %s", name, state->reason);
	}
	return state;
}

struct oci_pmpi_comm *oci_pmpi_comm_find(MPI_Comm comm)
{
	struct oci_pmpi_comm *state;
	struct oci_comm_cache *c;
	uint32_t generation = __atomic_load_n(&oci_comm_generation, __ATOMIC_ACQUIRE);
	uintptr_t handle = (uintptr_t)comm;
	int found = 0;

	if (!oci_pmpi_job.active || comm == MPI_COMM_NULL ||
	    PMPI(Comm_get_attr)(comm, key, &state, &found) != MPI_SUCCESS)
		return NULL;
	if (!found)
		state = create(comm);
	if (!state)
		return NULL;
	c = &oci_comm_cache[(handle ^ handle >> 26) % OCI_CACHE_SLOTS];
	*c = (struct oci_comm_cache){ .comm = comm, .generation = generation, .state = state };
	return state;
}

struct oc_team *oci_pmpi_team(struct oci_pmpi_comm *state)
{
	if (OCI_LIKELY(state->team))
		return state->team;
	if (state->refused)
		return NULL;
	state->team = oci_pmpi_team_create(state);
	state->refused = !state->team;
	if (state->team)
		oci_pmpi_forced_apply(state);
	return state->team;
}

int oci_pmpi_Comm_free(MPI_Comm *comm)
{
	int error = PMPI(Comm_free)(comm);

	oci_pmpi_comm_reap();
	return error;
}

/* It waits until all that is outstanding on the communicator is over, ours too. */
int oci_pmpi_Comm_disconnect(MPI_Comm *comm)
{
	struct oci_pmpi_comm *state = comm ? oci_pmpi_comm_get(*comm) : NULL;
	uint32_t turns = 0;
	int error;

	while (state && __atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE)) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	error = OCI_HELPED(PMPI(Comm_disconnect)(comm));
	oci_pmpi_comm_reap();
	return error;
}
