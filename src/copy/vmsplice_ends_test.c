/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of a pipe: dead peers, descriptors that others took, handles, and what runs short. */
#include "copy/vmsplice.h"
#include "os/os.h"
#include "support/process.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_receiver_that_died_raises_no_signal)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	uint8_t *bytes = calloc(1, 1 << 20);
	struct iovec piece = { bytes, 1 << 20 };
	pid_t parent = getpid(), pid;
	uint64_t handle;
	ssize_t moved = 1;

	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	pid = fork();
	if (!pid) {
		struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;

		oci_splice_out_close(&out);
		_exit(oci_splice_open(&in, parent, handle) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 100 && moved > 0; i++)
		moved = oci_splice_send(&out, &piece, 1, i % 2);
	assert_int_equal(moved, -EAGAIN); /* and we are still here: no SIGPIPE */
	oci_splice_out_close(&out);
	free(bytes);
}

/* What the processes share; each is written by one of them, with a release that pairs with the
 * other's acquire. */
struct board {
	uint64_t handle, go; /* by the sender, by the receiver */
};

TEST(a_sender_that_died_is_told_behind_its_last_bytes)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	uint8_t got[256];
	struct iovec piece = { got, sizeof(got) };
	pid_t pid;
	int error;

	assert_ptr_not_equal(board, MAP_FAILED);
	pid = fork();
	if (!pid) {
		struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
		char text[] = "last";
		struct iovec last = { text, 4 };
		uint64_t handle;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (oci_splice_create(&out) || oci_splice_handle(&out, &handle) ||
		    oci_splice_send(&out, &last, 1, false) != 4)
			_exit(1);
		__atomic_store_n(&board->handle, handle, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&board->go, __ATOMIC_ACQUIRE))
			sched_yield();
		_exit(0);
	}
	while (!__atomic_load_n(&board->handle, __ATOMIC_ACQUIRE))
		sched_yield();
	error = oci_splice_open(&in, pid, board->handle);
	__atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(error, 0);
	assert_int_equal(oci_splice_recv(&in, &piece, 1), 4);
	assert_memory_equal(got, "last", 4);
	assert_int_equal(oci_splice_recv(&in, &piece, 1), -EPIPE);
	oci_splice_in_close(&in);
	munmap(board, sizeof(*board));
}

/* A program that closes all descriptors and opens its own files in their place. */
TEST(a_descriptor_of_the_program_in_our_place_is_not_written_to)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	int write_fd, read_fd, null = open("/dev/null", O_RDWR | O_CLOEXEC), other[2];
	uint64_t handle;

	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	write_fd = out.write_fd;
	read_fd = out.read_fd;
	assert_int_equal(dup2(null, write_fd), write_fd);
	assert_int_equal(oci_splice_handle(&out, &handle), -EBADF);
	/* Another pipe in the place of the reading end: the handle is not its own. */
	assert_int_equal(pipe(other), 0);
	assert_int_equal(dup2(other[0], read_fd), read_fd);
	assert_int_equal(oci_splice_open(&in, getpid(), handle), -ESTALE);
	oci_splice_out_close(&out);
	/* Theirs stay open. */
	assert_true(fcntl(write_fd, F_GETFD) >= 0);
	assert_true(fcntl(read_fd, F_GETFD) >= 0);
	close(write_fd);
	close(read_fd);
	assert_int_equal(oci_splice_open(&in, getpid(), handle), -ENOENT);
	close(other[0]);
	close(other[1]);
	close(null);
}

TEST(a_new_handle_takes_the_place_of_the_old_end)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	struct oci_splice_in in = OCI_SPLICE_IN_CLOSED;
	char text[] = "stale", fresh[] = "fresh", got[8];
	struct iovec piece = { text, 5 }, to = { got, 5 };
	uint64_t handle, again;

	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &handle), 0);
	assert_int_equal(oci_splice_open(&in, getpid(), handle), 0);
	assert_int_equal(oci_splice_send(&out, &piece, 1, false), 5);
	oci_splice_out_close(&out); /* given up half way */
	assert_int_equal(oci_splice_create(&out), 0);
	assert_int_equal(oci_splice_handle(&out, &again), 0);
	assert_int_not_equal(handle, again);
	piece.iov_base = fresh;
	assert_int_equal(oci_splice_send(&out, &piece, 1, false), 5);
	assert_int_equal(oci_splice_open(&in, getpid(), again), 0);
	assert_int_equal(oci_splice_recv(&in, &to, 1), 5);
	assert_memory_equal(got, "fresh", 5);
	oci_splice_in_close(&in);
	oci_splice_out_close(&out);
}

TEST(pipes_are_bounded_and_given_back)
{
	struct oci_splice_out outs[OCI_SPLICE_PIPES + 1];

	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < OCI_SPLICE_PIPES; i++)
			assert_int_equal(oci_splice_create(&outs[i]), 0);
		assert_int_equal(oci_splice_create(&outs[OCI_SPLICE_PIPES]), -EMFILE);
		for (int i = 0; i < OCI_SPLICE_PIPES; i++)
			oci_splice_out_close(&outs[i]);
	}
}

TEST(no_descriptor_left_is_an_error)
{
	struct oci_splice_out out = OCI_SPLICE_OUT_CLOSED;
	int error;

	oct_starve(true);
	error = oci_splice_create(&out);
	oct_starve(false);
	assert_int_equal(error, -EMFILE);
	assert_int_equal(out.write_fd, -1);
}
