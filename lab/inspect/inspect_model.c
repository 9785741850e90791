/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model` and `onecopy explain` show: predictions, and who is chosen by what. */
#include "lab/inspect/inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/options.h"
#include "coll/rows.h"
#include "lab/inspect/dump.h"
#include "lab/virtual/predict.h"
#include "os/os.h"

static int load(const char *profile, struct oci_model *model, char *error, size_t n)
{
	struct oci_model_error found = { "" };
	int result;

	if (!strchr(profile, '/')) {
		result = oci_model_profile(profile, model);
		if (result)
			snprintf(error, n, "'%s' is not a machine that ships with onecopy",
				 profile);
		return result;
	}
	result = oci_model_read(profile, OCI_MODEL_ANY_MACHINE | OCI_MODEL_ANY_OWNER,
				oci_cell_check, model, &found);
	if (result)
		snprintf(error, n, "%s", found.text[0] ? found.text : strerror(-result));
	return result;
}

int oc_inspect_cell_check(const char *collective, const char *algorithm, const char **expected)
{
	return oci_cell_check(collective, algorithm, expected);
}

static int by_total(const void *a, const void *b)
{
	const struct oci_candidate *x = a, *y = b;
	double s = oci_cost_total(&x->cost), t = oci_cost_total(&y->cost);

	/* Equals stay in the order of the list, in which the selector takes the first. */
	if (s != t)
		return (s > t) - (s < t);
	return (x->choice.algorithm > y->choice.algorithm) -
	       (x->choice.algorithm < y->choice.algorithm);
}

static const char *sentence(enum oci_decided decided)
{
	switch (decided) {
	case OCI_BY_FORCE:
		return "it is forced by its option";
	case OCI_BY_FILE:
		return "a cell of the tuning file names it";
	case OCI_BY_MEASURED:
		return "a built-in table of measurements of such teams names it";
	case OCI_BY_MODEL:
		return "it is the cheapest by the model of those that may be chosen";
	default:
		return "it is the built-in rule, as the model does not tell";
	}
}

static struct oci_choice decide(const struct oc_predict_call *call, const struct oci_shape *shape,
				const struct oci_model *model, struct oc_predicted *predicted)
{
	const struct oci_forced *forced =
		call->forced ? oci_forced_by_environment(shape->collective) : NULL;
	struct oci_shape known = *shape;
	enum oci_decided decided;
	struct oci_choice choice;

	if (call->forced && !oci_options()->enable) {
		snprintf(predicted->chosen, sizeof(predicted->chosen), "mpi");
		predicted->why = "onecopy is off here (ONECOPY)";
		return (struct oci_choice){ .algorithm = OCI_CHOICE_MPI };
	}
	/* Of a v-variant no rank knows all sizes, so none is chosen by. */
	if (oci_is_v(shape->collective))
		known.bytes = 0;
	choice = oci_select(&known, model, forced, NULL, &decided);
	oci_predict_name(shape->collective, choice, predicted->chosen, sizeof(predicted->chosen));
	predicted->why = sentence(decided);
	return choice;
}

static void tell_model(const struct oci_model *model, struct oc_predicted *predicted)
{
	snprintf(predicted->model, sizeof(predicted->model), "%s", model->name);
	snprintf(predicted->path, sizeof(predicted->path), "%s", model->path);
	predicted->calibrated = model->calibrated;
}

/* The chosen parameter may be none of those that the selector weighs. */
static unsigned int with_chosen(const struct oci_shape *shape, const struct oci_model *model,
				struct oci_choice chosen, struct oci_candidate *list,
				unsigned int count)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, chosen.algorithm);

	if (!a || !a->cost || count == OC_PREDICTIONS_MOST)
		return count;
	for (unsigned int i = 0; i < count; i++)
		if (list[i].choice.algorithm == chosen.algorithm &&
		    list[i].choice.parameter == chosen.parameter)
			return count;
	list[count] =
		(struct oci_candidate){ .choice = chosen,
					.cost = oci_cost_of(a, model, shape, chosen.parameter) };
	return count + 1;
}

/* All that can run the call: by rising cost, then those without a closed form, by their default. */
static unsigned int candidates_of(const struct oci_shape *shape, const struct oci_model *model,
				  struct oci_choice chosen, struct oci_candidate *list)
{
	unsigned int count = oci_candidates(shape, model, list);
	const struct oci_algorithm *a;

	count = with_chosen(shape, model, chosen, list, count);
	qsort(list, count, sizeof(*list), by_total);
	for (uint8_t i = 0; (a = oci_algorithm(shape->collective, i)) != NULL; i++) {
		uint32_t parameter = i == chosen.algorithm ? chosen.parameter :
							     a->parameter_default;

		if (!a->cost && (!a->fits || a->fits(shape, parameter)) &&
		    count < OC_PREDICTIONS_MOST)
			list[count++] = (struct oci_candidate){ .choice = { i, parameter } };
	}
	return count;
}

/* Those of the call's own list that can run it: 0, or -EINVAL and a sentence. */
static int named_candidates(const struct oc_predict_call *call, const struct oci_shape *shape,
			    const struct oci_model *model, struct oci_candidate *list,
			    unsigned int *count, char *error, size_t n)
{
	*count = 0;
	for (unsigned int i = 0; i < call->algorithm_count && *count < OC_PREDICTIONS_MOST; i++) {
		const struct oci_algorithm *a;
		struct oci_forced forced;
		const char *expected = "";

		if (oci_forced_parse(shape->collective, call->algorithms[i], &forced, &expected) ||
		    !forced.forced || forced.choice.algorithm == OCI_CHOICE_MPI) {
			snprintf(error, n, "'%s' is not an algorithm of %s", call->algorithms[i],
				 oci_collective_name(shape->collective));
			return -EINVAL;
		}
		a = oci_algorithm(shape->collective, forced.choice.algorithm);
		if (a->fits && !a->fits(shape, forced.choice.parameter))
			continue;
		list[*count] = (struct oci_candidate){ .choice = forced.choice };
		if (a->cost)
			list[*count].cost = oci_cost_of(a, model, shape, forced.choice.parameter);
		++*count;
	}
	return 0;
}

static bool is_best(const struct oci_candidate *list, unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (list[j].choice.algorithm == list[i].choice.algorithm)
			return false;
	return true;
}

static int add(const struct oci_shape *shape, const struct oci_model *model,
	       const struct oci_candidate *candidate, bool best, bool in_virtual_time,
	       struct oc_prediction *prediction, char *error, size_t n)
{
	const struct oci_algorithm *a =
		oci_algorithm(shape->collective, candidate->choice.algorithm);
	struct oci_virtual_result result;
	int failed;

	*prediction = (struct oc_prediction){
		.best = best,
		.baseline = a->baseline,
		.closed = a->cost != NULL,
		.total = oci_cost_total(&candidate->cost),
		.cost = candidate->cost,
		.virtual_s = -1,
	};
	oci_predict_name(shape->collective, candidate->choice, prediction->algorithm,
			 sizeof(prediction->algorithm));
	if (!in_virtual_time)
		return 0;
	failed = oci_predict(model, shape, candidate->choice, &result, error, n);
	if (failed)
		return failed;
	prediction->virtual_s = result.end_s;
	prediction->most_copiers = result.most_copiers;
	return 0;
}

static int predict(const struct oc_predict_call *call, struct oci_shape *shape,
		   const struct oci_model *model, struct oc_predicted *predicted,
		   struct oc_prediction *list, char *error, size_t n)
{
	struct oci_candidate *candidates = calloc(OC_PREDICTIONS_MOST, sizeof(*candidates));
	struct oci_choice chosen;
	int failed = 0;

	if (!candidates) {
		snprintf(error, n, "no memory");
		return -ENOMEM;
	}
	chosen = decide(call, shape, model, predicted);
	if (call->algorithm_count)
		failed = named_candidates(call, shape, model, candidates, &predicted->count, error,
					  n);
	else
		predicted->count = candidates_of(shape, model, chosen, candidates);
	for (unsigned int i = 0; !failed && i < predicted->count; i++) {
		bool best = is_best(candidates, i);

		/* Plans of the best parameter alone: there may be a dozen of these. */
		failed = add(shape, model, &candidates[i], best,
			     call->virtual_time && (call->algorithm_count || best), &list[i], error,
			     n);
	}
	free(candidates);
	return failed;
}

/* As the ranks of a job agree on it here (team/create.c). */
static bool by_module(const struct oc_predict_call *call, const struct oci_model *model)
{
	enum oci_way way = oci_options()->mechanism;
	bool preferred = way == OCI_WAY_AUTO && oci_model_prefers_kmod(model, call->ranks);
	int fd = call->shm || !(preferred || way == OCI_WAY_KMOD) ? -ENODEV : oci_os_kmod_open();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What is predicted: the call on a node, by a model. */
struct predicting {
	const struct oci_model *model;
	struct oci_model of_profile; /* the model, where it is that of a profile */
	struct oci_shape shape;
};

/* 0, or what is wrong, and a sentence. To be ended if it is 0. */
static int begin(const struct oc_predict_call *call, struct predicting *p, char *error, size_t n)
{
	bool by_shm = call->forced && oci_options()->mechanism == OCI_WAY_SHM;
	bool mapped = call->mapped && !by_shm;
	int failed = 0;

	if ((unsigned int)call->collective >= OC_COLLECTIVES || !call->ranks) {
		snprintf(error, n, "there is no such collective, or there are no ranks");
		return -EINVAL;
	}
	p->shape = (struct oci_shape){
		.collective = call->collective,
		.bytes = call->bytes,
		.unit = oci_is_reduction(call->collective) ? 8 : 1,
		.size = call->ranks,
		.oversubscribed = call->shared_cpus,
		.single_copy = mapped || !(call->shm || by_shm),
		.mapped = mapped,
		.common = call->near ? OCI_TOPO_L3 : OCI_TOPO_MACHINE,
		.large_slots = call->ranks == 2 && call->near && !mapped && !call->shared_cpus &&
			       !call->nonblocking &&
			       oci_large_slots_gain(call->collective, call->bytes),
		.nonblocking = call->nonblocking,
	};
	p->model = &p->of_profile;
	if (call->profile)
		failed = load(call->profile, &p->of_profile, error, n);
	else
		p->model = oci_coll_model();
	if (failed)
		return failed;
	if (!call->profile)
		p->shape.kmod = by_module(call, p->model);
	failed = oci_predict_hierarchy(p->model, call->ranks, &p->shape.hierarchy);
	if (failed)
		snprintf(error, n, "no memory");
	if (failed && call->profile)
		oci_model_destroy(&p->of_profile);
	return failed;
}

static void end(struct predicting *p)
{
	oci_hierarchy_put(p->shape.hierarchy);
	if (p->model == &p->of_profile)
		oci_model_destroy(&p->of_profile);
}

int oc_inspect_predict(const struct oc_predict_call *call, struct oc_predicted *predicted,
		       struct oc_prediction list[OC_PREDICTIONS_MOST], char *error, size_t n)
{
	struct predicting p;
	int failed = begin(call, &p, error, n);

	if (failed)
		return failed;
	tell_model(p.model, predicted);
	failed = predict(call, &p.shape, p.model, predicted, list, error, n);
	end(&p);
	return failed;
}

/* As mpi/common/levels/run.c has it under Open MPI, of calls whose ranks' blocks are alike. NULL:
 * in two levels; `never`: whatever is asked for. */
static const char *handed_back(const struct oc_predict_call *call, uint32_t nodes, bool *never)
{
	enum oc_collective collective = call->collective;
	size_t ranks = (size_t)nodes * call->ranks, all = call->bytes;
	bool own_sizes = oci_is_v(collective) && oci_is_rooted(collective);
	const char *refusal;

	if ((oci_sends_each(collective) || oci_receives_each(collective)) &&
	    !oci_has_parts(collective))
		all *= ranks;
	*never = true;
	if (!oci_nodes_serve(collective))
		return "no call of this function goes in two levels";
	if (!own_sizes && all > INT_MAX)
		return "it has 2 GiB or more";
	if (collective == OC_ALLTOALL && all * call->ranks > OC_LEVELS_ROWS)
		return "a node sends more than 4 MiB";
	*never = false;
	if (call->forced && !oci_options()->enable)
		return "onecopy is off here (ONECOPY)";
	if (call->forced && oci_options()->levels == OCI_LEVELS_OFF)
		return "two levels are off here (ONECOPY_LEVELS)";
	refusal = oc_levels_refusal(collective, own_sizes ? 0 : call->bytes,
				    call->nonblocking ? OC_LEVELS_OPENMPI : OC_LEVELS_BLOCKING);
	if (!refusal && oci_receives_each(collective) && oci_is_rooted(collective) &&
	    !oc_levels_together(collective, call->ranks, own_sizes ? 0 : call->bytes))
		return "with fewer than 16 ranks a node two levels were not quicker";
	return refusal;
}

static const char *reason(const struct oc_nodes_predicted *p)
{
	enum oci_levels asked = oci_options()->levels;

	if (p->handed_back)
		return p->handed_back;
	if (p->shares)
		return asked == OCI_LEVELS_SHARES ?
			       "ONECOPY_LEVELS takes shares for any size" :
			       "a leader of each node would have too much to do for the others";
	return asked == OCI_LEVELS_AUTO ? "nothing that was measured sets it apart" :
					  "ONECOPY_LEVELS takes all that can go so";
}

int oc_inspect_nodes(const struct oc_predict_call *call, uint32_t nodes,
		     struct oc_predicted *predicted, struct oc_nodes_predicted *over_nodes,
		     char *error, size_t n)
{
	size_t together = oc_levels_together(call->collective, call->ranks, call->bytes);
	struct predicting p;
	bool never;
	int failed = begin(call, &p, error, n);

	if (failed)
		return failed;
	tell_model(p.model, predicted);
	*over_nodes = (struct oc_nodes_predicted){ .handed_back = handed_back(call, nodes, &never),
						   .shares = oci_nodes_in_shares(&p.shape, nodes) };
	over_nodes->why = reason(over_nodes);
	if (!oci_nodes_serve(call->collective)) {
		failed = -ENOTSUP;
	} else if (!oci_network_known(p.model)) {
		snprintf(error, n, "the model %s knows no network", p.model->name);
		failed = -ENODATA;
	}
	if (!failed && !never)
		failed = oci_nodes_predict(p.model, &p.shape, nodes, together, &over_nodes->levels,
					   error, n);
	if (!failed)
		failed = oci_flat_quickest(p.model, call->collective, call->bytes, nodes,
					   call->ranks, &over_nodes->flat);
	if (failed && !*error)
		snprintf(error, n, "%s", strerror(-failed));
	end(&p);
	return failed;
}

/* Ranks that fill the profile's machine core by core; without a profile they are flat. */
static int hierarchy_of(const char *profile, uint32_t size, const struct oci_hierarchy **hierarchy,
			char *error, size_t n)
{
	struct oci_model model;
	int failed;

	*hierarchy = NULL;
	if (!profile)
		return 0;
	if (load(profile, &model, error, n))
		return -EINVAL;
	failed = oci_predict_hierarchy(&model, size, hierarchy);
	oci_model_destroy(&model);
	return failed;
}

static int print_dot(int fd, const char *algorithm, struct oci_plan **plans, uint32_t size)
{
	int copy = dup(fd);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	/* Where it is not open for writing, that is EINVAL. */
	if (!out)
		return copy < 0 || errno == EINVAL ? -EBADF : -errno;
	oci_plan_dump_dot(out, algorithm, (const struct oci_plan *const *)plans, size);
	return fclose(out) ? -errno : 0;
}

int oc_inspect_plan_dot(int fd, enum oc_collective collective, const char *algorithm, uint32_t size,
			const char *profile, char *error, size_t n)
{
	const struct oci_hierarchy *hierarchy;
	const struct oci_algorithm *a;
	struct oci_plan **plans;
	struct oci_forced forced;
	const char *expected;
	int failed;

	if (!size || oci_forced_parse(collective, algorithm, &forced, &expected) ||
	    !forced.forced || forced.choice.algorithm == OCI_CHOICE_MPI) {
		snprintf(error, n, "auto and mpi are no algorithms, so they have no plan");
		return -EINVAL;
	}
	failed = hierarchy_of(profile, size, &hierarchy, error, n);
	if (failed)
		return failed;
	failed = oci_predict_plans(&(struct oci_shape){ .collective = collective,
							.size = size,
							.hierarchy = hierarchy },
				   forced.choice, &plans);
	if (!failed) {
		failed = print_dot(fd, algorithm, plans, size);
		oci_predict_forget(plans, size);
	}
	a = oci_algorithm(collective, forced.choice.algorithm);
	if (failed == -EINVAL)
		snprintf(error, n, "%s of %s has no plan on %u ranks: it needs %s", algorithm,
			 oci_collective_name(collective), size,
			 a->needs ? a->needs : "more of them");
	oci_hierarchy_put(hierarchy);
	return failed;
}
