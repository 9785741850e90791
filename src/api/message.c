/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point messages: the public functions over src/p2p.
 *
 * A blocking call has its message on the stack and drives it; a nonblocking one has it in a
 * request, which oc_progress() drives. While a team has requests, whoever uses it holds the lock.
 */
#include <errno.h>

#include "api/engine.h"
#include "base/options.h"

/* Looks for a small message before its receive is posted, which costs more; the last ones with a
 * pause. In all some microseconds, in which nothing else of this process moves. */
#define QUICK_LOOKS 128
#define QUICK_WITHOUT_PAUSE 64
/* Turns in vain before a pause: they look at more than a word, and take long enough. */
#define IDLE_TURNS 4

/* ---- a team's messages ----------------------------------------------------------------------- */

static int p2p_ready(struct oc_team *team)
{
	if (__builtin_expect(team->p2p != NULL, 1))
		return 0;
	return oci_p2p_create(&team->p2p, &team->team, team->model);
}

static int begin(struct oc_team *team, struct oci_message *m, bool sends)
{
	int error = p2p_ready(team);

	if (error)
		return error;
	return sends ? oci_p2p_send(team->p2p, m) : oci_p2p_receive(team->p2p, m);
}

/* ---- requests; all with the lock held -------------------------------------------------------- */

struct message_request {
	struct oc_request r; /* first */
	struct oci_message m;
};

/* It is over. Its owner learns that from requests_leave(): src/p2p may be in the middle of a turn,
 * and a team without requests is used without the lock. */
static void request_end(struct oc_request *r)
{
	struct oc_team *team = r->team;

	oci_request_unlink(r, &team->message_last);
	r->result = ((struct message_request *)r)->m.result;
	r->next = team->message_ended;
	team->message_ended = r;
}

/* Whoever has used the team's p2p with the lock does not do so again before the next lock. */
static void requests_leave(struct oc_team *team)
{
	struct oc_request *r;

	while ((r = team->message_ended)) {
		team->message_ended = r->next;
		oci_request_leave(r);
	}
}

static void request_over(struct oci_message *m)
{
	request_end((struct oc_request *)((char *)m - offsetof(struct message_request, m)));
}

static int team_messages_progress(struct oc_team *team)
{
	int moved = 0, error;

	/* Without requests the team is its owner's, who takes no lock. */
	if (!team->message)
		return 0;
	if (!team->team.error && team->p2p)
		moved += (int)oci_p2p_progress(team->p2p);
	/* They may hang on who has gone. Read once: another thread may set it in between, and no
	 * request ends that was not abandoned. Acquire: pairs with the release in oci_team_fail().
	 */
	error = __atomic_load_n(&team->team.error, __ATOMIC_ACQUIRE);
	if (error && team->p2p)
		oci_p2p_abandon(team->p2p);
	while (error && team->message) {
		((struct message_request *)team->message)->m.result = error;
		request_end(team->message);
		moved++;
	}
	return moved;
}

void oci_messaging_remove(struct oc_team *team)
{
	for (struct oc_team **at = &oci_engine.messaging; *at; at = &(*at)->messaging_next) {
		if (*at != team)
			continue;
		*at = team->messaging_next;
		team->messaging = false;
		return;
	}
}

int oci_messages_progress(void)
{
	struct oc_team *team;
	int moved = 0;

	for (struct oc_team **at = &oci_engine.messaging; (team = *at);) {
		moved += team_messages_progress(team);
		requests_leave(team);
		if (team->message) {
			at = &team->messaging_next;
			continue;
		}
		team->messaging = false;
		*at = team->messaging_next;
	}
	return moved;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int check(struct oc_team *team, const struct oci_message *m, bool sends)
{
	if (m->peer >= team->team.size && (sends || m->peer != OC_ANY_SOURCE))
		return oci_team_say(&team->team, -EINVAL, "there is no rank %u in a team of %u",
				    m->peer, team->team.size);
	if (m->tag < 0 && (sends || m->tag != OC_ANY_TAG))
		return oci_team_say(&team->team, -EINVAL, "tag %d: tags are 0 or more",
				    (int)m->tag);
	if (!m->buffer && !m->layout.count && m->bytes)
		return oci_team_say(&team->team, -EINVAL, "a message of %zu bytes has no buffer",
				    m->bytes);
	return 0;
}

/* Waits for the team. 0, or the error that it has ended with. */
static int enter(struct oc_team *team)
{
	if (__builtin_expect(oci_team_state(&team->team) != OCI_TEAM_READY, 0))
		oci_team_await(team);
	return team->team.error;
}

/* True: the caller has the lock until unlock_shared(). */
static bool lock_shared(const struct oc_team *team)
{
	/* Acquire: pairs with the release in oci_request_leave(). */
	if (__builtin_expect(!__atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE), 1))
		return false;
	oci_engine_lock();
	return true;
}

static void unlock_shared(struct oc_team *team, bool locked)
{
	if (!locked)
		return;
	requests_leave(team);
	oci_engine_unlock();
}

/* A blocking call to ourselves that nothing has matched: nobody else can. */
static int deadlock(struct oc_team *team, struct oci_message *m, bool sends)
{
	bool locked = lock_shared(team);
	int result = m->result;

	if (!result) {
		if (sends)
			oci_p2p_withdraw_send(team->p2p, m);
		else
			oci_p2p_withdraw_receive(team->p2p, m);
		result = oci_team_say(
			&team->team, -EDEADLK,
			"rank %u would wait for itself for ever: start its own %s with %s "
			"before",
			oci_team_name(&team->team, team->team.rank), sends ? "receive" : "send",
			sends ? "oc_irecv" : "oc_isend");
	}
	unlock_shared(team, locked);
	return result;
}

static int drive(struct oc_team *team, struct oci_message *m)
{
	struct oci_awaited nothing = { 0 };
	struct oci_wait wait = { 0 };
	unsigned int idle = 0;
	int result;

	for (;;) {
		bool locked = lock_shared(team);
		unsigned int moved = 0;

		if (!m->result && !team->team.error)
			moved = oci_p2p_progress(team->p2p);
		result = m->result ? m->result : team->team.error;
		if (result && !m->result)
			oci_p2p_abandon(team->p2p);
		unlock_shared(team, locked);
		if (result)
			return result;
		if (moved)
			wait = (struct oci_wait){ 0 };
		else if (team->team.oversubscribed || ++idle % IDLE_TURNS == 0)
			oci_wait_turn(&team->team, &wait, &nothing);
	}
}

static int run(struct oc_team *team, struct oci_message *m, bool sends)
{
	int result = check(team, m, sends);
	bool locked;

	if (result)
		return result;
	result = enter(team);
	if (result)
		return result;
	locked = lock_shared(team);
	result = begin(team, m, sends);
	if (!result)
		result = m->result;
	unlock_shared(team, locked);
	if (!result && (m->peer == team->team.rank || team->team.size == 1))
		result = deadlock(team, m, sends);
	else if (!result)
		result = drive(team, m);
	return result == 1 ? 0 : result;
}

static int start(struct oc_team *team, const struct oci_message *m, bool sends,
		 struct oc_request **request)
{
	struct message_request *r;
	int error = check(team, m, sends) ?: enter(team);

	if (error)
		return error;
	oci_engine_lock();
	error = team->team.error;
	r = error ? NULL : (struct message_request *)oci_request_new(true, sizeof(*r));
	if (!r) {
		oci_engine_unlock();
		return error ? error : -ENOMEM;
	}
	r->r.team = team;
	r->m = *m;
	r->m.result = 0;
	error = begin(team, &r->m, sends);
	if (error) {
		oci_request_free(&r->r);
	} else if (r->m.result) {
		r->r.result = r->m.result;
		r->r.left = true;
	} else {
		r->m.over = request_over;
		oci_request_add(&r->r, &team->message_last);
		if (!team->messaging) {
			team->messaging = true;
			team->messaging_next = oci_engine.messaging;
			oci_engine.messaging = team;
		}
	}
	requests_leave(team);
	oci_engine_unlock();
	if (!error)
		*request = &r->r;
	return error;
}

static struct oci_message message_of(uint32_t peer, int32_t tag, const void *buffer, size_t bytes,
				     struct oc_status *status)
{
	return (struct oci_message){ .peer = peer,
				     .tag = tag,
				     .buffer = (void *)(uintptr_t)buffer,
				     .bytes = bytes,
				     .status = status };
}

/* One with gaps: a layout in the place of a buffer. */
static struct oci_message layout_of(uint32_t peer, int32_t tag, const struct oc_layout *layout,
				    struct oc_status *status)
{
	struct oci_message m = { .peer = peer, .tag = tag, .status = status };

	/* Without pieces it is a message without bytes, or check() refuses it. */
	m.bytes = layout && layout->pieces ? layout->pieces[layout->count].at : 1;
	if (layout && layout->pieces && layout->count)
		m.layout = *layout;
	return m;
}

int oc_send(struct oc_team *team, uint32_t destination, int32_t tag, const void *buffer,
	    size_t bytes)
{
	struct oci_message m;

	/* As in lock_shared(): nothing else of this team is under way. */
	if (__builtin_expect(team->p2p && !team->team.error && destination < team->team.size, 1) &&
	    tag >= 0 && (buffer || !bytes) &&
	    !__atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE) &&
	    oci_p2p_send_now(team->p2p, destination, tag, buffer, bytes))
		return 0;
	m = message_of(destination, tag, buffer, bytes, NULL);
	return run(team, &m, true);
}

int oc_recv(struct oc_team *team, uint32_t source, int32_t tag, void *buffer, size_t bytes,
	    struct oc_status *status)
{
	struct oci_message m;
	int result;

	if (__builtin_expect(team->p2p && !team->team.error && source < team->team.size, 1) &&
	    tag >= OC_ANY_TAG && (buffer || !bytes) &&
	    !__atomic_load_n(&team->outstanding, __ATOMIC_ACQUIRE)) {
		unsigned int looks = team->team.oversubscribed ? 1 : QUICK_LOOKS;

		for (unsigned int i = 0; i < looks; i++) {
			int done = oci_p2p_receive_now(team->p2p, source, tag, buffer, bytes,
						       status, &result);

			if (done > 0)
				return result;
			if (done < 0)
				break;
			if (i >= QUICK_WITHOUT_PAUSE)
				oci_cpu_relax();
		}
	}
	m = message_of(source, tag, buffer, bytes, status);
	return run(team, &m, false);
}

int oc_isend(struct oc_team *team, uint32_t destination, int32_t tag, const void *buffer,
	     size_t bytes, struct oc_request **request)
{
	struct oci_message m = message_of(destination, tag, buffer, bytes, NULL);

	return start(team, &m, true, request);
}

int oc_irecv(struct oc_team *team, uint32_t source, int32_t tag, void *buffer, size_t bytes,
	     struct oc_status *status, struct oc_request **request)
{
	struct oci_message m = message_of(source, tag, buffer, bytes, status);

	return start(team, &m, false, request);
}

int oc_sendv(struct oc_team *team, uint32_t destination, int32_t tag,
	     const struct oc_layout *layout)
{
	struct oci_message m = layout_of(destination, tag, layout, NULL);

	return run(team, &m, true);
}

int oc_recvv(struct oc_team *team, uint32_t source, int32_t tag, const struct oc_layout *layout,
	     struct oc_status *status)
{
	struct oci_message m = layout_of(source, tag, layout, status);

	return run(team, &m, false);
}

int oc_isendv(struct oc_team *team, uint32_t destination, int32_t tag,
	      const struct oc_layout *layout, struct oc_request **request)
{
	struct oci_message m = layout_of(destination, tag, layout, NULL);

	return start(team, &m, true, request);
}

int oc_irecvv(struct oc_team *team, uint32_t source, int32_t tag, const struct oc_layout *layout,
	      struct oc_status *status, struct oc_request **request)
{
	struct oci_message m = layout_of(source, tag, layout, status);

	return start(team, &m, false, request);
}

int oc_iprobe(struct oc_team *team, uint32_t source, int32_t tag, struct oc_status *status)
{
	struct oci_message m = { .peer = source, .tag = tag };
	int result = check(team, &m, false);
	bool locked;

	if (result)
		return result;
	result = enter(team);
	if (result)
		return result;
	locked = lock_shared(team);
	result = p2p_ready(team);
	if (!result) {
		result = oci_p2p_probe(team->p2p, source, tag, status);
		if (!result)
			result = team->team.error;
	}
	unlock_shared(team, locked);
	return result;
}
