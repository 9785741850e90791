/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpi/common asks of the MPI, by PMPI_ functions.
 *
 * What is known of a datatype is worked out once. It is an attribute of the type, predefined or
 * derived, and dies with it. Each thread has a cache in front, good for derived types until any of
 * them dies, as handles come back.
 */
#include "pmpi.h"

#include "common/contents.h"
#include "common/flatten.h"

#include <stdlib.h>

/* ---- datatypes --------------------------------------------------------------------------------
 */

struct known {
	struct oci_port_type shape;
	bool predefined;
	/* Bit oci_port_op_id(): this operation has a meaning for it; bit 16 above: that was asked.
	 * Atomic; asked when first needed, as each no of the MPI takes it microseconds. */
	uint32_t ops;
	struct oci_mpi_pieces *packing; /* common/flatten.h's */
};
enum { ASKED = 16 };

enum { CACHED = 32 };
#define FOR_EVER UINT32_MAX

static OCI_TLS struct {
	MPI_Datatype type;
	uint32_t generation;
	struct known *known;
} cache[CACHED];
static uint32_t generation = 1; /* the empty cache's is 0 */
static int key = MPI_KEYVAL_INVALID;

static int type_gone(MPI_Datatype type, int keyval, void *value, void *extra)
{
	struct known *known = value;

	(void)type;
	(void)keyval;
	(void)extra;
	oci_mpi_packing_close(known->packing);
	free(known);
	/* Release: pairs with the acquire below, in a thread that gets the handle for a new type.
	 */
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
	return MPI_SUCCESS;
}

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

static void look_at(MPI_Datatype type, struct known *known)
{
	MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
	struct oci_port_type *shape = &known->shape;

	*known = (struct known){ .predefined = oci_mpi_is_predefined(type) };
	PMPI(Type_size_x)(type, &size);
	PMPI(Type_get_extent_x)(type, &lower, &extent);
	PMPI(Type_get_true_extent_x)(type, &true_lower, &true_extent);
	*shape = (struct oci_port_type){
		.size = (size_t)size,
		.extent = (ptrdiff_t)extent,
		.true_lb = (ptrdiff_t)true_lower,
		.true_extent = (ptrdiff_t)true_extent,
	};
	shape->contiguous = !size || (size == true_extent &&
				      (known->predefined || oci_mpi_lies_together(type)));
	shape->dense = shape->contiguous && size == extent;
}

static struct known *recall(MPI_Datatype type)
{
	struct known *known = NULL;
	int found = 0;

	if (PMPI(Type_get_attr)(type, key, &known, &found) != MPI_SUCCESS || !found)
		return NULL;
	return known;
}

/* Another thread may have kept its own meanwhile, which stays, as it may be in use. NULL: nothing
 * can be kept. */
static struct known *keep(MPI_Datatype type, const struct known *looked)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct known *known, *own = malloc(sizeof(*own));

	pthread_mutex_lock(&lock);
	known = recall(type);
	if (!known && own) {
		*own = *looked;
		if (PMPI(Type_set_attr)(type, key, own) == MPI_SUCCESS)
			known = own;
	}
	pthread_mutex_unlock(&lock);
	if (known != own)
		free(own);
	return known;
}

/* Not in this thread's cache, or not any more. */
static __attribute__((noinline)) struct known *find(MPI_Datatype type, uint32_t now, size_t slot)
{
	static OCI_TLS struct known spare;
	struct known looked, *known = recall(type);

	if (!known) {
		/* Comes back here for the types that this one is made of. */
		look_at(type, &looked);
		known = keep(type, &looked);
	}
	if (!known) {
		oci_mpi_packing_close(spare.packing);
		spare = looked;
		return &spare;
	}
	cache[slot].type = type;
	cache[slot].generation = known->predefined ? FOR_EVER : now;
	cache[slot].known = known;
	return known;
}

/* Good until this thread asks for another one. */
static inline struct known *known_of(MPI_Datatype type)
{
	/* Acquire: pairs with the release of type_gone(). */
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE), handle = (uint32_t)type;
	size_t slot = (handle ^ handle >> 8) % CACHED;

	if (OCI_LIKELY(cache[slot].type == type &&
		       (cache[slot].generation == FOR_EVER || cache[slot].generation == now)))
		return cache[slot].known;
	return find(type, now, slot);
}

void oci_port_type_get(MPI_Datatype type, struct oci_port_type *shape)
{
	*shape = OCI_LIKELY(type != MPI_DATATYPE_NULL) ? known_of(type)->shape :
							 (struct oci_port_type){ 0 };
}

bool oci_pmpi_type_predefined(MPI_Datatype type)
{
	return known_of(type)->predefined;
}

int oci_pmpi_port_start(void)
{
	return PMPI(Type_create_keyval)(MPI_TYPE_NULL_COPY_FN, type_gone, &key, NULL);
}

/* Attributes of types that live on keep the function until they die. */
void oci_pmpi_port_stop(void)
{
	PMPI(Type_free_keyval)(&key);
}

/* ---- bytes ------------------------------------------------------------------------------------
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

static int convert(void *user, void *packed, MPI_Count count, MPI_Datatype type, bool unpack)
{
	const MPI_Count most = PTRDIFF_MAX;
	MPI_Count at = 0;
	int error;

	if (!user) {
		error = seen_from_elsewhere((size_t)count, type, &type);
		if (error)
			return error;
		error = convert((void *)ELSEWHERE, packed, 1, type, unpack);
		PMPI(Type_free)(&type);
		return error;
	}
	if (unpack)
		return PMPI(Unpack_c)(packed, most, &at, user, count, type, oci_pmpi_job.self);
	return PMPI(Pack_c)(user, count, type, packed, most, &at, oci_pmpi_job.self);
}

static int move(void *packed, void *user, size_t count, MPI_Datatype type, bool unpack)
{
	if (oci_mpi_pieces_move(&known_of(type)->packing, packed, user, count, type, unpack))
		return MPI_SUCCESS;
	return convert(user, packed, (MPI_Count)count, type, unpack);
}

int oci_port_pack(void *packed, const void *user, size_t count, MPI_Datatype type)
{
	return move(packed, (void *)(uintptr_t)user, count, type, false);
}

int oci_port_unpack(void *user, const void *packed, size_t count, MPI_Datatype type)
{
	return move((void *)(uintptr_t)packed, user, count, type, true);
}

/* ---- operations -------------------------------------------------------------------------------
 */

static const MPI_Op operations[] = {
	MPI_SUM, MPI_MAX,  MPI_MIN,  MPI_PROD,	 MPI_LAND,   MPI_BAND,	  MPI_LOR,
	MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP,
};
#define OPS (sizeof(operations) / sizeof(operations[0]))

_Static_assert(OPS < ASKED, "two bits for each operation");

uint32_t oci_port_op_id(MPI_Op op)
{
	for (uint32_t i = 0; i < OPS; i++)
		if (operations[i] == op)
			return i + 1;
	return 0;
}

/* By the MPI's own check, which comes before the count of 0. Errors of job.self return. */
static bool fits(MPI_Op op, MPI_Datatype type)
{
	char in[1] = { 0 }, out[1] = { 0 };

	return PMPI(Reduce)(in, out, 0, type, op, 0, oci_pmpi_job.self) == MPI_SUCCESS;
}

/* One of the MPI's that is not in the standard, such as MPIX_EQUAL, whose result is one int. The
 * upper two bits of a handle say whose it is. */
static bool is_extension(MPI_Op op)
{
	enum { BUILT_IN = 1, SHIFT = 30 };

	return (unsigned int)op >> SHIFT == BUILT_IN;
}

/* Any type has a meaning for an operation of the program's. */
bool oci_pmpi_op_fits(MPI_Op op, MPI_Datatype type)
{
	uint32_t id = oci_port_op_id(op), ops;
	struct known *known;
	bool yes;

	if (!id)
		return !is_extension(op);
	known = known_of(type);
	/* Relaxed, here and below: the bits are all that is said. */
	ops = __atomic_load_n(&known->ops, __ATOMIC_RELAXED);
	if (OCI_LIKELY(ops >> (id + ASKED) & 1))
		return ops >> id & 1;
	yes = fits(op, type);
	__atomic_fetch_or(&known->ops, 1u << (id + ASKED) | (uint32_t)yes << id, __ATOMIC_RELAXED);
	return yes;
}

bool oci_port_op_commutes(MPI_Op op)
{
	int commutes = 0;

	if (OCI_LIKELY(op != MPI_REPLACE && op != MPI_NO_OP && oci_port_op_id(op)))
		return true;
	PMPI(Op_commutative)(op, &commutes);
	return commutes;
}

/* It is a call of the MPI. */
bool oci_port_op_any_thread(MPI_Op op, MPI_Datatype type)
{
	(void)type;
	return oci_pmpi_job.threads && oci_port_op_id(op);
}

int oci_port_op_apply(MPI_Op op, const void *in, void *inout, size_t count, MPI_Datatype type)
{
	return PMPI(Reduce_local_c)(in, inout, (MPI_Count)count, type, op);
}

/* ---- communicators and errors -----------------------------------------------------------------
 *
 * Nonblocking collectives on all members, as blocking ones do not match these, and as this process
 * may be needed meanwhile for something else of ours. On the program's communicator: a duplicate
 * would be one of MPICH's 2048 context ids.
 */

int oci_port_least(struct oci_mpi_comm *comm, const long own[2], long least[2])
{
	MPI_Request request;
	int error;

	oci_pmpi_mover_start();
	error = PMPI(Iallreduce)(own, least, 2, MPI_LONG, MPI_MIN, comm->comm, &request);
	return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE);
}

int oci_port_allgather(struct oci_mpi_comm *comm, const void *send, size_t bytes, void *receive)
{
	MPI_Request request;
	int error = PMPI(Iallgather)(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE,
				     comm->comm, &request);

	return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE);
}

uint64_t oci_port_node(struct oci_mpi_comm *comm, uint32_t rank)
{
	int own = (int)rank, world = 0;
	MPI_Group group;

	if (PMPI(Comm_group)(comm->comm, &group) != MPI_SUCCESS)
		return 0;
	PMPI(Group_translate_ranks)(group, 1, &own, oci_pmpi_job.group, &world);
	PMPI(Group_free)(&group);
	return oci_pmpi_job.place[world].node;
}

/* Where MPICH has no communicator left, which is no error of the program's. */
int oci_port_part(struct oci_mpi_comm *comm, const uint32_t *ranks, uint32_t count, MPI_Comm *part)
{
	MPI_Errhandler handler = oci_pmpi_hush(comm->comm);
	int color = !ranks ? 0 : count ? (int)ranks[0] : MPI_UNDEFINED;
	int place = ranks ? 0 : (int)comm->rank, error;

	while ((uint32_t)place < count && ranks[place] != comm->rank)
		place++;
	error = OCI_HELPED(PMPI(Comm_split)(comm->comm, color, place, part));
	oci_pmpi_unhush(comm->comm, handler);
	if (!error && *part != MPI_COMM_NULL)
		error = PMPI(Comm_set_errhandler)(*part, MPI_ERRORS_RETURN);
	return error;
}

/*
 * Where calls have failed there may be messages that nobody takes, and MPICH (since 4.1) ends a job
 * that frees a communicator while such have arrived. Its launcher ends a job in which a rank has
 * died, so the sender of a large one is there to send it.
 */
static void drain(MPI_Comm part)
{
	MPI_Message message;
	MPI_Status status;
	int there = 0, bytes;

	while (!PMPI(Improbe)(MPI_ANY_SOURCE, MPI_ANY_TAG, part, &there, &message, &status) &&
	       there) {
		void *sink;

		PMPI(Get_count)(&status, MPI_BYTE, &bytes);
		sink = bytes > 0 ? malloc((size_t)bytes) : NULL;
		/* Without memory it is cut short, and gone as well. */
		bytes = sink ? bytes : 0;
		PMPI(Mrecv)(sink, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		free(sink);
	}
}

void oci_port_free(MPI_Comm *part)
{
	drain(*part);
	PMPI(Comm_free)(part);
}

struct oci_mpi_comm *oci_port_comm(MPI_Comm part)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(part);

	return state && !state->reason ? &state->mpi : NULL;
}

void oci_port_turn(struct oci_mpi_comm *comm, uint32_t *turns)
{
	(void)comm;
	oci_pmpi_drive_from_engine();
	oci_pmpi_drive();
	oci_pmpi_pause(turns);
}

uint32_t oci_port_node_ranks(void)
{
	return oci_pmpi_job.node_ranks;
}

/* Of a class of our own: MPICH makes no codes of a predefined one. */
int oci_port_error_add(const char *sentence, int *code)
{
	static int class = MPI_ERR_OTHER;
	int error = MPI_SUCCESS;

	if (class == MPI_ERR_OTHER)
		error = PMPI(Add_error_class)(&class);
	if (!error)
		error = PMPI(Add_error_string)(class, "onecopy: a collective failed");
	if (!error)
		error = PMPI(Add_error_code)(class, code);
	return error ? error : PMPI(Add_error_string)(*code, sentence);
}
