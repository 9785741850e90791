/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes through a pipe: the parent sends, a forked child opens the pipe by its handle. */
#include "copy/vmsplice.h"
#include "os/os.h"
#include "support/process.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECES_MOST = 512 };

static uint8_t byte_at(size_t i, unsigned int seed)
{
	return (uint8_t)((i * 2654435761u + seed * 40503u) >> 7);
}

/*
 * Pieces of `piece` bytes with gaps behind them, that hold `bytes` in all; from an odd address when
 * `odd`. gaps: the bytes between, which nobody may touch.
 */
struct buffer {
	uint8_t *memory;
	size_t memory_bytes, bytes;
	struct iovec pieces[PIECES_MOST];
	unsigned int count;
};

static void buffer_make(struct buffer *b, size_t bytes, size_t piece, size_t gap, bool odd)
{
	size_t at = odd, left = bytes;

	b->bytes = bytes;
	b->count = 0;
	b->memory_bytes = odd + bytes + (bytes / piece + 1) * gap;
	b->memory = malloc(b->memory_bytes);
	assert_non_null(b->memory);
	memset(b->memory, 0xee, b->memory_bytes);
	while (left) {
		size_t length = left < piece ? left : piece;

		assert_true(b->count < PIECES_MOST);
		b->pieces[b->count++] = (struct iovec){ b->memory + at, length };
		at += length + gap;
		left -= length;
	}
}

static void buffer_fill(struct buffer *b, unsigned int seed)
{
	size_t at = 0;

	for (unsigned int p = 0; p < b->count; p++)
		for (size_t i = 0; i < b->pieces[p].iov_len; i++)
			((uint8_t *)b->pieces[p].iov_base)[i] = byte_at(at++, seed);
}

/* All bytes right, and no other written. */
static bool buffer_holds(const struct buffer *b, unsigned int seed)
{
	uint8_t *expected = malloc(b->memory_bytes);
	size_t at = 0;
	bool same;

	memset(expected, 0xee, b->memory_bytes);
	for (unsigned int p = 0; p < b->count; p++)
		for (size_t i = 0; i < b->pieces[p].iov_len; i++)
			expected[(uint8_t *)b->pieces[p].iov_base - b->memory + i] =
				byte_at(at++, seed);
	same = !memcmp(expected, b->memory, b->memory_bytes);
	free(expected);
	return same;
}

/* What is left of the pieces behind `done` bytes. */
static unsigned int rest(const struct buffer *b, size_t done, struct iovec *pieces)
{
	unsigned int count = 0;

	for (unsigned int p = 0; p < b->count; p++) {
		struct iovec piece = b->pieces[p];

		if (done >= piece.iov_len) {
			done -= piece.iov_len;
			continue;
		}
		pieces[count++] =
			(struct iovec){ (uint8_t *)piece.iov_base + done, piece.iov_len - done };
		done = 0;
	}
	return count;
}

/* A turn is over that moved so many bytes, or gave an error: 0, or the error. */
static int add_turn(ssize_t moved, size_t *done)
{
	if (moved == -EAGAIN) {
		sched_yield();
		return 0;
	}
	if (moved <= 0 || moved > (ssize_t)OCI_SPLICE_TURN_BYTES)
		return moved < 0 ? (int)moved : -EPROTO;
	*done += (size_t)moved;
	return 0;
}

static int send_all(const struct oci_splice_out *out, const struct buffer *b, bool attach)
{
	struct iovec pieces[PIECES_MOST];
	size_t done = 0;
	int error = 0;

	while (!error && done < b->bytes)
		error = add_turn(oci_splice_send(out, pieces, rest(b, done, pieces), attach),
				 &done);
	return error;
}

static int recv_all(const struct oci_splice_in *in, struct buffer *b)
{
	struct iovec pieces[PIECES_MOST];
	size_t done = 0;
	int error = 0;

	while (!error && done < b->bytes)
		error = add_turn(oci_splice_recv(in, pieces, rest(b, done, pieces)), &done);
	return error;
}

static const struct shape {
	size_t bytes, send_piece, recv_piece, gap;
	bool odd;
} shapes[] = {
	{ 1, 1, 1, 0, true },
	{ 4095, 4095, 4095, 0, true },
	{ 65536, 65536, 65536, 0, false },
	{ 65537, 65537, 65537, 0, true },
	{ 1 << 20, 1 << 20, 1 << 20, 0, false },
	{ (3 << 20) + 5, (3 << 20) + 5, (3 << 20) + 5, 0, true },
	{ 1 << 20, 9000, 5000, 100, true }, /* attached */
	{ 100000, 1000, 333, 7, true },	    /* copied: smaller than a page */
	{ 200000, 200000, 701, 3, false },  /* from one piece to more than a turn takes */
	{ 300000, 601, 300000, 1, true },   /* and back */
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* received: shared with the sender. */
static int receive_shapes(pid_t parent, uint64_t handle, uint64_t *received)
{
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;

	for (unsigned int i = 0; i < SHAPES; i++) {
		struct buffer b;

		if (oci_splice_open(&in, parent, handle))
			return 2;
		buffer_make(&b, shapes[i].bytes, shapes[i].recv_piece, shapes[i].gap,
			    shapes[i].odd);
		if (recv_all(&in, &b))
			return 3;
		if (!buffer_holds(&b, i))
			return 10 + (int)i;
		free(b.memory);
		/* Release: the sender may write again. Pairs with its acquire. */
		__atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
	}
	oci_splice_in_close(&in);
	return 0;
}

static void move_shapes(bool attach)
{
	uint64_t handle, *received = mmap(NULL, sizeof(*received), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	pid_t parent = getpid(), pid;
	int status;

	assert_ptr_not_equal(received, MAP_FAILED);
	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		oci_splice_out_close(&out); /* inherited; the point is to get at it without */
		_exit(receive_shapes(parent, handle, received));
	}
	for (unsigned int i = 0; i < SHAPES; i++) {
		struct buffer b;

		buffer_make(&b, shapes[i].bytes, shapes[i].send_piece, shapes[i].gap,
			    shapes[i].odd);
		buffer_fill(&b, i);
		assert_int_equal(send_all(&out, &b, attach), 0);
		/* Acquire: pairs with the release in receive_shapes(). */
		while (__atomic_load_n(received, __ATOMIC_ACQUIRE) <= i) {
			if (waitpid(pid, &status, WNOHANG) == pid)
				fail_msg("shape %u: the receiver ended with %x", i, status);
			sched_yield();
		}
		memset(b.memory, 0x55, b.memory_bytes); /* now it may */
		free(b.memory);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	oci_splice_out_close(&out);
	munmap(received, sizeof(*received));
}

TEST(attached_pages_arrive_with_pieces_on_both_sides)
{
	move_shapes(true);
}

TEST(copied_bytes_arrive_with_pieces_on_both_sides)
{
	move_shapes(false);
}

/* What tells one copy from two, and why a sender waits for the receiver's word. */
TEST(attached_pages_are_the_senders_own_and_copied_ones_are_not)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	uint8_t *page = aligned_alloc(4096, 4096), seen[4096];
	struct iovec from = { page, 4096 }, to = { seen, 4096 };
	uint64_t handle;

	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	assert_int_equal(oci_splice_open(&in, getpid(), handle), 0);
	for (int attach = 0; attach < 2; attach++) {
		memset(page, 1, 4096);
		assert_int_equal(oci_splice_send(&out, &from, 1, attach), 4096);
		memset(page, 2, 4096);
		assert_int_equal(oci_splice_recv(&in, &to, 1), 4096);
		assert_int_equal(seen[17], attach ? 2 : 1);
	}
	oci_splice_in_close(&in);
	oci_splice_out_close(&out);
	free(page);
}

TEST(a_full_pipe_and_an_empty_one_do_not_block)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	size_t bytes = 1 << 20, sent = 0, got = 0;
	uint8_t *from = malloc(bytes), *to = malloc(bytes);
	struct iovec piece = { to, bytes };
	uint64_t handle;
	ssize_t moved;

	for (size_t i = 0; i < bytes; i++)
		from[i] = byte_at(i, 9);
	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	assert_int_equal(oci_splice_open(&in, getpid(), handle), 0);
	assert_int_equal(oci_splice_recv(&in, &piece, 1), -EAGAIN);
	for (;;) {
		piece = (struct iovec){ from + sent, bytes - sent };
		moved = oci_splice_send(&out, &piece, 1, true);
		if (moved < 0)
			break;
		sent += (size_t)moved;
	}
	assert_int_equal(moved, -EAGAIN);
	assert_true(sent >= 1 && sent < bytes);
	for (;;) {
		piece = (struct iovec){ to + got, bytes - got };
		moved = oci_splice_recv(&in, &piece, 1);
		if (moved < 0)
			break;
		got += (size_t)moved;
	}
	assert_int_equal(moved, -EAGAIN);
	assert_int_equal(got, sent);
	assert_memory_equal(from, to, sent);
	oci_splice_in_close(&in);
	oci_splice_out_close(&out);
	free(from);
	free(to);
}

TEST(bytes_before_a_hole_are_sent_and_the_hole_is_efault)
{
	size_t page = oci_os_page_bytes();
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct iovec piece = { pages, 2 * page };

	memset(pages, 3, page);
	munmap(pages + page, page);
	assert_int_equal(oci_splice_create(&out), 0);
	for (int attach = 0; attach < 2; attach++) {
		piece = (struct iovec){ pages, 2 * page };
		if (attach)
			assert_int_equal(oci_splice_send(&out, &piece, 1, true), page);
		piece = (struct iovec){ pages + page, page };
		assert_int_equal(oci_splice_send(&out, &piece, 1, attach), -EFAULT);
	}
	oci_splice_out_close(&out);
	munmap(pages, page);
}

/* Exit status of a child whose user has used up what fs.pipe-user-pages-soft gives. */
static int send_through_a_small_pipe(void)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	struct buffer from, to;
	uint64_t handle;
	size_t sent = 0, got = 0;

	if (!oct_use_up_pipes())
		return 77;
	if (oci_splice_create(&out) || oci_splice_handle(&out, &handle) ||
	    oci_splice_open(&in, getpid(), handle) || fcntl(out.write_fd, F_GETPIPE_SZ) >= 64 << 10)
		return 1;
	buffer_make(&from, 300001, 300001, 0, true);
	buffer_make(&to, 300001, 300001, 0, false);
	buffer_fill(&from, 3);
	while (got < from.bytes) {
		struct iovec piece[1];
		ssize_t moved = -EAGAIN;

		if (sent < from.bytes && rest(&from, sent, piece))
			moved = oci_splice_send(&out, piece, 1, true);
		if (moved < 0 && moved != -EAGAIN)
			return 2;
		sent += moved > 0 ? (size_t)moved : 0;
		moved = rest(&to, got, piece) ? oci_splice_recv(&in, piece, 1) : 0;
		if (moved < 0 && moved != -EAGAIN)
			return 3;
		got += moved > 0 ? (size_t)moved : 0;
	}
	return buffer_holds(&to, 3) ? 0 : 4;
}

TEST(beyond_the_users_pages_a_pipe_is_small_and_right)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(send_through_a_small_pipe());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		oct_skip("no right to become another user, or no limit of pipes here");
	assert_int_equal(WEXITSTATUS(status), 0);
}
