/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "team/segment.h"

static struct {
	pthread_mutex_t lock;
	struct oci_peer *first;
} peers = { .lock = PTHREAD_MUTEX_INITIALIZER };

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
	peer->base = oci_os_map_shared(fd, peer->id.bytes, false, &error);
	close(fd);
	if (!peer->base)
		return error;
	/* The number may by now be another process's, in our or in another PID namespace. */
	if (!oci_segment_nonce_matches(peer->base, peer->id.nonce)) {
		oci_os_unmap(peer->base, peer->id.bytes);
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
		peer->base = oci_segment_base();
		peer->pidfd = -1;
		*created = peer;
		return 0;
	}
	error = peer_map(peer);
	if (error) {
		free(peer);
		return error;
	}
	peer->pidfd = oci_os_pidfd_open(id->pid);
	peer->start_time = oci_os_process_start(id->pid);
	*created = peer;
	return 0;
}

int oci_peer_get(struct oci_peer **found, const struct oci_segment_id *id)
{
	struct oci_peer *peer;
	int error = 0;

	pthread_mutex_lock(&peers.lock);
	for (peer = peers.first; peer; peer = peer->next) {
		if (peer->id.pid == id->pid && !memcmp(peer->id.nonce, id->nonce, 16))
			break;
	}
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
			oci_os_unmap(peer->base, peer->id.bytes);
		if (peer->pidfd >= 0)
			close(peer->pidfd);
		free(peer);
	}
	pthread_mutex_unlock(&peers.lock);
}

void oci_peers_fork_child(void)
{
	pthread_mutex_init(&peers.lock, NULL);
	peers.first = NULL;
}

bool oci_peer_dead(const struct oci_peer *peer)
{
	char state;

	if (peer->base == oci_segment_base())
		return false;
	if (peer->pidfd >= 0 && !oci_os_pidfd_ended(peer->pidfd))
		return false;
	/* No pidfd (an old kernel, a seccomp filter): the process table tells. It also confirms, in
	 * case the program has closed our descriptor and opened another file in its place. */
	state = oci_os_process_state(peer->id.pid);
	if (!state || state == 'Z' || state == 'X')
		return true;
	return peer->start_time && oci_os_process_start(peer->id.pid) != peer->start_time;
}
