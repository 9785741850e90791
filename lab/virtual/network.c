/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/virtual/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Larger local messages are read by the receiver: the least that Open MPI 4.1.4's vader and MPICH
 * 4.0.2's UCX do so with (their defaults). */
enum { LOCAL_EAGER = 4096 };

struct oci_network_message {
	uint32_t from, to; /* among the kept */
	bool crosses, sums;
	size_t bytes;
	double at_s; /* when its last part that is under way is there */
};

bool oci_network_known(const struct oci_model *model)
{
	return model->net_latency.given && model->net_overhead.given && model->net_gap_byte.given;
}

int oci_network_open(struct oci_network *n, const struct oci_model *model, uint32_t nodes,
		     uint32_t each, bool alike)
{
	uint32_t kept_nodes = alike ? 1 : nodes;

	*n = (struct oci_network){ .model = model,
				   .nodes = nodes,
				   .each = each,
				   .ranks = nodes * each,
				   .alike = alike,
				   .kept = kept_nodes * each };
	n->clock_s = calloc(n->kept, sizeof(*n->clock_s));
	n->done_s = calloc(n->kept, sizeof(*n->done_s));
	n->readers = calloc(n->kept, sizeof(*n->readers));
	n->out_s = calloc(kept_nodes, sizeof(*n->out_s));
	n->in_s = calloc(kept_nodes, sizeof(*n->in_s));
	n->local = calloc(kept_nodes, sizeof(*n->local));
	return n->clock_s && n->done_s && n->readers && n->out_s && n->in_s && n->local ? 0 :
											  -ENOMEM;
}

void oci_network_close(struct oci_network *n)
{
	free(n->clock_s);
	free(n->done_s);
	free(n->readers);
	free(n->out_s);
	free(n->in_s);
	free(n->local);
	free(n->list);
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* Is it asked for first, or read? */
static bool is_large(const struct oci_network *n, const struct oci_network_message *m)
{
	return m->crosses ? (double)m->bytes > n->model->net_eager.value : m->bytes > LOCAL_EAGER;
}

/* A card that is free from *free_s on takes a message that is there at `at_s`: when its last byte
 * is through. */
static double through(const struct oci_network *n, double *free_s, double at_s, size_t bytes)
{
	double bytes_s = (double)bytes * n->model->net_gap_byte.value;
	double begin_s = later(at_s, *free_s);

	*free_s = begin_s + later(n->model->net_gap.value, bytes_s);
	return begin_s + bytes_s;
}

static uint32_t node_of(const struct oci_network *n, uint32_t rank)
{
	return rank / n->each;
}

void oci_network_add(struct oci_network *n, uint32_t from, uint32_t to, size_t bytes, bool sums)
{
	struct oci_network_message *m;

	if (n->count == n->room) {
		size_t room = n->room ? 2 * n->room : 64;
		void *more = realloc(n->list, room * sizeof(*n->list));

		if (!more) {
			n->failed = true;
			return;
		}
		n->list = more;
		n->room = room;
	}
	m = &n->list[n->count++];
	*m = (struct oci_network_message){
		.from = from % n->kept,
		.to = to % n->kept,
		.crosses = from / n->each != to / n->each,
		.sums = sums,
		.bytes = bytes,
	};
	if (m->crosses) {
		n->asked |= is_large(n, m);
	} else if (is_large(n, m)) {
		n->readers[m->from]++;
		n->local[node_of(n, m->to)]++;
	}
}

static void goes(struct oci_network *n, struct oci_network_message *m)
{
	double *clock_s = &n->clock_s[m->from];
	double gone_s = through(n, &n->out_s[node_of(n, m->from)], *clock_s, m->bytes);

	m->at_s = gone_s + n->model->net_latency.value;
	if (is_large(n, m))
		n->done_s[m->from] = later(n->done_s[m->from], gone_s);
}

/* A message, or the question for a large one. */
static void send(struct oci_network *n, struct oci_network_message *m)
{
	const struct oci_model *model = n->model;
	double *clock_s = &n->clock_s[m->from];

	if (m->crosses) {
		*clock_s += model->net_overhead.value;
		if (is_large(n, m))
			m->at_s = *clock_s + model->net_latency.value;
		else
			goes(n, m);
		return;
	}
	if (!is_large(n, m))
		*clock_s += oci_model_memcpy_of_s(model, m->bytes, 0);
	m->at_s = *clock_s + oci_model_flag_s(model, OCI_MODEL_CACHE);
}

/* Its receiver has seen the question, and the sender the answer. */
static void answer(struct oci_network *n, struct oci_network_message *m)
{
	n->clock_s[m->to] = later(n->clock_s[m->to], m->at_s) + 2 * n->model->net_overhead.value;
	m->at_s = n->clock_s[m->to] + n->model->net_latency.value;
}

static void send_answered(struct oci_network *n, struct oci_network_message *m)
{
	n->clock_s[m->from] =
		later(n->clock_s[m->from], m->at_s) + 2 * n->model->net_overhead.value;
	goes(n, m);
}

/* A copy by the receiver, beside those of its node. */
static double read_s(const struct oci_network *n, const struct oci_network_message *m)
{
	const struct oci_model *model = n->model;
	enum oci_model_mechanism by = oci_model_knows(model, OCI_MODEL_CMA) ? OCI_MODEL_CMA :
									      OCI_MODEL_SHM;
	uint32_t domains = (n->each + (uint32_t)model->domain_cores.value - 1) /
			   (uint32_t)model->domain_cores.value;
	double copiers = (double)n->local[node_of(n, m->to)] / domains;
	double beyond = oci_model_beyond(model, m->bytes, 0);
	double alone =
		oci_model_bytes_of_s(model, by, OCI_MODEL_PULL, m->bytes, OCI_MODEL_CACHE, beyond);
	double shared = (double)m->bytes * oci_model_domain_of_s(model, copiers, beyond);

	return oci_model_alpha_s(model, by, OCI_MODEL_PULL) + later(alone, shared) +
	       oci_model_lock_s(model, by, m->bytes, n->readers[m->from]);
}

static void receive(struct oci_network *n, struct oci_network_message *m)
{
	const struct oci_model *model = n->model;
	double *clock_s = &n->clock_s[m->to];

	if (m->crosses) {
		double first_s = m->at_s - (double)m->bytes * model->net_gap_byte.value;

		m->at_s = through(n, &n->in_s[node_of(n, m->to)], first_s, m->bytes);
		*clock_s = later(*clock_s, m->at_s) + model->net_overhead.value;
	} else if (is_large(n, m)) {
		*clock_s = later(*clock_s, m->at_s) + read_s(n, m);
		n->done_s[m->from] = later(n->done_s[m->from],
					   *clock_s + oci_model_flag_s(model, OCI_MODEL_CACHE));
	} else {
		*clock_s = later(*clock_s, m->at_s) + oci_model_memcpy_of_s(model, m->bytes, 0);
	}
	if (m->sums)
		*clock_s += oci_model_reduce_s(model, m->bytes);
}

void oci_network_round(struct oci_network *n)
{
	struct oci_network_message *end;

	if (!n->count)
		return;
	end = n->list + n->count;
	for (struct oci_network_message *m = n->list; m < end; m++)
		send(n, m);
	for (struct oci_network_message *m = n->list; m < end && n->asked; m++)
		if (m->crosses && is_large(n, m))
			answer(n, m);
	for (struct oci_network_message *m = n->list; m < end && n->asked; m++)
		if (m->crosses && is_large(n, m))
			send_answered(n, m);
	for (struct oci_network_message *m = n->list; m < end; m++)
		receive(n, m);
	for (struct oci_network_message *m = n->list; m < end; m++) {
		n->clock_s[m->from] = later(n->clock_s[m->from], n->done_s[m->from]);
		n->readers[m->from] = 0;
		n->local[node_of(n, m->to)] = 0;
	}
	n->count = 0;
	n->asked = false;
}

void oci_network_pass(struct oci_network *n, double seconds)
{
	for (uint32_t r = 0; r < n->kept; r++) {
		n->clock_s[r] += seconds;
		n->done_s[r] += seconds;
	}
	for (uint32_t i = 0; i < (n->alike ? 1 : n->nodes); i++) {
		n->out_s[i] += seconds;
		n->in_s[i] += seconds;
	}
}

double oci_network_end(const struct oci_network *n)
{
	double end_s = 0;

	for (uint32_t r = 0; r < n->kept; r++)
		end_s = later(end_s, n->clock_s[r]);
	return end_s;
}
