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

static struct oci_message *first_fit(const struct oci_list *list, int32_t tag)
{
	struct oci_message *m = list->first;

	while (m && !tag_fits(m->tag, tag))
		m = m->next;
	return m;
}

struct oci_message *oci_match_posted(struct oci_p2p *p2p, uint32_t source, int32_t tag)
{
	struct oci_list *list = &p2p->in[source].posted;
	struct oci_message *m = first_fit(list, tag), *any = first_fit(&p2p->posted_any, tag);

	if (any && (!m || any->order < m->order)) {
		m = any;
		list = &p2p->posted_any;
	}
	if (!m)
		return NULL;
	oci_list_remove(list, m);
	m->source = source;
	return m;
}

void oci_post(struct oci_p2p *p2p, struct oci_message *m)
{
	m->order = p2p->posts++;
	oci_list_add(m->peer == OC_ANY_SOURCE ? &p2p->posted_any : &p2p->in[m->peer].posted, m);
}

void oci_p2p_withdraw_receive(struct oci_p2p *p2p, struct oci_message *m)
{
	oci_list_remove(m->peer == OC_ANY_SOURCE ? &p2p->posted_any : &p2p->in[m->peer].posted, m);
}

struct oci_unexpected *oci_match_unexpected(struct oci_p2p *p2p, uint32_t source, int32_t tag)
{
	struct oci_unexpected *entry;

	if (source == OC_ANY_SOURCE) {
		for (entry = p2p->any; entry && !tag_fits(tag, entry->tag);)
			entry = entry->any_next;
		return entry;
	}
	for (entry = p2p->in[source].unexpected; entry && !tag_fits(tag, entry->tag);)
		entry = entry->next;
	return entry;
}

struct oci_unexpected *oci_unexpected_add(struct oci_p2p *p2p, uint32_t source, int32_t tag,
					  size_t bytes)
{
	struct oci_inbound *in = &p2p->in[source];
	struct oci_unexpected *entry = p2p->spare;
	size_t room = bytes < SPARE_BYTES ? SPARE_BYTES : bytes;

	if (entry && room == SPARE_BYTES)
		p2p->spare = entry->next;
	else
		entry = malloc(sizeof(*entry) + room);
	if (!entry)
		return NULL;
	*entry = (struct oci_unexpected){ .link = in->unexpected_last,
					  .any_link = p2p->any_last,
					  .source = source,
					  .tag = tag,
					  .bytes = bytes,
					  .room = room };
	*in->unexpected_last = entry;
	in->unexpected_last = &entry->next;
	*p2p->any_last = entry;
	p2p->any_last = &entry->any_next;
	return entry;
}

void oci_unexpected_unlink(struct oci_p2p *p2p, struct oci_unexpected *entry)
{
	*entry->link = entry->next;
	if (entry->next)
		entry->next->link = entry->link;
	else
		p2p->in[entry->source].unexpected_last = entry->link;
	*entry->any_link = entry->any_next;
	if (entry->any_next)
		entry->any_next->any_link = entry->any_link;
	else
		p2p->any_last = entry->any_link;
}

void oci_unexpected_free(struct oci_p2p *p2p, struct oci_unexpected *entry)
{
	if (entry->room != SPARE_BYTES) {
		free(entry);
		return;
	}
	entry->next = p2p->spare;
	p2p->spare = entry;
}
