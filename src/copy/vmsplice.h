/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages through a pipe: the sender attaches its pages (vmsplice) or copies into the pipe
 * (writev), the receiver reads them into its buffer. One copy, or two. Paper 001, section 3.1.
 *
 * Two-sided, in turns: each call moves at most OCI_SPLICE_TURN_BYTES and never blocks, so both ends
 * can look after other messages between two turns. A pipe leads from one process to one other and
 * is a stream: the messages on it follow one another, never two at a time. Nothing here is known of
 * messages, though: whoever calls cuts the next pieces, adds up what was moved, and agrees on the
 * end.
 *
 *   sender                                    receiver
 *   oci_splice_handle(), sent along  ----->   oci_splice_open()
 *   oci_splice_send() until all is in         oci_splice_recv() until all is here
 *   waits; may write its buffer again <-----  says so (a word of the caller's)
 *
 * A message ends where the receiver says so: what is attached are the sender's own pages, which
 * change when it writes to them.
 *
 * A pipe that lost its place (a message given up half way) is closed by the sender, who makes
 * another one, with another handle, for the next message; the receiver, who opens by handles, finds
 * out by itself.
 */
#ifndef OC_COPY_VMSPLICE_H
#define OC_COPY_VMSPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define OCI_SPLICE_TURN_BYTES ((size_t)64 << 10)
/* Pieces that a turn takes at most on either side. */
#define OCI_SPLICE_PIECES 128
/*
 * Pipes of each direction in a process, so that a large team leaves the program its descriptors: a
 * sender's takes two, a receiver's one. More are refused with -EMFILE.
 */
#define OCI_SPLICE_PIPES 64

/* The sender's end. */
struct oci_splice_out {
	/*
	 * The sender keeps the reading end too. So writing never meets a pipe without a reader, and
	 * SIGPIPE, whose action belongs to the program, is never raised: a receiver that died is
	 * noticed as any dead peer is.
	 */
	int read_fd, write_fd;
	uint64_t inode;
	bool holds_turns; /* two of them; false: this user has too many pipes, it may be a page */
};

/* The receiver's end. */
struct oci_splice_in {
	int fd;
	uint64_t handle; /* that it was opened by */
};

/* Ends that are not open. */
#define OCI_SPLICE_OUT_CLOSED ((struct oci_splice_out){ .read_fd = -1, .write_fd = -1 })
#define OCI_SPLICE_IN_CLOSED ((struct oci_splice_in){ .fd = -1 })

/* 0; -EMFILE (too many pipes, here or by RLIMIT_NOFILE), -ENFILE: use another way. */
int oci_splice_create(struct oci_splice_out *out);
/*
 * What the receiver opens it by, never 0: to be asked for at the begin of each message. -EBADF when
 * the descriptor is not our pipe any more, because the program closed what it did not open: nothing
 * was written to what lies there now. Close it then, and create another, or use another way.
 */
int oci_splice_handle(const struct oci_splice_out *out, uint64_t *handle);
void oci_splice_out_close(struct oci_splice_out *out);

/*
 * The end of process `pid` whose handle this is; at once when it is open already, and in place of
 * the one that was. 0; -ESTALE: that process has no such pipe any more; or -errno: it cannot be
 * reached (-EACCES, -EMFILE, -ENOENT), and it must be told to send another way.
 */
int oci_splice_open(struct oci_splice_in *in, pid_t pid, uint64_t handle);
void oci_splice_in_close(struct oci_splice_in *in);

/*
 * Puts the front of the pieces into the pipe, at most OCI_SPLICE_TURN_BYTES of the first
 * OCI_SPLICE_PIECES: attached, or copied when not `attach`. Pieces smaller than a page on average
 * are copied in any case, as each takes a place of the pipe, and so are pages that cannot be
 * attached. Bytes; -EAGAIN: it is full, the receiver's turn; -EFAULT: the first piece cannot be
 * read.
 */
ssize_t oci_splice_send(const struct oci_splice_out *out, const struct iovec *pieces,
			unsigned int count, bool attach);
/*
 * Copies out of the pipe to the front of the pieces, with the same limits. Bytes; -EAGAIN: it is
 * empty, the sender's turn; -EPIPE: the sender is gone; -EFAULT: the first piece cannot be written.
 * The pieces must not reach beyond the message.
 */
ssize_t oci_splice_recv(const struct oci_splice_in *in, const struct iovec *pieces,
			unsigned int count);

#endif
