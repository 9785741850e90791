/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/segment.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/team.h"

#define OCI_SEGMENT_MAGIC 0x79706f63656e6f00ull /* "\0onecopy" */
#define OCI_SEGMENT_ALIGN 128
#define OCI_SEGMENT_SHARE 8 /* of the address space that a limit leaves, for all segments */
#define OCI_SEGMENT_LEAST ((size_t)2 << 20) /* slots and regions of a dozen teams */
/* Room is asked of the kernel in pieces, each a quarter of what there is, up to this: the kernel
 * clears each page. */
#define OCI_SEGMENT_CHUNK ((size_t)1 << 20)
/* Pieces up to this are used as soon as they are handed out, and more of them follow: so much is
 * touched by one call, which costs less than a fault of each page, and peers, who read first, get
 * what is touched around a page with it. */
#define OCI_SEGMENT_TOUCH ((size_t)32 << 10)

struct oci_segment_header {
	uint64_t magic;
	struct oci_segment_id id; /* the nonce first */
	uint8_t touched[16];	  /* by whoever tries to write here: the nonce again */
	/* The owner says it, as each of the others would read a file for it. */
	struct oci_os_image image;
	uint64_t arena_told; /* 1 once `arena` is filled in, for ever */
	struct oci_arena_id arena;
	uint64_t abi; /* OCI_ABI; for who finds the segment by itself */
	struct oci_invitations invitations;
	struct oci_registration registrations[OCI_REGISTRATIONS];
};

_Static_assert(sizeof(struct oci_segment_header) <= 4096, "the first page");

/* A freed piece, kept in a list by its size: teams of as many ranks have regions of one, so lists
 * stay few. */
struct oci_piece {
	struct oci_piece *next;
	int64_t offset;
	size_t bytes;
};

static struct {
	pthread_mutex_t lock;
	bool created;
	struct oci_segment_id id;
	uint8_t *base;
	size_t used;	 /* bytes handed out from the front, freed pieces included */
	size_t room;	 /* bytes that the kernel has granted */
	size_t touched;	 /* the end of what was touched ahead of its use */
	size_t live;	 /* bytes handed out and not freed */
	size_t promised; /* bytes behind `used` that oci_segment_alloc() leaves */
	ino_t inode;	 /* of the file, and its device: to know it again */
	dev_t device;
	struct oci_piece *freed;
	bool warned, warned_of_limit;
} segment = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* How much to map; 0: the limit of the address space leaves too little. */
static size_t segment_bytes(uint32_t node_ranks)
{
	size_t bytes = round_up(oci_options()->segment_bytes, OCI_SEGMENT_CHUNK);
	size_t left = oci_os_address_space_left();
	size_t share = left / OCI_SEGMENT_SHARE / (node_ranks ? node_ranks : 1);

	if (left == SIZE_MAX || bytes <= share)
		return bytes;
	if (share < OCI_SEGMENT_LEAST) {
		oci_log(segment.warned_of_limit ? OCI_LOG_INFO : OCI_LOG_WARN,
			"the address space limit (ulimit -v) leaves %zu MiB: too little for the "
			"shared memory of %u ranks, which may take an eighth of it and need %zu "
			"MiB each; collectives stay with the MPI. Raise the limit",
			left >> 20, node_ranks, (size_t)OCI_SEGMENT_LEAST >> 20);
		segment.warned_of_limit = true;
		return 0;
	}
	return share / OCI_SEGMENT_CHUNK * OCI_SEGMENT_CHUNK;
}

static int segment_create(uint32_t node_ranks)
{
	size_t page = oci_os_page_bytes();
	size_t bytes = segment_bytes(node_ranks);
	struct oci_segment_header *header;
	struct stat file;
	int fd, error;

	if (!bytes)
		return -ENOMEM;
	error = oci_os_random(segment.id.nonce, sizeof(segment.id.nonce));
	if (error)
		return error;
	fd = oci_os_shared_file(OCI_SEGMENT_NAME, OCI_SEGMENT_FRONT);
	if (fd < 0) {
		oci_warn("no shared memory for the segment (%zu bytes): %s; collectives stay with "
			 "the MPI. Give the job more memory, or a larger /dev/shm",
			 OCI_SEGMENT_FRONT, strerror(-fd));
		return fd;
	}
	/* The mapping is larger than the file; pages behind its end are never touched before
	 * oci_os_shared_file_grow() has granted them. */
	segment.base = oci_os_map_shared(fd, bytes, &error);
	if (!segment.base) {
		close(fd);
		oci_log(segment.warned_of_limit ? OCI_LOG_INFO : OCI_LOG_WARN,
			"cannot map %zu bytes for the segment: %s; collectives stay with the MPI. "
			"Lower ONECOPY_SEGMENT_BYTES or raise the limit of %s",
			bytes, strerror(-error),
			error == -EAGAIN ? "locked memory (ulimit -l), which mlockall(2) has the "
					   "kernel hold it against" :
					   "the address space (ulimit -v)");
		segment.warned_of_limit = true;
		return error;
	}
	if (!fstat(fd, &file)) {
		segment.inode = file.st_ino;
		segment.device = file.st_dev;
	}
	segment.id.address = (uintptr_t)segment.base;
	segment.id.bytes = bytes;
	segment.id.pid = getpid();
	segment.id.fd = fd;
	segment.room = OCI_SEGMENT_FRONT;
	segment.used = page;
	header = (struct oci_segment_header *)segment.base;
	header->magic = OCI_SEGMENT_MAGIC;
	header->id = segment.id;
	header->abi = OCI_ABI;
	header->image = oci_os_image(segment.id.pid);
	segment.created = true;
	return 0;
}

int oci_segment_self(struct oci_segment_id *id, uint32_t node_ranks)
{
	int error = 0;

	pthread_mutex_lock(&segment.lock);
	if (!segment.created)
		error = segment_create(node_ranks);
	if (!error)
		*id = segment.id;
	pthread_mutex_unlock(&segment.lock);
	if (!error)
		oci_segment_tell_arena();
	return error;
}

void oci_segment_tell_arena(void)
{
	const struct oci_arena_id *arena = oci_arena_self_id();
	struct oci_segment_header *header;

	pthread_mutex_lock(&segment.lock);
	header = (struct oci_segment_header *)segment.base;
	if (segment.created && arena && !header->arena_told) {
		header->arena = *arena;
		/* Release: pairs with the acquire in oci_peer_arena(). */
		oci_store_release(&header->arena_told, 1);
	}
	pthread_mutex_unlock(&segment.lock);
}

const struct oci_arena_id *oci_peer_arena(const struct oci_peer *peer)
{
	const struct oci_segment_header *header = (const struct oci_segment_header *)peer->front;

	/* Acquire: pairs with the release in oci_segment_tell_arena(). */
	return oci_load_acquire(&header->arena_told) ? &header->arena : NULL;
}

struct oci_invitations *oci_segment_invitations(void)
{
	return segment.base ? &((struct oci_segment_header *)segment.base)->invitations : NULL;
}

struct oci_invitations *oci_peer_invitations(const struct oci_peer *peer)
{
	return &((struct oci_segment_header *)peer->front)->invitations;
}

struct oci_registration *oci_segment_registrations(void)
{
	return segment.base ? ((struct oci_segment_header *)segment.base)->registrations : NULL;
}

const struct oci_registration *oci_peer_registrations(const struct oci_peer *peer)
{
	return ((const struct oci_segment_header *)peer->front)->registrations;
}

int oci_segment_read_id(int fd, struct oci_segment_id *id)
{
	struct oci_segment_header header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    header.magic != OCI_SEGMENT_MAGIC || header.abi != OCI_ABI)
		return -EPROTO;
	*id = header.id;
	return 0;
}

static bool segment_is_at(int fd)
{
	struct stat file;

	return !fstat(fd, &file) && file.st_ino == segment.inode && file.st_dev == segment.device;
}

/* The mapping is not there; without the descriptor nothing of the parent's memory is held. */
void oci_segment_fork_child(void)
{
	pthread_mutex_init(&segment.lock, NULL);
	if (segment.created && segment_is_at(segment.id.fd))
		close(segment.id.fd);
	segment.created = false;
	segment.base = NULL;
	segment.used = segment.room = segment.touched = segment.live = segment.promised = 0;
	segment.freed = NULL;
}

void *oci_segment_base(void)
{
	return segment.base;
}

static int64_t take_freed(size_t bytes)
{
	for (struct oci_piece **at = &segment.freed; *at; at = &(*at)->next) {
		struct oci_piece *piece = *at;
		int64_t offset = piece->offset;

		if (piece->bytes != bytes)
			continue;
		*at = piece->next;
		free(piece);
		return offset;
	}
	return -ENOSPC;
}

static void touch(size_t offset, size_t bytes)
{
	size_t from = offset > segment.touched ? offset : segment.touched;
	size_t to = round_up(offset + bytes, OCI_SEGMENT_TOUCH);

	to = to < segment.room ? to : segment.room;
	if (offset + bytes <= segment.touched)
		return;
	from = from / oci_os_page_bytes() * oci_os_page_bytes();
	oci_os_touch(segment.base + from, to - from);
	segment.touched = to;
}

static int64_t take_new(size_t bytes)
{
	int64_t offset = (int64_t)segment.used;

	if (bytes > segment.id.bytes - segment.used - segment.promised)
		return -ENOSPC;
	if (segment.used + bytes > segment.room) {
		size_t needed = segment.used + bytes - segment.room;
		size_t quarter = segment.room / 4, most = segment.id.bytes - segment.room;
		size_t piece = quarter < OCI_SEGMENT_CHUNK ? quarter : OCI_SEGMENT_CHUNK;
		size_t more = round_up(needed > piece ? needed : piece, oci_os_page_bytes());
		int error = -EBADF;

		/* A program that closes every descriptor may have opened its own file there. */
		more = more < most ? more : most;
		if (segment_is_at(segment.id.fd))
			error = oci_os_shared_file_grow(segment.id.fd, segment.room, more);
		if (error)
			return error;
		segment.room += more;
	}
	segment.used += bytes;
	if (bytes <= OCI_SEGMENT_TOUCH)
		touch((size_t)offset, bytes);
	return offset;
}

static void warn_full(int error)
{
	if (!segment.warned)
		oci_warn("the segment of %zu bytes is full (%s): new communicators stay with the "
			 "MPI. Raise ONECOPY_SEGMENT_BYTES or give the job more memory",
			 (size_t)segment.id.bytes, strerror(-error));
	segment.warned = true;
}

static int64_t take(size_t bytes)
{
	int64_t offset = take_freed(bytes);

	if (offset >= 0)
		memset(segment.base + offset, 0, bytes);
	else
		offset = take_new(bytes); /* zero, as all of a new file */
	if (offset >= 0)
		segment.live += bytes;
	else
		warn_full((int)offset);
	return offset;
}

int64_t oci_segment_alloc(size_t bytes)
{
	int64_t offset;

	pthread_mutex_lock(&segment.lock);
	offset = take(round_up(bytes, OCI_SEGMENT_ALIGN));
	pthread_mutex_unlock(&segment.lock);
	return offset;
}

int oci_segment_promise(size_t bytes)
{
	int error = 0;

	pthread_mutex_lock(&segment.lock);
	if (bytes > segment.id.bytes - segment.used - segment.promised)
		error = -ENOSPC;
	else
		segment.promised += bytes;
	pthread_mutex_unlock(&segment.lock);
	return error;
}

void oci_segment_unpromise(size_t bytes)
{
	pthread_mutex_lock(&segment.lock);
	segment.promised -= bytes;
	pthread_mutex_unlock(&segment.lock);
}

int64_t oci_segment_alloc_promised(size_t bytes)
{
	int64_t offset;

	pthread_mutex_lock(&segment.lock);
	segment.promised -= bytes;
	offset = take(bytes);
	if (offset < 0)
		segment.promised += bytes;
	pthread_mutex_unlock(&segment.lock);
	return offset;
}

void oci_segment_full(void)
{
	pthread_mutex_lock(&segment.lock);
	warn_full(-ENOSPC);
	pthread_mutex_unlock(&segment.lock);
}

void oci_segment_free(int64_t offset, size_t bytes)
{
	struct oci_piece *piece = malloc(sizeof(*piece));

	bytes = round_up(bytes, OCI_SEGMENT_ALIGN);
	pthread_mutex_lock(&segment.lock);
	segment.live -= bytes;
	/* Out of memory for the note: the piece stays unused, which costs its bytes and no more. */
	if (piece) {
		*piece = (struct oci_piece){ segment.freed, offset, bytes };
		segment.freed = piece;
	}
	pthread_mutex_unlock(&segment.lock);
}

size_t oci_segment_live_bytes(void)
{
	size_t bytes;

	pthread_mutex_lock(&segment.lock);
	bytes = segment.live;
	pthread_mutex_unlock(&segment.lock);
	return bytes;
}

void *oci_segment_nonce_at(uint64_t address)
{
	return (void *)(uintptr_t)(address + offsetof(struct oci_segment_header, id.nonce));
}

void *oci_segment_touched_at(uint64_t address)
{
	return (void *)(uintptr_t)(address + offsetof(struct oci_segment_header, touched));
}

struct oci_os_image oci_segment_image(const void *base)
{
	const struct oci_segment_header *header = base;

	return header->image;
}

bool oci_segment_nonce_matches(const void *base, const uint8_t nonce[16])
{
	const struct oci_segment_header *header = base;

	return header->magic == OCI_SEGMENT_MAGIC && !memcmp(header->id.nonce, nonce, 16);
}
