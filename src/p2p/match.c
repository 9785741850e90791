/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching. Receives are posted by source, or to a list of those that take any; a message goes to
 * the one of the two first fits that was posted earlier. Messages that came too early are kept by
 * source and, for receives from any, in the order in which they were seen.
 */
#include <stdlib.h>

#include "p2p/p2p.h"

/* Entries with room for so much are kept for the next message. */
#define SPARE_BYTES 256

static bool tag_fits(int32_t wanted, int32_t tag)
{
	return wanted == tag || wanted == OC_ANY_TAG;
}

static struct oci_message *first_fit(const struct oci_messages *list, int32_t tag)
{
	struct oci_message *m;

	TAILQ_FOREACH(m, list, on)
	{
		if (tag_fits(m->tag, tag))
			break;
	}
	return m;
}

struct oci_message *oci_match_posted(struct oci_p2p *p2p, uint32_t source, int32_t tag)
{
	struct oci_messages *list = &p2p->in[source].posted;
	struct oci_message *m = first_fit(list, tag), *any = first_fit(&p2p->posted_any, tag);

	if (any && (!m || any->order < m->order)) {
		m = any;
		list = &p2p->posted_any;
	}
	if (!m)
		return NULL;
	TAILQ_REMOVE(list, m, on);
	m->source = source;
	return m;
}

void oci_post(struct oci_p2p *p2p, struct oci_message *m)
{
	m->order = p2p->posts++;
	TAILQ_INSERT_TAIL(m->peer == OC_ANY_SOURCE ? &p2p->posted_any : &p2p->in[m->peer].posted, m,
			  on);
}

void oci_p2p_withdraw_receive(struct oci_p2p *p2p, struct oci_message *m)
{
	TAILQ_REMOVE(m->peer == OC_ANY_SOURCE ? &p2p->posted_any : &p2p->in[m->peer].posted, m, on);
}

struct oci_unexpected *oci_match_unexpected(struct oci_p2p *p2p, uint32_t source, int32_t tag)
{
	struct oci_unexpected *entry;

	if (source == OC_ANY_SOURCE) {
		TAILQ_FOREACH(entry, &p2p->unexpected, of_any)
		{
			if (tag_fits(tag, entry->tag))
				break;
		}
	} else {
		TAILQ_FOREACH(entry, &p2p->in[source].unexpected, of_source)
		{
			if (tag_fits(tag, entry->tag))
				break;
		}
	}
	return entry;
}

struct oci_unexpected *oci_unexpected_add(struct oci_p2p *p2p, uint32_t source, int32_t tag,
					  size_t bytes)
{
	struct oci_unexpected *entry = TAILQ_FIRST(&p2p->spare);
	size_t room = bytes < SPARE_BYTES ? SPARE_BYTES : bytes;

	if (entry && room == SPARE_BYTES)
		TAILQ_REMOVE(&p2p->spare, entry, of_source);
	else
		entry = malloc(sizeof(*entry) + room);
	if (!entry)
		return NULL;
	*entry = (struct oci_unexpected){ .source = source,
					  .tag = tag,
					  .bytes = bytes,
					  .room = room };
	TAILQ_INSERT_TAIL(&p2p->in[source].unexpected, entry, of_source);
	TAILQ_INSERT_TAIL(&p2p->unexpected, entry, of_any);
	return entry;
}

void oci_unexpected_unlink(struct oci_p2p *p2p, struct oci_unexpected *entry)
{
	TAILQ_REMOVE(&p2p->in[entry->source].unexpected, entry, of_source);
	TAILQ_REMOVE(&p2p->unexpected, entry, of_any);
}

void oci_unexpected_free(struct oci_p2p *p2p, struct oci_unexpected *entry)
{
	if (entry->room == SPARE_BYTES)
		TAILQ_INSERT_HEAD(&p2p->spare, entry, of_source);
	else
		free(entry);
}
