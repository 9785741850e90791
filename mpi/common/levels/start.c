/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking and persistent calls in two levels. They go by the same steps as blocking ones, each
 * part of which is begun and looked for, by whoever looks at requests.
 *
 * All members have to begin the parts of several calls in one order, and each begins a part when it
 * sees the one before it over. So a call has a lane, where no other one is before it has ended on
 * this rank. Nonblocking ones take the communicator's lanes in turns, as all members count them
 * alike; a persistent one has its own, as members may start several in any order.
 *
 * Whether a call goes so is said when it is made, from what all members know, as nothing can be
 * agreed on then. So lanes, and memory between parts, are made by the next blocking call.
 */
#include "common/levels/levels.h"

#define EARLY "on several nodes: the communicator's next blocking collective makes what it needs"
#define NO_LANES "a rank has no memory or communicator for nonblocking calls on several nodes"
#define REWORDED "words of an info key came after the communicator's first nonblocking call"

/* Messages of a lane are told by two tags: so many any MPI has. Lanes beyond have no messages. */
enum { MOST_TAGS = 32767 / 2 };

/* They are made together, and have the same room but where a rank had no memory for more. */
static bool have_room(const struct oci_mpi_levels *l, struct need need)
{
	bool enough = l->lanes[0];

	for (int i = 0; enough && i < LANES; i++)
		enough = need.of_leaders <= l->lanes[i]->of_leaders.room &&
			 need.of_all <= l->lanes[i]->of_all.room;
	return enough;
}

/* Of a nonblocking call that is for ever, as their lanes are made once. */
static bool were_refused_room(const struct oci_mpi_levels *l)
{
	bool refused = false;

	for (int i = 0; l->lanes[0] && i < LANES; i++)
		refused |= l->lanes[i]->of_leaders.refused || l->lanes[i]->of_all.refused;
	return refused;
}

/* To be made by the next blocking call. */
static void want(struct oci_mpi_comm *self, struct need need)
{
	struct oci_mpi_levels *l = self->levels;

	self->wants_lanes = true;
	if (!l)
		return;
	if (l->wanted_of_leaders < need.of_leaders)
		l->wanted_of_leaders = need.of_leaders;
	if (l->wanted_of_all < need.of_all)
		l->wanted_of_all = need.of_all;
}

/* NULL: all members have what a nonblocking call needs. */
static const char *lack(struct plan *p)
{
	struct oci_mpi_comm *self = p->comm;
	const struct oci_mpi_levels *l = p->l = self->levels;
	const char *reason;
	struct need need = { 0 };

	if (self->refused)
		return self->why;
	if (!l) {
		want(self, need);
		return EARLY;
	}
	if (l->lanes_refused || l->reworded)
		return l->reworded ? REWORDED : NO_LANES;
	reason = oci_levels_lack(p);
	if (reason)
		return reason;
	need = oci_levels_need(p);
	if (!have_room(l, need)) {
		if (were_refused_room(l))
			return OCI_LEVELS_NO_SCRATCH;
		want(self, need);
		return EARLY;
	}
	return oci_levels_has_messages(p) && l->all_refused ? OCI_LEVELS_NO_MESSAGES : NULL;
}

/* Of nothing yet, so that it may be closed. */
static void clear(struct oci_mpi_request *request)
{
	memset(&request->operation, 0, offsetof(struct oci_mpi_operation, few));
}

/* The call as it is kept: what the program may free is retained. 0 or -ENOMEM. */
static int keep(struct oci_mpi_request *request, const struct plan *p, bool retain)
{
	struct oci_mpi_operation *o = &request->operation;

	o->mpi = *p->call;
	o->rank = p->comm->rank;
	o->size = p->comm->size;
	o->call.bytes = p->bytes;
	return retain ? oci_mpi_retain(o) : 0;
}

static void take_ticket(struct oci_mpi_request *request, struct oci_mpi_lane *lane)
{
	request->lane = lane;
	request->ticket = lane->tickets++;
}

/* Without memory to keep it. The others make their part, so this rank waits until it is over. */
static int run_now(struct plan *p, struct oci_mpi_lane *lane)
{
	struct oci_mpi_request own;

	oci_mpi_request_open(&own, p->comm, false);
	clear(&own);
	keep(&own, p, false);
	take_ticket(&own, lane);
	oci_mpi_request_await(&own);
	return own.error;
}

int oci_mpi_levels_start(struct oci_mpi_comm *self, struct oci_mpi_request *request,
			 const struct oci_mpi_call *call, int *error)
{
	struct oci_mpi_lane *lane;
	const char *reason;
	struct plan p;

	*error = MPI_SUCCESS;
	if (request)
		clear(request);
	if (!oci_levels_survey(&p, self, call, false))
		return 1;
	reason = oci_levels_refusal(&p);
	if (!reason)
		reason = lack(&p);
	if (reason) {
		oci_mpi_count_back(call, reason);
		return OC_HAND_BACK;
	}
	lane = p.l->lanes[p.l->started++ % LANES];
	if (!request || keep(request, &p, true)) {
		*error = run_now(&p, lane);
		return 1;
	}
	take_ticket(request, lane);
	return 0;
}

/* ---- persistent ones --------------------------------------------------------------------------
 */

/* By all members: a lane with what the call needs, or none. */
static struct oci_mpi_lane *make_lane(struct plan *p, bool able)
{
	struct oci_mpi_comm *self = p->comm;
	struct oci_mpi_lane *lane = oci_levels_lane(self, p->l, able);

	if (!lane)
		return NULL;
	if (oci_levels_room(self, lane, oci_levels_need(p)))
		return lane;
	oci_levels_lane_free(lane);
	return NULL;
}

int oci_mpi_levels_init(struct oci_mpi_comm *self, struct oci_mpi_request *request,
			const struct oci_mpi_call *call)
{
	const char *reason;
	struct plan p;

	if (request)
		clear(request);
	if (!oci_levels_survey(&p, self, call, false))
		return request ? 0 : -ENOMEM;
	reason = oci_levels_refusal(&p);
	if (!reason) {
		p.l = oci_levels_of(self);
		reason = p.l ? oci_levels_lack(&p) : self->why;
	}
	if (!reason && oci_levels_has_messages(&p) &&
	    (p.l->tags >= MOST_TAGS || !oci_levels_messages(self)))
		reason = OCI_LEVELS_NO_MESSAGES;
	if (!reason) {
		struct oci_mpi_lane *lane = make_lane(&p, request && !keep(request, &p, true));

		if (lane) {
			request->lane = lane;
			return 0;
		}
		reason = NO_LANES;
	}
	oci_mpi_count_back(call, reason);
	return OC_HAND_BACK;
}

void oci_mpi_levels_start_again(struct oci_mpi_request *request)
{
	take_ticket(request, request->lane);
}

void oci_mpi_levels_end(struct oci_mpi_request *request)
{
	oci_levels_lane_free(request->lane);
	request->lane = NULL;
}

/* ---- steps ------------------------------------------------------------------------------------
 */

bool oci_mpi_levels_step(struct oci_mpi_request *request)
{
	struct oci_mpi_lane *lane = request->lane;
	struct plan *p = &lane->plan;

	if (lane->turn != request->ticket)
		return false;
	if (!lane->busy) {
		oci_levels_survey(p, request->comm, &request->operation.mpi, false);
		/* Of the call as it was made: what means nothing here is not kept. */
		p->bytes = request->operation.call.bytes;
		oci_levels_open(p, lane, &request->operation.mpi);
		lane->busy = true;
	}
	if (!oci_levels_walk_on(p))
		return false;
	request->error = oci_levels_close(p);
	lane->busy = false;
	/* Release: pairs with the acquire of who waits until the lane is idle (make.c). */
	__atomic_store_n(&lane->turn, lane->turn + 1, __ATOMIC_RELEASE);
	return true;
}
