/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs: pure functions of a model's terms. */
#include "model/model.h"

#include "base/least.h"

#include <math.h>
#include <string.h>

bool oci_model_knows(const struct oci_model *model, enum oci_model_mechanism mechanism)
{
	return model->copy[mechanism].beta.given;
}

double oci_model_gamma(const struct oci_model *model, enum oci_model_mechanism mechanism,
		       double copiers)
{
	const struct oci_model_copy *copy = &model->copy[mechanism];
	double gamma = (copy->gamma2.value * copiers + copy->gamma1.value) * copiers;

	/* A fit may dip below 1 between one copier and two; company never makes a lock cheaper. */
	if (copiers <= 1 || gamma < 1)
		return 1;
	return copiers > model->package_cores.value ? gamma * copy->gamma_across.value : gamma;
}

double oci_model_contending(const struct oci_model *model, enum oci_model_mechanism mechanism,
			    double copiers, size_t bytes)
{
	double near = model->copy[mechanism].lock_span.value / (bytes ? (double)bytes : 1);

	return oci_smaller(copiers, oci_larger(near, 1));
}

double oci_model_alpha_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			 enum oci_model_direction direction)
{
	const struct oci_model_copy *copy = &model->copy[mechanism];

	return direction == OCI_MODEL_PUSH && copy->push_alpha.given ? copy->push_alpha.value :
								       copy->alpha.value;
}

/* Does a copy of so much stay in the caches, as far as the model knows where they end? */
static bool in_cache(const struct oci_model *model, size_t bytes)
{
	return 2 * (double)bytes <= model->cache_bytes.value;
}

/* Two buffers a side that take turns: as `onecopy tune` measures, and the least that a program has
 * whose next message is made while the last one is used. */
#define TURNS 2

double oci_model_beyond(const struct oci_model *model, size_t extent, size_t working)
{
	double touched = TURNS * (double)working / model->cache_shared.value;

	if (!in_cache(model, extent))
		return 1;
	/* Measured on 2 ranks under 32 MiB of an AMD EPYC guest, 2026-11-22: Bcast of 4 MiB (half
	 * of the cache is touched) at the rate of the cache, Scatter and Gather (all of it) and
	 * Alltoall (twice) at that of memory, Allgather (three halves) too; docs/results.md. */
	return oci_smaller(oci_larger(2 * touched - 1, 0), 1);
}

static double mixed(const struct oci_term *cache, const struct oci_term *memory, double beyond)
{
	return memory->given ? cache->value + beyond * (memory->value - cache->value) :
			       cache->value;
}

double oci_model_bytes_of_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			    enum oci_model_direction direction, size_t bytes,
			    enum oci_model_distance distance, double beyond)
{
	const struct oci_model_copy *copy = &model->copy[mechanism];
	bool push = direction == OCI_MODEL_PUSH && copy->push_beta.given;
	double rate = push ? mixed(&copy->push_beta, &copy->push_beta_memory, beyond) :
			     mixed(&copy->beta, &copy->beta_memory, beyond);

	if (distance == OCI_MODEL_MACHINE)
		rate *= copy->beta_across.value;
	return (double)bytes * rate;
}

double oci_model_lock_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			size_t bytes, double copiers)
{
	const struct oci_model_copy *copy = &model->copy[mechanism];

	return copy->lock.value * oci_model_gamma(model, mechanism, copiers) *
	       ceil((double)bytes / copy->page.value);
}

double oci_model_copy_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			size_t bytes, double copiers)
{
	return oci_model_alpha_s(model, mechanism, OCI_MODEL_PULL) +
	       oci_model_bytes_of_s(model, mechanism, OCI_MODEL_PULL, bytes, OCI_MODEL_CACHE,
				    oci_model_beyond(model, bytes, 0)) +
	       oci_model_lock_s(model, mechanism, bytes, copiers);
}

bool oci_model_prefers_kmod(const struct oci_model *model, uint32_t ranks)
{
	static const size_t sizes[] = { 16 << 10, 256 << 10, 4 << 20 };
	double kmod = 1, cma = 1;

	if (!oci_model_knows(model, OCI_MODEL_KMOD) || !oci_model_knows(model, OCI_MODEL_CMA))
		return false;
	for (int i = 0; i < 3; i++) {
		for (int together = 0; together < 2; together++) {
			double copiers = together && ranks > 2 ? ranks - 1 : 1;

			kmod *= oci_model_copy_s(model, OCI_MODEL_KMOD, sizes[i], copiers);
			cma *= oci_model_copy_s(model, OCI_MODEL_CMA, sizes[i], copiers);
		}
	}
	return kmod < cma;
}

double oci_model_memcpy_of_s(const struct oci_model *model, size_t bytes, double beyond)
{
	return (double)bytes * mixed(&model->memcpy_cache, &model->memcpy_memory, beyond);
}

double oci_model_fill_of_s(const struct oci_model *model, size_t bytes, double beyond)
{
	return oci_larger(oci_model_memcpy_of_s(model, bytes, beyond),
			  (double)bytes * model->memcpy_slot.value);
}

double oci_model_reduce_s(const struct oci_model *model, size_t bytes)
{
	return (double)bytes * model->reduce.value;
}

double oci_model_flag_s(const struct oci_model *model, enum oci_model_distance distance)
{
	/* A machine without such a distance has not measured it: the next closer one serves. */
	while (distance > OCI_MODEL_CACHE && !model->flag[distance].given)
		distance--;
	return model->flag[distance].value;
}

double oci_model_flag_more_s(const struct oci_model *model, enum oci_model_distance distance)
{
	double alone = oci_model_flag_s(model, distance);

	return model->flag_more.given && model->flag_more.value < alone ? model->flag_more.value :
									  alone;
}

double oci_model_domain_s(const struct oci_model *model, double copiers)
{
	return copiers * model->domain.value;
}

double oci_model_domain_of_s(const struct oci_model *model, double copiers, double beyond)
{
	/* Where nobody knows the end of the caches, none holds anything. */
	if (!model->cache_bytes.given)
		beyond = 1;
	return copiers * (model->domain_cache.value +
			  beyond * (model->domain.value - model->domain_cache.value));
}

static uint32_t core_of(const struct oci_model *model, uint32_t rank)
{
	double cores = model->packages.value * model->package_cores.value;

	return cores >= UINT32_MAX ? rank : rank % (uint32_t)cores;
}

static uint32_t group_of(const struct oci_model *model, uint32_t rank, const struct oci_term *cores)
{
	return core_of(model, rank) / (uint32_t)cores->value;
}

uint32_t oci_model_cache(const struct oci_model *model, uint32_t rank)
{
	return group_of(model, rank, &model->cache_cores);
}

uint32_t oci_model_domain(const struct oci_model *model, uint32_t rank)
{
	return group_of(model, rank, &model->domain_cores);
}

uint32_t oci_model_package(const struct oci_model *model, uint32_t rank)
{
	return group_of(model, rank, &model->package_cores);
}

enum oci_model_distance oci_model_distance(const struct oci_model *model, uint32_t a, uint32_t b)
{
	if (oci_model_package(model, a) != oci_model_package(model, b))
		return OCI_MODEL_MACHINE;
	if (oci_model_cache(model, a) != oci_model_cache(model, b))
		return OCI_MODEL_PACKAGE;
	return OCI_MODEL_CACHE;
}

const struct oci_model_cell *oci_model_cell(const struct oci_model *model, const char *collective,
					    uint32_t ranks, size_t bytes)
{
	for (size_t i = 0; i < model->cell_count; i++) {
		const struct oci_model_cell *cell = &model->cells[i];

		if (ranks >= cell->ranks_min && ranks <= cell->ranks_max &&
		    bytes >= cell->bytes_min && bytes <= cell->bytes_max &&
		    !strcmp(cell->collective, collective))
			return cell;
	}
	return NULL;
}
