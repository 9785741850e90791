/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap of a team: nonblocking allgathers over point-to-point messages.
 *
 * A first PMPI_Iallgather on the program's communicator, which all members start at the same place
 * among their collectives, tells each member the others' number for this team. It is also what
 * keeps a communicator alive that is freed in the meantime. All else are messages on our duplicate
 * of MPI_COMM_WORLD, tagged with the sender's number: a collective on the program's communicator,
 * or a duplicate of it, would have to be started by all members at one place, and MPICH has no more
 * than 2048 communicators' worth of context ids.
 *
 * In an allgather each member sends its block to each other one. Messages of one pair and tag do
 * not overtake each other, so one number is enough for all allgathers of a team. Fewer messages
 * would do (Bruck's needs log2 p a rank), but then a member owes others what it has not received
 * yet. Here it owes nothing once it has begun, and can leave at any time: it sends its messages of
 * the next allgather, without a block, at once, and need not be there any more (withdraw). Since
 * they carry its own number, it can do so before it knows anybody's. Should there be no next
 * allgather, as the team is refused already, they stay where they are; their tag is used again
 * after as many teams as MPI_TAG_UB has room for.
 *
 * A member without memory for its part sends messages without a block, too. Each member hears from
 * each other one, so one that sends none makes the allgather fail on all, and the team is refused
 * alike.
 */
#include "pmpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bootstrap {
	uint32_t rank, size;
	int own;      /* my number for this team */
	int *numbers; /* the others'; one block with the arrays that follow, size each */
	int *ranks;   /* in MPI_COMM_WORLD */
	MPI_Request *receives, *sends;
	MPI_Request first;
	bool running; /* an allgather is under way, */
	bool begun;   /* and its messages are */
	int refused;  /* 0, or why the allgather fails: -ENOMEM; -ECANCELED, a member has left */
	bool told;    /* the others have this member's messages of the next one to begin */
	uint32_t at;  /* the first peer whose message has not been found complete */
	size_t bytes;
	char *blocks;		/* in rank order; NULL: no memory */
	char *result;		/* the engine's buffer */
	struct bootstrap *next; /* among the left ones */
};

static uint32_t next_number;
static uint32_t alive;

/* Released with messages under way. The MPI, which may call functions of the program, is not called
 * with the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bootstrap *left;
static uint32_t left_count;

/* For a rank without memory: its arrays, for MPI_COMM_WORLD's size. One at a time. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static int *spare;

/* Where a rank without memory receives: bytes that all lie at one place. MPI_Test of a message that
 * is longer than its buffer would be an error of the program, whatever the communicator's handler.
 */
static MPI_Datatype sink; /* a byte, of extent 0 */
static char drop;

/* Bytes of a message without a block; a block has more. */
enum { NO_MEMORY = 0, HAS_LEFT = 1, LEAST = 2 };

static size_t arrays_bytes(uint32_t size)
{
	return size * 2 * (sizeof(int) + sizeof(MPI_Request));
}

static void bootstrap_free(struct bootstrap *self)
{
	free(self->numbers);
	free(self->blocks);
	free(self);
}

/* The request of a block is kept, that of a message without one is over for us at once. */
static int send_to(struct bootstrap *self, uint32_t to, size_t bytes)
{
	const char *block = bytes < LEAST ? &drop : self->blocks + self->rank * self->bytes;
	MPI_Request gone, *request = bytes < LEAST ? &gone : &self->sends[to];
	int error = PMPI(Isend)(block, (int)bytes, MPI_BYTE, self->ranks[to], self->own,
				oci_pmpi_job.world, request);

	if (!error && bytes < LEAST)
		error = PMPI(Request_free)(&gone);
	return error;
}

static int receive_from(struct bootstrap *self, uint32_t from)
{
	if (self->blocks)
		return PMPI(Irecv)(self->blocks + from * self->bytes, (int)self->bytes, MPI_BYTE,
				   self->ranks[from], self->numbers[from], oci_pmpi_job.world,
				   &self->receives[from]);
	return PMPI(Irecv)(&drop, INT32_MAX, sink, self->ranks[from], self->numbers[from],
			   oci_pmpi_job.world, &self->receives[from]);
}

/* The ranks behind this one come first, so that not all ranks send to the same one. */
static uint32_t behind(const struct bootstrap *self, uint32_t step)
{
	return (self->rank + step) % self->size;
}

static int send_to_all(struct bootstrap *self, size_t bytes)
{
	int error = MPI_SUCCESS;

	for (uint32_t i = 1; i < self->size && !error; i++)
		error = send_to(self, behind(self, i), bytes);
	return error ? -EIO : 0;
}

static int begin(struct bootstrap *self)
{
	int error = MPI_SUCCESS;

	self->begun = true;
	for (uint32_t i = 1; i < self->size && !error; i++)
		error = receive_from(self, behind(self, self->size - i));
	if (error)
		return -EIO;
	if (self->told)
		self->refused = self->refused ? self->refused : -ECANCELED;
	else
		error = send_to_all(self, self->refused ? NO_MEMORY : self->bytes);
	self->told = false;
	return error;
}

static int allgather_start(void *context, const void *send, size_t bytes, void *receive)
{
	struct bootstrap *self = context;

	if (self->running)
		return -EBUSY;
	self->blocks = send && bytes <= INT32_MAX / self->size ? malloc(self->size * bytes) : NULL;
	self->refused = self->blocks ? 0 : -ENOMEM;
	self->bytes = bytes;
	if (!self->refused)
		memcpy(self->blocks + self->rank * bytes, send, bytes);
	self->result = receive;
	self->at = 1;
	self->running = true;
	self->begun = false;
	return 0;
}

/* 1 and the request is null: complete (or there was none); 0: not yet; -errno. */
static int finish(MPI_Request *request, int *bytes)
{
	MPI_Status status;
	int done;

	if (*request == MPI_REQUEST_NULL)
		return 1;
	if (PMPI(Test)(request, &done, &status) != MPI_SUCCESS) {
		*request = MPI_REQUEST_NULL;
		return -EIO;
	}
	if (done && bytes)
		PMPI(Get_count)(&status, MPI_BYTE, bytes);
	return done;
}

/* Of two reasons the same one wins on all members. */
static bool receive_over(struct bootstrap *self, uint32_t from)
{
	int bytes = NO_MEMORY, done = finish(&self->receives[from], &bytes);

	if (done == 1 && (size_t)bytes == self->bytes)
		return true;
	if (done && (bytes != HAS_LEFT || !self->refused))
		self->refused = bytes == HAS_LEFT ? -ECANCELED : -ENOMEM;
	return done;
}

static int allgather_test(void *context)
{
	struct bootstrap *self = context;
	int done = oci_pmpi_may_call() ? finish(&self->first, NULL) : 0;

	if (done == 1 && !self->begun)
		done = begin(self) ?: 1;
	if (done != 1)
		return done;
	for (; self->at < self->size; self->at++)
		if (!receive_over(self, behind(self, self->size - self->at)))
			return 0;
	/* A member that has left may not receive what it was sent, and is in release()'s hands. */
	for (uint32_t to = 0; done == 1 && !self->refused && to < self->size; to++)
		done = finish(&self->sends[to], NULL);
	if (done != 1)
		return done;
	self->running = false;
	if (self->refused)
		return self->refused;
	memcpy(self->result, self->blocks, self->size * self->bytes);
	free(self->blocks);
	self->blocks = NULL;
	return 1;
}

/* Also called while an allgather is under way whose messages are still to be sent: they are it
 * then.
 */
static int withdraw(void *context)
{
	struct bootstrap *self = context;
	int error = self->told ? 0 : send_to_all(self, HAS_LEFT);

	self->told = !error;
	return error;
}

static bool quiet(struct bootstrap *self)
{
	bool over = finish(&self->first, NULL);

	for (uint32_t r = 0; r < self->size; r++)
		over = finish(&self->sends[r], NULL) && finish(&self->receives[r], NULL) && over;
	return over;
}

static void leave(struct bootstrap *self)
{
	pthread_mutex_lock(&lock);
	self->next = left;
	left = self;
	pthread_mutex_unlock(&lock);
}

/*
 * Also called with messages under way, when the team is refused or destroyed in the middle: their
 * buffers live on until they are over.
 */
static void release(void *context)
{
	struct bootstrap *self = context;

	for (uint32_t r = 0; r < self->size; r++)
		if (finish(&self->receives[r], NULL) == 0)
			PMPI(Cancel)(&self->receives[r]);
	if (quiet(self)) {
		bootstrap_free(self);
	} else {
		__atomic_fetch_add(&left_count, 1, __ATOMIC_RELAXED);
		oci_pmpi_attend(1);
		leave(self);
	}
	__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
	oci_pmpi_attend(-1);
}

void oci_pmpi_bootstrap_drive(void)
{
	struct bootstrap *self, *next;

	if (!__atomic_load_n(&left_count, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	self = left;
	left = NULL;
	pthread_mutex_unlock(&lock);
	for (; self; self = next) {
		next = self->next;
		if (!quiet(self)) {
			leave(self);
			continue;
		}
		bootstrap_free(self);
		__atomic_fetch_sub(&left_count, 1, __ATOMIC_RELAXED);
		oci_pmpi_attend(-1);
	}
}

uint32_t oci_pmpi_bootstraps(void)
{
	return __atomic_load_n(&alive, __ATOMIC_RELAXED);
}

/* `block`: of arrays_bytes(). */
static bool prepare(struct bootstrap *self, const struct oci_pmpi_comm *state, int *block)
{
	uint32_t size = state->size;
	MPI_Group group;
	bool known;

	self->rank = state->rank;
	self->size = size;
	self->numbers = block;
	self->ranks = block + size;
	self->receives = (MPI_Request *)(block + 2 * size);
	self->sends = self->receives + size;
	self->first = MPI_REQUEST_NULL;
	for (uint32_t r = 0; r < size; r++)
		self->receives[r] = self->sends[r] = MPI_REQUEST_NULL;
	/* Half of the tags are construction.c's. */
	self->own = (int)(__atomic_fetch_add(&next_number, 1, __ATOMIC_RELAXED) %
			  (uint32_t)(oci_pmpi_job.tags / 2));
	if (PMPI(Comm_group)(state->comm, &group) != MPI_SUCCESS)
		return false;
	known = oci_pmpi_world_ranks(group, (int)size, self->ranks);
	PMPI(Group_free)(&group);
	return known;
}

int oci_pmpi_bootstrap_introduce(void *context, MPI_Comm comm)
{
	struct bootstrap *self = context;
	int error = PMPI(Iallgather)(&self->own, 1, MPI_INT, self->numbers, 1, MPI_INT, comm,
				     &self->first);

	return error ? -EIO : 0;
}

int oci_pmpi_bootstrap_create(struct oci_pmpi_comm *state, struct oc_bootstrap *bootstrap)
{
	struct bootstrap *self = calloc(1, sizeof(*self));
	int *block = malloc(arrays_bytes(state->size));

	if (!self || !block || !prepare(self, state, block)) {
		free(block);
		free(self);
		return -ENOMEM;
	}
	*bootstrap = (struct oc_bootstrap){
		.rank = self->rank,
		.size = self->size,
		.node_ranks = oci_pmpi_job.node_ranks,
		.context = self,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
		.release = release,
		.withdraw = withdraw,
	};
	__atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
	oci_pmpi_attend(1);
	return 0;
}

/* Blocks, as there is memory for one at a time only. */
void oci_pmpi_bootstrap_abstain(struct oci_pmpi_comm *state)
{
	struct bootstrap self = { 0 };
	uint32_t turns = 0;

	pthread_mutex_lock(&spare_lock);
	if (prepare(&self, state, spare) && !oci_pmpi_bootstrap_introduce(&self, state->comm)) {
		allgather_start(&self, NULL, 0, NULL);
		while (allgather_test(&self) == 0) {
			oci_pmpi_drive();
			oci_pmpi_pause(&turns);
		}
	}
	pthread_mutex_unlock(&spare_lock);
}

int oci_pmpi_bootstrap_start(void)
{
	spare = malloc(arrays_bytes((uint32_t)oci_pmpi_job.size));
	if (!spare || PMPI(Type_create_resized)(MPI_BYTE, 0, 0, &sink) != MPI_SUCCESS)
		return -ENOMEM;
	return PMPI(Type_commit)(&sink) == MPI_SUCCESS ? 0 : -ENOMEM;
}

void oci_pmpi_bootstrap_stop(void)
{
	PMPI(Type_free)(&sink);
	free(spare);
	spare = NULL;
}
