/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/os.h"
#include "team/team.h"

/*
 * A page of a mapping takes two pages of page tables, 8 KiB, when it is touched, as mappings that
 * may grow lie far from each other; and every rank looks at a page of every other. On a node of p
 * ranks that is p * p * 8 KiB, 2 GiB for 512. So beyond this number of peers their fronts are
 * mapped once more, side by side, where 10 of them share a page of page tables. The first ones are
 * looked at where oci_os_map_shared() puts them, which is quicker (the way of a line in the cache).
 */
#define FAR_PEERS 16

static struct {
	pthread_mutex_t lock;
	struct oci_peer *first;
	unsigned int mapped;
} peers = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void peer_unmap(struct oci_peer *peer)
{
	if (peer->front != peer->base)
		oci_os_unmap(peer->front, OCI_SEGMENT_FRONT);
	oci_os_unmap(peer->base, peer->id.bytes);
	peers.mapped--;
}

/* The caller holds the lock. */
static int peer_map(struct oci_peer *peer)
{
	struct stat file;
	int fd, error;

	fd = oci_os_open_peer_fd(peer->id.pid, peer->id.fd);
	if (fd < 0)
		return fd;
	/* Another file may have the number by now; one shorter than the header would be SIGBUS. */
	if (fstat(fd, &file) || file.st_size < (off_t)oci_os_page_bytes()) {
		close(fd);
		return -EPROTO;
	}
	peer->base = oci_os_map_shared(fd, peer->id.bytes, &error);
	if (peer->base && peers.mapped >= FAR_PEERS)
		peer->front = oci_os_map_shared(fd, OCI_SEGMENT_FRONT, &error);
	close(fd);
	if (!peer->base)
		return error;
	if (!peer->front)
		peer->front = peer->base;
	peers.mapped++;
	/* The number may by now be another process's, in our or in another PID namespace. */
	if (!oci_segment_nonce_matches(peer->front, peer->id.nonce)) {
		peer_unmap(peer);
		return -EPROTO;
	}
	return 0;
}

static int peer_create(struct oci_peer **created, const struct oci_segment_id *id)
{
	struct oci_peer *peer = calloc(1, sizeof(*peer));
	int error;

	if (!peer)
		return -ENOMEM;
	peer->id = *id;
	peer->users = 1;
	if (id->pid == getpid() && oci_segment_base() &&
	    oci_segment_nonce_matches(oci_segment_base(), id->nonce)) {
		peer->base = peer->front = oci_segment_base();
		*created = peer;
		return 0;
	}
	error = peer_map(peer);
	if (error) {
		free(peer);
		return error;
	}
	peer->image = oci_segment_image(peer->front);
	*created = peer;
	return 0;
}

/* The caller holds the lock. */
static struct oci_peer *peer_find(const struct oci_segment_id *id)
{
	struct oci_peer *peer = peers.first;

	while (peer && (peer->id.pid != id->pid || memcmp(peer->id.nonce, id->nonce, 16)))
		peer = peer->next;
	return peer;
}

static int read_segment(pid_t pid, int number, struct oci_segment_id *id)
{
	int error, fd = oci_os_open_peer_fd(pid, number);

	if (fd < 0)
		return fd;
	error = oci_segment_read_id(fd, id);
	close(fd);
	if (error)
		return error;
	/* A child of the owner's may have the file, too. */
	return id->pid == pid && id->fd == number ? 0 : -ENOENT;
}

/* Which segment the process has. It may have others' open for a moment, ours among them, while it
 * looks for theirs. */
static int find_segment(pid_t pid, struct oci_segment_id *id)
{
	int error, number = -1;

	do {
		number = oci_os_find_peer_fd(pid, OCI_SEGMENT_LINK, number + 1);
		error = number < 0 ? number : read_segment(pid, number, id);
	} while (error && number >= 0);
	return error;
}

int oci_peer_find(struct oci_peer **found, pid_t pid)
{
	size_t left = oci_os_address_space_left();
	struct oci_segment_id id;
	int error = find_segment(pid, &id);

	if (error)
		return error;
	/* As for a team: what the program asks for later would fail otherwise. */
	if (!oci_peer_known(&id) && left != SIZE_MAX && id.bytes > left / 4)
		return -ENOMEM;
	return oci_peer_get(found, &id);
}

bool oci_peer_known(const struct oci_segment_id *id)
{
	bool known;

	pthread_mutex_lock(&peers.lock);
	known = id->pid == getpid() || peer_find(id);
	pthread_mutex_unlock(&peers.lock);
	return known;
}

int oci_peer_get(struct oci_peer **found, const struct oci_segment_id *id)
{
	struct oci_peer *peer;
	int error = 0;

	pthread_mutex_lock(&peers.lock);
	peer = peer_find(id);
	if (peer) {
		peer->users++;
	} else {
		error = peer_create(&peer, id);
		if (!error) {
			peer->next = peers.first;
			peers.first = peer;
		}
	}
	pthread_mutex_unlock(&peers.lock);
	if (!error)
		*found = peer;
	return error;
}

void oci_peer_put(struct oci_peer *peer)
{
	pthread_mutex_lock(&peers.lock);
	if (--peer->users == 0) {
		struct oci_peer **at = &peers.first;

		while (*at != peer)
			at = &(*at)->next;
		*at = peer->next;
		oci_mapping_free(peer->mapping);
		if (peer->base != oci_segment_base())
			peer_unmap(peer);
		free(peer);
	}
	pthread_mutex_unlock(&peers.lock);
}

void oci_peers_fork_child(void)
{
	pthread_mutex_init(&peers.lock, NULL);
	peers.first = NULL;
	peers.mapped = 0;
}

/*
 * A look holds for the kernel's tick, 1 to 10 ms, in which it was made. To be another process's by
 * then, the number would have to come round: the kernel hands out all the others before (pid_max,
 * at least 32768 by default, and 1024 a CPU), each with a fork and an exit under the machine's one
 * lock for its list of processes, 0.3 us for both at the longest tick. So a copy is made after a
 * look of its own every few milliseconds, and the others cost no system call.
 */
int oci_peer_check(struct oci_peer *peer)
{
	uint8_t nonce[sizeof(peer->id.nonce)];
	struct iovec here = { nonce, sizeof(nonce) };
	struct iovec there = { oci_segment_nonce_at(peer->id.address), sizeof(nonce) };
	uint64_t tick = oci_clock_tick_ns();
	ssize_t moved;

	/* Relaxed, here and below: nothing else is read by it. */
	if (peer->base == oci_segment_base() ||
	    __atomic_load_n(&peer->seen, __ATOMIC_RELAXED) == tick)
		return 0;
	moved = oci_os_vm_read(peer->id.pid, &here, 1, &there, 1);
	if (moved != (ssize_t)sizeof(nonce))
		return moved < 0 ? (int)moved : -EFAULT;
	if (memcmp(nonce, peer->id.nonce, sizeof(nonce)))
		return -ESRCH;
	__atomic_store_n(&peer->seen, tick, __ATOMIC_RELAXED);
	return 0;
}

bool oci_peer_dead(struct oci_peer *peer)
{
	/* Relaxed: a hint. Where no copies are made by the peer's number, none is tried here. */
	bool copies = __atomic_load_n(&peer->can, __ATOMIC_RELAXED) & 1u << OCI_MECH_CMA;

	uint64_t tick = oci_clock_tick_ns();

	if (peer->base == oci_segment_base() || (copies && !oci_peer_check(peer)) ||
	    __atomic_load_n(&peer->lived, __ATOMIC_RELAXED) == tick)
		return false;
	if (oci_os_process_ended(peer->id.pid, &peer->image))
		return true;
	__atomic_store_n(&peer->lived, tick, __ATOMIC_RELAXED);
	return false;
}

bool oci_peers_any_dead(void)
{
	struct oci_peer *peer;

	pthread_mutex_lock(&peers.lock);
	peer = peers.first;
	while (peer && !oci_peer_dead(peer))
		peer = peer->next;
	pthread_mutex_unlock(&peers.lock);
	return peer;
}
