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

OCI_TLS struct oci_comm_cache oci_comm_cache[OCI_CACHE_SLOTS];
uint32_t oci_comm_generation = 1; /* the empty cache's is 0 */

static int key = MPI_KEYVAL_INVALID;

static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER;	 /* of both lists; nothing is called with it */
static LIST_HEAD(, oci_pmpi_comm) alive; /* for MPI_Finalize */
static struct oci_pmpi_comm *freed;	 /* changed with the lock, looked at without */

static void list_add(struct oci_pmpi_comm *state)
{
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&alive, state, alive);
	pthread_mutex_unlock(&lock);
}

static void list_remove(struct oci_pmpi_comm *state)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(state, alive);
	pthread_mutex_unlock(&lock);
}

static void push_freed(struct oci_pmpi_comm *state)
{
	pthread_mutex_lock(&lock);
	state->next = freed;
	__atomic_store_n(&freed, state, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/*
 * MPICH may free a communicator without a call of ours: the copy that a window or a file has, or
 * one that was pending. A delete function of the program's that calls a collective on it has an
 * object made whose attribute MPICH, which is deleting them, forgets. The handle may come back.
 */
void oci_pmpi_comm_look_anew(void)
{
	/* Release: who sees the new generation does not use the old object. */
	__atomic_fetch_add(&oci_comm_generation, 1, __ATOMIC_RELEASE);
}

static int comm_gone(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct oci_pmpi_comm *state = value;

	(void)keyval;
	(void)extra;
	oci_pmpi_failure_comm_gone(comm);
	list_remove(state);
	state->mpi.comm = MPI_COMM_NULL;
	oci_pmpi_comm_look_anew();
	oci_pmpi_attend(1);
	push_freed(state);
	return MPI_SUCCESS;
}

/*
 * Objects for a process that has no memory for another one: a communicator whose members disagree
 * on whether it has a team would be worse than one that is refused by all.
 */
#define RESERVED 16
static struct oci_pmpi_comm reserve[RESERVED];
static bool reserved[RESERVED];

static struct oci_pmpi_comm *state_allocate(void)
{
	struct oci_pmpi_comm *state = calloc(1, sizeof(*state));

	pthread_mutex_lock(&lock);
	for (int i = 0; !state && i < RESERVED; i++) {
		if (reserved[i])
			continue;
		reserved[i] = true;
		state = &reserve[i];
		*state = (struct oci_pmpi_comm){ 0 };
	}
	pthread_mutex_unlock(&lock);
	return state;
}

static void state_free(struct oci_pmpi_comm *state)
{
	free(state->mpi.graph);
	if (state < reserve || state >= reserve + RESERVED) {
		free(state);
		return;
	}
	pthread_mutex_lock(&lock);
	reserved[state - reserve] = false;
	pthread_mutex_unlock(&lock);
}

/* False: its team has an operation outstanding. */
static bool destroy(struct oci_pmpi_comm *state)
{
	if (__atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE))
		return false;
	oci_mpi_levels_free(&state->mpi);
	if (state->mpi.team && oc_team_destroy(state->mpi.team) == -EBUSY)
		return false;
	state_free(state);
	oci_pmpi_attend(-1);
	return true;
}

void oci_pmpi_comm_reap(void)
{
	struct oci_pmpi_comm *state, *next;

	if (!__atomic_load_n(&freed, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	state = freed;
	__atomic_store_n(&freed, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	for (; state; state = next) {
		next = state->next;
		if (!destroy(state))
			push_freed(state);
	}
}

int oci_pmpi_comm_start(void)
{
	return PMPI(Comm_create_keyval)(MPI_COMM_NULL_COPY_FN, comm_gone, &key, NULL);
}

/* Whoever looks later finds no key: oci_pmpi_job.active is cleared before the MPI goes on. */
void oci_pmpi_comm_stop(void)
{
	MPI_Errhandler handler = oci_pmpi_hush(MPI_COMM_WORLD);
	struct oci_pmpi_comm *first;

	while ((first = LIST_FIRST(&alive))) {
		PMPI(Comm_delete_attr)(first->mpi.comm, key);
		/* Its communicator is gone, or the handle is another one's. */
		if (LIST_FIRST(&alive) == first)
			comm_gone(first->mpi.comm, key, first, NULL);
	}
	oci_pmpi_unhush(MPI_COMM_WORLD, handler);
	oci_pmpi_comm_reap();
	/* With the levels of others went communicators of their own. */
	oci_pmpi_comm_reap();
	PMPI(Comm_free_keyval)(&key);
}

struct members {
	bool here;   /* all are on this node and take part */
	bool levels; /* all take part, and may work in two levels */
};

/* In pieces, as a rank that has no memory must not see its members otherwise than its peers. */
static bool look_at(MPI_Group group, struct oci_pmpi_comm *state, struct members *members)
{
	enum { PIECE = 256 };
	const struct oci_pmpi_place *all = oci_pmpi_job.place, *me = &all[oci_pmpi_job.rank];
	int size = 0, own[PIECE], world[PIECE], count;

	PMPI(Group_size)(group, &size);
	for (int first = 0; first < size; first += count) {
		count = size - first < PIECE ? size - first : PIECE;
		for (int i = 0; i < count; i++)
			own[i] = first + i;
		if (PMPI(Group_translate_ranks)(group, count, own, oci_pmpi_job.group, world) !=
		    MPI_SUCCESS)
			return false;
		for (int i = 0; i < count; i++) {
			bool known = world[i] != MPI_UNDEFINED; /* else of another job */

			state->known = state->known && known;
			members->here = members->here && known && me->node &&
					all[world[i]].node == me->node;
			members->levels = members->levels && known && me->levels &&
					  all[world[i]].node && all[world[i]].levels == me->levels;
		}
	}
	return true;
}

static bool look_at_members(MPI_Comm of, struct oci_pmpi_comm *state, struct members *members)
{
	MPI_Group group;
	bool done;

	state->known = members->here = members->levels = true;
	if (PMPI(Comm_group)(of, &group) != MPI_SUCCESS)
		return false;
	done = look_at(group, state, members);
	PMPI(Group_free)(&group);
	if (!done || !state->inter)
		return done;
	if (PMPI(Comm_remote_group)(of, &group) != MPI_SUCCESS)
		return false;
	done = look_at(group, state, members);
	PMPI(Group_free)(&group);
	return done;
}

/* Decided from what all members see alike, of a communicator of the same ones. False: the MPI does
 * not tell. */
static bool evaluate(struct oci_pmpi_comm *state, MPI_Comm of)
{
	int inter = 0, rank = 0, size = 0;
	struct members members;

	PMPI(Comm_test_inter)(of, &inter);
	PMPI(Comm_rank)(of, &rank);
	PMPI(Comm_size)(of, &size);
	state->inter = inter;
	state->mpi.rank = (uint32_t)rank;
	state->mpi.size = (uint32_t)size;
	if (!look_at_members(of, state, &members))
		return false;
	if (inter)
		state->reason = "it is an intercommunicator";
	else if (size < 2)
		state->reason = "it has one process";
	else if (!state->known)
		state->reason = "it joins processes of several jobs";
	else if (!members.here)
		state->reason = "it spans nodes, or onecopy is switched off or of another version "
				"in one of its processes";
	state->mpi.spans = !inter && size > 1 && !members.here && members.levels;
	return true;
}

/* Another thread may have made one meanwhile, which stays, as it may be in use. By MPI's rules none
 * may: only collective calls come here, one at a time on a communicator. But programs do so on
 * those of one process. NULL: no memory. */
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

/* `of`: itself, or what it is a duplicate of. */
static struct oci_pmpi_comm *create(MPI_Comm comm, MPI_Comm of)
{
	struct oci_pmpi_comm *state = state_allocate(), *kept;

	if (!state)
		return NULL;
	state->mpi.comm = comm;
	if (!evaluate(state, of)) {
		state_free(state);
		return NULL;
	}
	kept = keep(comm, state);
	if (kept != state) {
		state_free(state);
		return kept;
	}
	if (state->reason && !state->mpi.spans) {
		char name[MPI_MAX_OBJECT_NAME] = "";
		int length;

		PMPI(Comm_get_name)(comm, name, &length);
		oci_info("communicator %s stays with the MPI: %s", name, state->reason);
	}
	return state;
}

/*
 * A communicator that this thread is freeing. Delete functions of its attributes may still call
 * collectives on it, which are the MPI's: whether our attribute has gone before theirs depends upon
 * what each rank has called. One of them may free another communicator.
 */
struct dying {
	MPI_Comm comm;
	const struct dying *outer;
};
static OCI_TLS const struct dying *dying;

static bool is_dying(MPI_Comm comm)
{
	const struct dying *d = dying;

	while (d && d->comm != comm)
		d = d->outer;
	return d;
}

struct oci_pmpi_comm *oci_pmpi_comm_find(MPI_Comm comm)
{
	struct oci_pmpi_comm *state;
	struct oci_comm_cache *c;
	uint32_t generation = __atomic_load_n(&oci_comm_generation, __ATOMIC_ACQUIRE);
	uintptr_t handle = (uintptr_t)comm;
	int found = 0;

	if (!oci_pmpi_job.active || comm == MPI_COMM_NULL || is_dying(comm) ||
	    PMPI(Comm_get_attr)(comm, key, &state, &found) != MPI_SUCCESS)
		return NULL;
	if (!found)
		state = create(comm, comm);
	if (!state)
		return NULL;
	c = &oci_comm_cache[(handle ^ handle >> 26) % OCI_CACHE_SLOTS];
	*c = (struct oci_comm_cache){ .comm = comm, .generation = generation, .state = state };
	return state;
}

struct oci_pmpi_comm *oci_pmpi_comm_duplicate(MPI_Comm comm, MPI_Comm of)
{
	return oci_pmpi_job.active ? create(comm, of) : NULL;
}

static void begin_dying(struct dying *d, const MPI_Comm *comm)
{
	*d = (struct dying){ .comm = comm ? *comm : MPI_COMM_NULL, .outer = dying };
	dying = d;
	/* No cache finds it. */
	oci_pmpi_comm_look_anew();
}

static int has_died(const struct dying *d, int error)
{
	dying = d->outer;
	oci_pmpi_comm_reap();
	return error;
}

int oci_pmpi_Comm_free(MPI_Comm *comm)
{
	struct dying d;

	begin_dying(&d, comm);
	return has_died(&d, PMPI(Comm_free)(comm));
}

/* It waits until all that is outstanding on the communicator is over, ours too. */
int oci_pmpi_Comm_disconnect(MPI_Comm *comm)
{
	struct oci_pmpi_comm *state = comm ? oci_pmpi_comm_get(*comm) : NULL;
	struct dying d;
	uint32_t turns = 0;

	while (state && __atomic_load_n(&state->outstanding, __ATOMIC_ACQUIRE)) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	begin_dying(&d, comm);
	return has_died(&d, OCI_HELPED_CALLBACKS(PMPI(Comm_disconnect)(comm)));
}
