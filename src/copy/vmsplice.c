/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/vmsplice.h"

#include <errno.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "copy/layout.h"
#include "os/os.h"

/*
 * Two turns, so that one is attached while the other is read; twice 16 pages, and 17 where a turn
 * does not begin at a page.
 */
#define PIPE_BYTES ((size_t)128 << 10)
/* pipefs counts its inodes in 32 bits. */
#define INODE_BITS 32
#define INODE_MASK ((1ull << INODE_BITS) - 1)

/* Of this process. Relaxed: they count, and order nothing. */
static uint64_t outs, ins;

static bool take(uint64_t *count)
{
	if (__atomic_add_fetch(count, 1, __ATOMIC_RELAXED) <= OCI_SPLICE_PIPES)
		return true;
	__atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
	return false;
}

static void give(uint64_t *count)
{
	__atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
}

int oci_splice_create(struct oci_splice_out *out)
{
	int ends[2], error;
	uint64_t inode;

	if (!take(&outs)) {
		oci_debug("no more than %d pipes to send through: another way is taken",
			  OCI_SPLICE_PIPES);
		return -EMFILE;
	}
	error = oci_os_pipe(ends, PIPE_BYTES);
	if (error) {
		give(&outs);
		return error;
	}
	error = oci_os_pipe_inode(ends[1], &inode);
	if (error) {
		close(ends[0]);
		close(ends[1]);
		give(&outs);
		return error;
	}
	*out = (struct oci_splice_out){ ends[0], ends[1], inode,
					oci_os_pipe_room(ends[1]) >= PIPE_BYTES };
	return 0;
}

int oci_splice_handle(const struct oci_splice_out *out, uint64_t *handle)
{
	uint64_t inode;

	for (int i = 0; i < 2; i++) {
		int error = oci_os_pipe_inode(i ? out->write_fd : out->read_fd, &inode);

		if (error || inode != out->inode)
			return -EBADF;
	}
	/* Plus one, so that no handle is 0. */
	*handle = ((uint64_t)out->read_fd + 1) << INODE_BITS | (inode & INODE_MASK);
	return 0;
}

/* Closes a descriptor that is still the pipe, not what the program has opened in its place. */
static void close_pipe(int fd, uint64_t inode)
{
	uint64_t now;

	if (fd >= 0 && !oci_os_pipe_inode(fd, &now) && now == inode)
		close(fd);
}

void oci_splice_out_close(struct oci_splice_out *out)
{
	if (out->write_fd < 0)
		return;
	close_pipe(out->read_fd, out->inode);
	close_pipe(out->write_fd, out->inode);
	give(&outs);
	*out = OCI_SPLICE_OUT_CLOSED;
}

/* Is this descriptor the pipe of that handle? */
static bool is_of_handle(int fd, uint64_t handle)
{
	uint64_t inode;

	return !oci_os_pipe_inode(fd, &inode) && (inode & INODE_MASK) == (handle & INODE_MASK);
}

int oci_splice_open(struct oci_splice_in *in, pid_t pid, uint64_t handle)
{
	int fd;

	/* Looked at for each message: the program may have closed it. */
	if (in->fd >= 0 && in->handle == handle && is_of_handle(in->fd, handle))
		return 0;
	oci_splice_in_close(in);
	if (!take(&ins)) {
		oci_debug("no more than %d pipes to receive through: another way is taken",
			  OCI_SPLICE_PIPES);
		return -EMFILE;
	}
	fd = oci_os_open_peer_pipe(pid, (int)(handle >> INODE_BITS) - 1);
	if (fd >= 0 && !is_of_handle(fd, handle)) {
		close(fd);
		fd = -ESTALE;
	}
	if (fd < 0) {
		give(&ins);
		return fd;
	}
	*in = (struct oci_splice_in){ fd, handle };
	return 0;
}

void oci_splice_in_close(struct oci_splice_in *in)
{
	if (in->fd < 0)
		return;
	if (is_of_handle(in->fd, in->handle))
		close(in->fd);
	give(&ins);
	*in = OCI_SPLICE_IN_CLOSED;
}

/* One turn's bytes at most, at the front of a list. Its pieces, and their bytes. */
static unsigned int cut_turn(const struct iovec *pieces, unsigned int count, struct iovec *turn,
			     size_t *bytes)
{
	*bytes = OCI_SPLICE_TURN_BYTES;
	return oci_cursor_cut(&(struct oci_cursor){ pieces, count, 0 }, bytes, turn,
			      OCI_SPLICE_PIECES);
}

ssize_t oci_splice_send(const struct oci_splice_out *out, const struct iovec *pieces,
			unsigned int count, bool attach)
{
	struct iovec turn[OCI_SPLICE_PIECES];
	size_t bytes;
	unsigned int used = cut_turn(pieces, count, turn, &bytes);
	ssize_t moved;

	if (!bytes)
		return 0;
	if (attach && bytes >= used * oci_os_page_bytes()) {
		moved = oci_os_pipe_attach(out->write_fd, turn, used);
		if (moved > 0 || moved == -EAGAIN)
			return moved;
		/* Pages that the kernel holds no struct for (device memory), a filter that forbids
		 * the call: the receiver sees no difference. */
	}
	return oci_os_pipe_write(out->write_fd, turn, used);
}

ssize_t oci_splice_recv(const struct oci_splice_in *in, const struct iovec *pieces,
			unsigned int count)
{
	struct iovec turn[OCI_SPLICE_PIECES];
	size_t bytes;
	unsigned int used = cut_turn(pieces, count, turn, &bytes);
	ssize_t moved;

	if (!bytes)
		return 0;
	moved = oci_os_pipe_read(in->fd, turn, used);
	return moved ? moved : -EPIPE;
}
