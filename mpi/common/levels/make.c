/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of a communicator, with what its members need for both levels: all agree on it. */
#include "common/levels/levels.h"

#define NO_TEAM "on one of the nodes the ranks could not form a team"
#define NO_MEMORY "a rank has no memory for it, or too many such communicators already"
#define ALONE "each rank is alone on its node"

/* Lanes of a process at a time: each takes two communicators of the MPI's. */
enum { MOST = OCI_PORT_PARTS / 2 };
static uint32_t alive; /* atomic */

/*
 * 1: all members said yes. The MPI may make its call of others on this communicator, as Open MPI
 * makes an MPI_Allreduce of many ranks of a Reduce and a Bcast: these are its own.
 */
static bool all_can(struct oci_mpi_comm *self, bool can)
{
	const long own[2] = { can, 0 };
	long least[2] = { 0, 0 };
	bool making = self->making, all;

	self->making = true;
	all = oci_port_least(self, own, least) == MPI_SUCCESS && least[0];
	self->making = making;
	return all;
}

/* ---- a lane -----------------------------------------------------------------------------------
 */

void oci_levels_lane_free(struct oci_mpi_lane *lane)
{
	if (!lane)
		return;
	if (lane->peers != MPI_COMM_NULL)
		oci_port_free(&lane->peers);
	if (lane->node_comm != MPI_COMM_NULL)
		oci_port_free(&lane->node_comm);
	free(lane->of_leaders.bytes);
	free(lane->of_all.bytes);
	free(lane->counts);
	free(lane->lengths);
	free(lane->places);
	free(lane->messages);
	free(lane);
	__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
}

/* NULL: no memory, or too many of them. */
static struct oci_mpi_lane *lane_allocate(uint32_t size)
{
	struct oci_mpi_lane *lane = calloc(1, sizeof(*lane));
	bool slot;

	if (!lane)
		return NULL;
	slot = __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED) < MOST;
	lane->node_comm = lane->peers = MPI_COMM_NULL;
	lane->counts = calloc(size, 2 * sizeof(lane->counts[0]));
	lane->lengths = calloc(size, sizeof(lane->lengths[0]));
	lane->places = calloc(size, sizeof(lane->places[0]));
	lane->messages = calloc(size + 1, sizeof(lane->messages[0]));
	if (!slot || !lane->counts || !lane->lengths || !lane->places || !lane->messages) {
		oci_levels_lane_free(lane);
		return NULL;
	}
	lane->displs = lane->counts + size;
	return lane;
}

/* Of the nodes that have a team the first one speaks for all, when the communicator gets its own.
 */
static bool is_quiet(const struct oci_mpi_levels *l, const struct oci_mpi_lane *lane)
{
	uint32_t speaks = 0;

	while (l->node_of[speaks].ranks == 1)
		speaks++;
	return lane != l->lane || l->mine != speaks;
}

static bool is_leader(const struct oci_mpi_comm *self, const struct oci_mpi_levels *l)
{
	return !l->local[self->rank];
}

/* Both communicators, whatever becomes of the first, as the others are in it; and the node's team,
 * once all can make theirs. */
static bool divide(struct oci_mpi_comm *self, struct oci_mpi_levels *l, struct oci_mpi_lane *lane)
{
	const struct node *mine = &l->node_of[l->mine];
	bool alone = mine->ranks == 1;
	int of_node = oci_port_part(self, l->order + mine->start, alone ? 0 : mine->ranks,
				    &lane->node_comm);
	int of_peers = oci_port_part(self, l->peers, l->even || is_leader(self, l) ? l->nodes : 0,
				     &lane->peers);
	bool able = of_node == MPI_SUCCESS && of_peers == MPI_SUCCESS;

	if (able && !alone) {
		lane->node = oci_port_comm(lane->node_comm);
		able = lane->node && !lane->node->spans;
	}
	if (!all_can(self, able))
		return false;
	if (alone)
		return true;
	memcpy(lane->node->forced, self->forced, sizeof(self->forced));
	lane->node->names = l->order + mine->start;
	lane->node->quiet = is_quiet(l, lane);
	if (!oci_mpi_team(lane->node))
		return false;
	/* Parts are not what was left to the MPI, and on a node the leader's side of some is bytes,
	 * the others' the program's types: what teams take as one, not every algorithm of MPIs. */
	oc_team_serve_all(lane->node->team);
	return true;
}

/* NULL: refused, on all members alike. `able`: this rank is ready for it. */
struct oci_mpi_lane *oci_levels_lane(struct oci_mpi_comm *self, struct oci_mpi_levels *l, bool able)
{
	struct oci_mpi_lane *lane = able ? lane_allocate(self->size) : NULL;
	bool making = self->making;

	self->making = true;
	if (!all_can(self, lane) || !all_can(self, divide(self, l, lane))) {
		oci_levels_lane_free(lane);
		lane = NULL;
	}
	self->making = making;
	/* Taken also where it is refused: all count alike. */
	l->tags++;
	if (lane)
		lane->tag = 2 * (int)l->tags;
	return lane;
}

/* ---- the nodes --------------------------------------------------------------------------------
 */

/* As few nodes come often, each is looked for from the last one found on. */
static uint32_t number_of(struct oci_mpi_levels *l, uint64_t id, uint32_t last)
{
	for (uint32_t i = 0; i < l->nodes; i++) {
		uint32_t n = (last + i) % l->nodes;

		if (l->node_of[n].id == id)
			return n;
	}
	l->node_of[l->nodes] = (struct node){ .id = id };
	return l->nodes++;
}

/* In the order of their leaders. */
static void survey(struct oci_mpi_comm *self, struct oci_mpi_levels *l)
{
	uint32_t n = 0;

	l->in_order = true;
	for (uint32_t r = 0; r < self->size; r++) {
		struct node *node;

		n = number_of(l, oci_port_node(self, r), n);
		node = &l->node_of[n];
		if (node->ranks && l->place[r - 1] != n)
			l->in_order = false;
		l->place[r] = n;
		l->local[r] = node->ranks++;
		if (node->ranks > l->most)
			l->most = node->ranks;
	}
	l->mine = l->place[self->rank];
	for (uint32_t i = 1; i < l->nodes; i++)
		l->node_of[i].start = l->node_of[i - 1].start + l->node_of[i - 1].ranks;
	for (uint32_t r = 0; r < self->size; r++)
		l->order[l->node_of[l->place[r]].start + l->local[r]] = r;
	l->even = (uint64_t)l->most * l->nodes == self->size;
	for (uint32_t i = 0; i < l->nodes; i++)
		l->peers[i] = l->order[l->node_of[i].start + (l->even ? l->local[self->rank] : 0)];
}

static void levels_free(struct oci_mpi_levels *l)
{
	if (l->all != MPI_COMM_NULL)
		oci_port_free(&l->all);
	oci_levels_lane_free(l->lane);
	for (int i = 0; i < LANES; i++)
		oci_levels_lane_free(l->lanes[i]);
	free(l->place);
	free(l);
}

static struct oci_mpi_levels *levels_allocate(uint32_t size)
{
	struct oci_mpi_levels *l = calloc(1, sizeof(*l) + size * sizeof(l->node_of[0]));

	if (!l)
		return NULL;
	l->all = MPI_COMM_NULL;
	l->lane = lane_allocate(size);
	l->place = calloc(size, 4 * sizeof(l->place[0]));
	if (!l->lane || !l->place) {
		levels_free(l);
		return NULL;
	}
	l->local = l->place + size;
	l->order = l->local + size;
	l->peers = l->order + size;
	return l;
}

/* NULL: refused, on all members alike; the reason. */
static struct oci_mpi_levels *levels_make(struct oci_mpi_comm *self, const char **why)
{
	struct oci_mpi_levels *l = levels_allocate(self->size);

	*why = NO_MEMORY;
	if (all_can(self, l)) {
		survey(self, l);
		*why = l->most > 1 ? NO_TEAM : ALONE;
		if (l->nodes > 1 && l->most > 1 && all_can(self, divide(self, l, l->lane)))
			return l;
	}
	if (l)
		levels_free(l);
	oci_info("collectives of a communicator that spans nodes stay with the MPI: %s", *why);
	return NULL;
}

/* While they are made, the MPI's functions may call collectives of the communicator, alike on all
 * members; these are its own. */
struct oci_mpi_levels *oci_levels_of(struct oci_mpi_comm *self)
{
	if (OCI_LIKELY(self->levels || self->refused))
		return self->levels;
	self->making = true;
	self->levels = levels_make(self, &self->why);
	self->making = false;
	self->refused = !self->levels;
	return self->levels;
}

void oci_mpi_levels_free(struct oci_mpi_comm *self)
{
	if (self->levels)
		levels_free(self->levels);
	self->levels = NULL;
}

void oci_mpi_levels_force(struct oci_mpi_comm *self, int collective)
{
	if (!self->levels)
		return;
	/* Those of calls under way begin at other times on each rank. */
	self->levels->reworded |= self->levels->lanes[0] != NULL;
	if (self->levels->lane->node)
		oci_mpi_force(self->levels->lane->node, collective, self->forced[collective]);
}

/* ---- made when first needed -------------------------------------------------------------------
 */

/* Doubled, so that it is seldom too little; large ones are as large as asked for. */
enum { LEAST_ROOM = 64 << 10, DOUBLED_ROOM = 64 << 20 };

/* More room is had by all or by none. `holder`: this rank is one of those that have it. */
static bool make_scratch(struct oci_mpi_comm *self, struct scratch *scratch, size_t bytes,
			 bool holder)
{
	size_t room = scratch->room ? scratch->room : LEAST_ROOM;
	char *more = NULL;

	if (OCI_LIKELY(bytes <= scratch->room))
		return true;
	if (bytes > SIZE_MAX / 4 || (scratch->refused && bytes >= scratch->refused))
		return false;
	while (room < bytes && room < DOUBLED_ROOM)
		room *= 2;
	if (room < bytes)
		room = bytes;
	if (holder)
		more = malloc(room);
	if (!all_can(self, !holder || more)) {
		scratch->refused = bytes;
		free(more);
		return false;
	}
	free(scratch->bytes);
	scratch->bytes = more;
	scratch->room = room;
	return true;
}

bool oci_levels_room(struct oci_mpi_comm *self, struct oci_mpi_lane *lane, struct need need)
{
	return make_scratch(self, &lane->of_leaders, need.of_leaders,
			    is_leader(self, self->levels)) &&
	       make_scratch(self, &lane->of_all, need.of_all, true);
}

bool oci_levels_messages(struct oci_mpi_comm *self)
{
	struct oci_mpi_levels *l = self->levels;

	if (OCI_LIKELY(l->all != MPI_COMM_NULL || l->all_refused))
		return !l->all_refused;
	self->making = true;
	l->all_refused = !all_can(self, oci_port_part(self, NULL, 0, &l->all) == MPI_SUCCESS);
	self->making = false;
	return !l->all_refused;
}

/* ---- for nonblocking calls --------------------------------------------------------------------
 */

/* From the beginning, so that few calls lack it; memory that is not used is none. */
enum { LANE_ROOM = 1 << 20 };

/* What was begun on it before is over on this rank. All members have begun it, and are here or will
 * be, so it ends. */
static void await_idle(struct oci_mpi_comm *self, struct oci_mpi_lane *lane)
{
	uint32_t turns = 0;

	/* Acquire: pairs with the release in oci_mpi_levels_step(), behind the lane's last use. */
	while (__atomic_load_n(&lane->turn, __ATOMIC_ACQUIRE) != lane->tickets)
		oci_port_turn(self, &turns);
}

void oci_levels_make_lanes(struct oci_mpi_comm *self)
{
	struct oci_mpi_levels *l = oci_levels_of(self);

	self->wants_lanes = false;
	if (!l)
		return;
	if (l->wanted_of_leaders < LANE_ROOM)
		l->wanted_of_leaders = LANE_ROOM;
	oci_levels_messages(self);
	for (int i = 0; i < LANES && !l->lanes_refused; i++) {
		struct oci_mpi_lane *lane = l->lanes[i];

		if (!lane)
			lane = l->lanes[i] = oci_levels_lane(self, l, true);
		l->lanes_refused = !lane;
		if (!lane)
			break;
		await_idle(self, lane);
		make_scratch(self, &lane->of_leaders, l->wanted_of_leaders, is_leader(self, l));
		make_scratch(self, &lane->of_all, l->wanted_of_all, true);
	}
}
