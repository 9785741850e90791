/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpi/common asks of the MPI, by PMPI_ functions.
 *
 * The shape of a datatype is worked out once. Predefined ones are in a table, made in MPI_Init and
 * only read after; a derived one has its shape as an attribute, which dies with it; and each thread
 * has a cache of derived ones in front, good until any of them dies, as handles come back.
 */
#include "pmpi.h"

#include "common/contents.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the shape of one -------------------------------------------------------------------------
 */

/* Types are asked for their contents as those with large counts are: the classic functions refuse
 * these, and the error is that of MPI_COMM_WORLD's handler. */
int oci_port_type_envelope(MPI_Datatype type, struct oci_port_envelope *e)
{
	MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
	int combiner = MPI_COMBINER_NAMED, error;

	error = PMPI(Type_get_envelope_c)(type, &integers, &addresses, &counts, &types, &combiner);
	*e = (struct oci_port_envelope){ combiner, (size_t)integers, (size_t)addresses,
					 (size_t)counts, (size_t)types };
	return error;
}

int oci_port_type_contents(MPI_Datatype type, const struct oci_port_envelope *e, int *integers,
			   MPI_Aint *addresses, MPI_Count *counts, MPI_Datatype *types)
{
	return PMPI(Type_get_contents_c)(type, (MPI_Count)e->integers, (MPI_Count)e->addresses,
					 (MPI_Count)e->counts, (MPI_Count)e->types, integers,
					 addresses, counts, types);
}

int oci_port_type_free(MPI_Datatype *type)
{
	return PMPI(Type_free)(type);
}

/* Those whose contents are a few numbers and one type; false for all others. */
static bool take_apart(MPI_Datatype type, struct oci_mpi_contents *c)
{
	switch (oci_mpi_combiner(type)) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_CONTIGUOUS:
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR:
		return oci_mpi_contents_open(c, type);
	default:
		return false;
	}
}

/*
 * Packs one element that is filled with a pattern that repeats in no way that a layout could:
 * packed bytes that equal those in memory come from the same places, in order. Types of more than 1
 * MiB that take_apart() does not know are packed; this says nothing wrong of them, only less.
 */
static bool packs_in_place(MPI_Datatype type, const struct oci_port_type *shape)
{
	unsigned char *memory, *packed;
	uint64_t state = 88172645463325252u;
	bool same = false;

	if (shape->size > (size_t)1 << 20)
		return false;
	memory = malloc(shape->size);
	packed = malloc(shape->size);
	for (size_t i = 0; memory && i < shape->size; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memory[i] = (unsigned char)state;
	}
	if (memory && packed &&
	    oci_port_pack(packed, (void *)((uintptr_t)memory - (uintptr_t)shape->true_lb), 1,
			  type) == MPI_SUCCESS)
		same = !memcmp(memory, packed, shape->size);
	free(memory);
	free(packed);
	return same;
}

static bool child_is_dense(const struct oci_port_type *child)
{
	return child->contiguous && (ptrdiff_t)child->size == child->extent;
}

/* The elements of one that take_apart() knows. */
static bool follows(const struct oci_mpi_contents *c, const struct oci_port_type *child)
{
	bool dense = child_is_dense(child);

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
		return child->contiguous;
	case MPI_COMBINER_CONTIGUOUS:
		return c->number[0] == 1 ? child->contiguous : dense;
	case MPI_COMBINER_VECTOR:
		return dense && (c->number[0] == 1 || c->number[2] == c->number[1]);
	default: /* MPI_COMBINER_HVECTOR */
		return dense && (c->number[0] == 1 || c->place[0] == c->number[1] * child->extent);
	}
}

static bool lies_together(MPI_Datatype type, const struct oci_port_type *shape)
{
	struct oci_port_type child;
	struct oci_mpi_contents c;
	bool together;

	if (!shape->size)
		return true;
	if ((ptrdiff_t)shape->size != shape->true_extent)
		return false;
	if (!take_apart(type, &c))
		return packs_in_place(type, shape);
	oci_port_type_get(c.type[0], &child);
	together = follows(&c, &child);
	oci_mpi_contents_close(&c);
	return together;
}

static void look_at(MPI_Datatype type, struct oci_port_type *shape)
{
	MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;

	PMPI(Type_size_x)(type, &size);
	PMPI(Type_get_extent_x)(type, &lower, &extent);
	PMPI(Type_get_true_extent_x)(type, &true_lower, &true_extent);
	*shape = (struct oci_port_type){
		.size = (size_t)size,
		.extent = (ptrdiff_t)extent,
		.true_lb = (ptrdiff_t)true_lower,
		.true_extent = (ptrdiff_t)true_extent,
	};
	shape->contiguous = lies_together(type, shape);
	shape->dense = shape->contiguous && (ptrdiff_t)shape->size == shape->extent;
}

/* ---- predefined ones --------------------------------------------------------------------------
 */

#define ASKED 16
#define SLOTS 512 /* a power of two, more than twice as many as there are */

static struct known {
	MPI_Datatype type;
	bool used;
	/* Bit oci_port_op_id(): this operation has a meaning for it; bit 16 above: that was asked.
	 * Atomic; asked when first needed, as each no of the MPI takes it microseconds. */
	uint32_t ops;
	struct oci_port_type shape;
} known[SLOTS];

static size_t slot_of(MPI_Datatype type)
{
	uint32_t handle = (uint32_t)(uintptr_t)type;

	return (handle * 2654435761u) >> 23; /* the upper 9 bits of Knuth's product */
}

static struct known *find_known(MPI_Datatype type)
{
	for (size_t i = slot_of(type);; i = (i + 1) % SLOTS) {
		if (!known[i].used)
			return NULL;
		if (known[i].type == type)
			return &known[i];
	}
}

static const MPI_Op operations[] = {
	MPI_SUM, MPI_MAX,  MPI_MIN,  MPI_PROD,	 MPI_LAND,   MPI_BAND,	  MPI_LOR,
	MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP,
};
#define OPS (sizeof(operations) / sizeof(operations[0]))

_Static_assert(OPS < ASKED, "two bits for each operation");

/* By the MPI's own check, which comes before the count of 0. Errors of job.self return. */
static bool fits(MPI_Op op, MPI_Datatype type)
{
	char in[1] = { 0 }, out[1] = { 0 };

	return PMPI(Reduce)(in, out, 0, type, op, 0, oci_pmpi_job.self) == MPI_SUCCESS;
}

bool oci_pmpi_type_predefined(MPI_Datatype type)
{
	return find_known(type) != NULL;
}

/* Any type has a meaning for an operation of the program's. */
bool oci_pmpi_op_fits(MPI_Op op, MPI_Datatype type)
{
	uint32_t id = oci_port_op_id(op), ops;
	struct known *predefined = find_known(type);
	bool yes;

	if (!id)
		return true;
	if (!predefined)
		return fits(op, type);
	/* Relaxed, here and below: the bits are all that is said. */
	ops = __atomic_load_n(&predefined->ops, __ATOMIC_RELAXED);
	if (OCI_LIKELY(ops >> (id + ASKED) & 1))
		return ops >> id & 1;
	yes = fits(op, type);
	__atomic_fetch_or(&predefined->ops, 1u << (id + ASKED) | (uint32_t)yes << id,
			  __ATOMIC_RELAXED);
	return yes;
}

static void know(MPI_Datatype type)
{
	struct oci_port_type shape;
	size_t i = slot_of(type);

	/* An optional type that this MPI lacks is null. */
	if (type == MPI_DATATYPE_NULL || find_known(type))
		return;
	look_at(type, &shape);
	while (known[i].used)
		i = (i + 1) % SLOTS;
	known[i] = (struct known){ .type = type, .used = true, .shape = shape };
}

static void know_all(void)
{
	const MPI_Datatype all[] = {
		MPI_CHAR,
		MPI_SIGNED_CHAR,
		MPI_UNSIGNED_CHAR,
		MPI_BYTE,
		MPI_PACKED,
		MPI_WCHAR,
		MPI_SHORT,
		MPI_UNSIGNED_SHORT,
		MPI_INT,
		MPI_UNSIGNED,
		MPI_LONG,
		MPI_UNSIGNED_LONG,
		MPI_LONG_LONG,
		MPI_UNSIGNED_LONG_LONG,
		MPI_FLOAT,
		MPI_DOUBLE,
		MPI_LONG_DOUBLE,
		MPI_INT8_T,
		MPI_INT16_T,
		MPI_INT32_T,
		MPI_INT64_T,
		MPI_UINT8_T,
		MPI_UINT16_T,
		MPI_UINT32_T,
		MPI_UINT64_T,
		MPI_C_BOOL,
		MPI_C_FLOAT_COMPLEX,
		MPI_C_DOUBLE_COMPLEX,
		MPI_C_LONG_DOUBLE_COMPLEX,
		MPI_AINT,
		MPI_OFFSET,
		MPI_COUNT,
		MPI_FLOAT_INT,
		MPI_DOUBLE_INT,
		MPI_LONG_INT,
		MPI_SHORT_INT,
		MPI_2INT,
		MPI_LONG_DOUBLE_INT,
		MPI_CXX_BOOL,
		MPI_CXX_FLOAT_COMPLEX,
		MPI_CXX_DOUBLE_COMPLEX,
		MPI_CXX_LONG_DOUBLE_COMPLEX,
		MPI_CHARACTER,
		MPI_LOGICAL,
		MPI_INTEGER,
		MPI_REAL,
		MPI_DOUBLE_PRECISION,
		MPI_COMPLEX,
		MPI_DOUBLE_COMPLEX,
		MPI_2REAL,
		MPI_2DOUBLE_PRECISION,
		MPI_2INTEGER,
		MPI_INTEGER1,
		MPI_INTEGER2,
		MPI_INTEGER4,
		MPI_INTEGER8,
		MPI_REAL4,
		MPI_REAL8,
		MPI_REAL16,
		MPI_COMPLEX8,
		MPI_COMPLEX16,
		MPI_COMPLEX32,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		know(all[i]);
}

/* ---- derived ones -----------------------------------------------------------------------------
 */

#define CACHED 16

static OCI_TLS struct {
	MPI_Datatype type;
	uint32_t generation;
	struct oci_port_type shape;
} cache[CACHED];
static uint32_t generation = 1; /* the empty cache's is 0 */
static int key = MPI_KEYVAL_INVALID;

static int type_gone(MPI_Datatype type, int keyval, void *value, void *extra)
{
	(void)type;
	(void)keyval;
	(void)extra;
	free(value);
	/* Release: pairs with the acquire below, in a thread that gets the handle for a new type.
	 */
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	return MPI_SUCCESS;
}

/* Another thread may keep its own in place of the one that is being read. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static bool recall_kept(MPI_Datatype type, struct oci_port_type *shape)
{
	struct oci_port_type *kept = NULL;
	int found = 0;

	if (PMPI(Type_get_attr)(type, key, &kept, &found) != MPI_SUCCESS || !found)
		return false;
	*shape = *kept;
	return true;
}

static void recall(MPI_Datatype type, struct oci_port_type *shape)
{
	struct oci_port_type *kept, other;
	bool found;

	if (key == MPI_KEYVAL_INVALID) {
		look_at(type, shape);
		return;
	}
	pthread_mutex_lock(&kept_lock);
	found = recall_kept(type, shape);
	pthread_mutex_unlock(&kept_lock);
	if (found)
		return;
	/* Without the lock: it comes back here for the types that this one is made of. */
	look_at(type, shape);
	kept = malloc(sizeof(*kept));
	if (!kept)
		return;
	*kept = *shape;
	pthread_mutex_lock(&kept_lock);
	if (recall_kept(type, &other) || PMPI(Type_set_attr)(type, key, kept) != MPI_SUCCESS)
		free(kept);
	pthread_mutex_unlock(&kept_lock);
}

void oci_port_type_get(MPI_Datatype type, struct oci_port_type *shape)
{
	const struct known *predefined = find_known(type);
	uint32_t now, handle = (uint32_t)(uintptr_t)type;
	unsigned int i = (handle ^ handle >> 8) % CACHED;

	if (OCI_LIKELY(predefined)) {
		*shape = predefined->shape;
		return;
	}
	if (type == MPI_DATATYPE_NULL) {
		*shape = (struct oci_port_type){ 0 };
		return;
	}
	now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
	if (cache[i].type == type && cache[i].generation == now) {
		*shape = cache[i].shape;
		return;
	}
	/* Not into the cache's place: on its way it looks up other types, perhaps in this place. */
	recall(type, shape);
	cache[i].type = type;
	cache[i].generation = now;
	cache[i].shape = *shape;
}

int oci_pmpi_port_start(void)
{
	know_all();
	return PMPI(Type_create_keyval)(MPI_TYPE_NULL_COPY_FN, type_gone, &key, NULL);
}

/* Attributes of types that live on keep the function until they die. */
void oci_pmpi_port_stop(void)
{
	PMPI(Type_free_keyval)(&key);
}

/* ---- bytes and operations ---------------------------------------------------------------------
 */

/*
 * MPICH 4.0.2's MPI_Pack and MPI_Unpack refuse MPI_BOTTOM, which is NULL: the same places as seen
 * from another address.
 */
#define ELSEWHERE ((MPI_Aint)4096)

static int seen_from_elsewhere(size_t count, MPI_Datatype type, MPI_Datatype *seen)
{
	const MPI_Aint back = -ELSEWHERE;
	const MPI_Count length = (MPI_Count)count;
	MPI_Datatype all;
	int error, one = 1;

	error = PMPI(Type_contiguous_c)(length, type, &all);
	if (error)
		return error;
	error = PMPI(Type_create_hindexed)(1, &one, &back, all, seen);
	PMPI(Type_free)(&all);
	return error ? error : PMPI(Type_commit)(seen);
}

int oci_port_pack(void *packed, const void *user, size_t count, MPI_Datatype type)
{
	MPI_Count at = 0;
	int error;

	if (user)
		return PMPI(Pack_c)(user, (MPI_Count)count, type, packed, (MPI_Count)PTRDIFF_MAX,
				    &at, oci_pmpi_job.self);
	error = seen_from_elsewhere(count, type, &type);
	if (error)
		return error;
	error = PMPI(Pack_c)((const void *)ELSEWHERE, 1, type, packed, (MPI_Count)PTRDIFF_MAX, &at,
			     oci_pmpi_job.self);
	PMPI(Type_free)(&type);
	return error;
}

int oci_port_unpack(void *user, const void *packed, size_t count, MPI_Datatype type)
{
	MPI_Count at = 0;
	int error;

	if (user)
		return PMPI(Unpack_c)(packed, (MPI_Count)PTRDIFF_MAX, &at, user, (MPI_Count)count,
				      type, oci_pmpi_job.self);
	error = seen_from_elsewhere(count, type, &type);
	if (error)
		return error;
	error = PMPI(Unpack_c)(packed, (MPI_Count)PTRDIFF_MAX, &at, (void *)ELSEWHERE, 1, type,
			       oci_pmpi_job.self);
	PMPI(Type_free)(&type);
	return error;
}

uint32_t oci_port_op_id(MPI_Op op)
{
	for (uint32_t i = 0; i < OPS; i++)
		if (operations[i] == op)
			return i + 1;
	return 0;
}

bool oci_port_op_commutes(MPI_Op op)
{
	int commutes = 0;

	if (OCI_LIKELY(op != MPI_REPLACE && op != MPI_NO_OP && oci_port_op_id(op)))
		return true;
	PMPI(Op_commutative)(op, &commutes);
	return commutes;
}

int oci_port_op_apply(MPI_Op op, const void *in, void *inout, size_t count, MPI_Datatype type)
{
	return PMPI(Reduce_local_c)(in, inout, (MPI_Count)count, type, op);
}
