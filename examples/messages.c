// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes without an MPI: they are forked, meet through a socketpair, and then send each
 * other messages and sum up by a collective. Prints "verified: yes" and returns 0 when all bytes
 * were right.
 */
#include <errno.h>
#include <onecopy/onecopy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS (1 << 20)

/*
 * All that onecopy needs to begin with: an allgather that does not block. Between two processes it
 * is one message each way. What is sent is small, so it fits the socket's buffer.
 */
struct meeting {
	int socket;
	uint32_t rank;
	uint8_t *recv; /* of the peer's part */
	size_t bytes, received;
};

static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct meeting *m = context;

	memcpy((uint8_t *)recv + m->rank * bytes, send, bytes);
	m->recv = (uint8_t *)recv + !m->rank * bytes;
	m->bytes = bytes;
	m->received = 0;
	return write(m->socket, send, bytes) == (ssize_t)bytes ? 0 : -EIO;
}

static int gather_test(void *context)
{
	struct meeting *m = context;
	ssize_t got = recv(m->socket, m->recv + m->received, m->bytes - m->received, MSG_DONTWAIT);

	if (got == 0)
		return -ECONNRESET; /* the peer has gone */
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	m->received += (size_t)got;
	return m->received == m->bytes;
}

static void add(void *context, const void *in, void *inout, size_t count)
{
	const uint64_t *a = in;
	uint64_t *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

static int complain(struct oc_team *team, const char *what, int error)
{
	fprintf(stderr, "messages: %s: %s (%s)\n", what, strerror(-error), oc_team_error(team));
	return 1;
}

/* Rank 0 asks for a square; both send each other 8 MiB at once; and they sum up what they saw. */
static int talk(struct oc_team *team, uint64_t *out, uint64_t *in)
{
	uint32_t me = oc_team_rank(team), peer = !me;
	struct oc_op sum = { .apply = add, .bytes = sizeof(uint64_t), .commutative = 1 };
	uint64_t question = 12, answer = 0, wrong = 0, all = 0;
	struct oc_call call = { .collective = OC_ALLREDUCE,
				.send = &wrong,
				.recv = &all,
				.bytes = sizeof(all),
				.op = &sum };
	struct oc_request *request;
	struct oc_status status;
	int error;

	if (me == 0) {
		error = oc_send(team, peer, 1, &question, sizeof(question));
		if (!error)
			error = oc_recv(team, peer, 2, &answer, sizeof(answer), NULL);
		wrong += answer != 144;
	} else {
		error = oc_recv(team, OC_ANY_SOURCE, OC_ANY_TAG, &question, sizeof(question),
				&status);
		question *= question;
		if (!error)
			error = oc_send(team, status.source, status.tag + 1, &question,
					sizeof(question));
	}
	if (error)
		return complain(team, "the question", error);
	for (size_t i = 0; i < WORDS; i++)
		out[i] = me * 1000003ull + i;
	/* Both send: one of the two calls must not wait for the other rank's receive. */
	error = oc_irecv(team, peer, 3, in, WORDS * sizeof(*in), &status, &request);
	if (!error)
		error = oc_send(team, peer, 3, out, WORDS * sizeof(*out));
	if (!error)
		error = oc_wait(request);
	if (error)
		return complain(team, "8 MiB", error);
	for (size_t i = 0; i < WORDS; i++)
		wrong += in[i] != peer * 1000003ull + i;
	wrong += status.bytes != WORDS * sizeof(*in);
	error = oc_collective(team, &call);
	if (error)
		return complain(team, "the sum", error);
	if (me == 0)
		printf("messages: 12 squared is %llu; 8 MiB each way; verified: %s\n",
		       (unsigned long long)answer, all ? "no" : "yes");
	return all != 0;
}

static int run(int socket, uint32_t rank)
{
	struct meeting meeting = { .socket = socket, .rank = rank };
	struct oc_bootstrap bootstrap = { .rank = rank,
					  .size = 2,
					  .context = &meeting,
					  .allgather_start = gather_start,
					  .allgather_test = gather_test };
	uint64_t *out = malloc(WORDS * sizeof(*out)), *in = malloc(WORDS * sizeof(*in));
	struct oc_team *team;
	int error = out && in ? oc_team_create(&team, &bootstrap) : -ENOMEM, failed;

	if (error) {
		fprintf(stderr, "messages: no team: %s\n", strerror(-error));
		free(out);
		free(in);
		return 1;
	}
	failed = talk(team, out, in);
	oc_team_destroy(team);
	free(out);
	free(in);
	return failed;
}

int main(int argc, char **argv)
{
	int sockets[2], status, failed;
	pid_t child;

	if (argc > 1) {
		fprintf(stderr, "messages: unexpected argument '%s'; it takes none\n", argv[1]);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) {
		perror("messages: socketpair");
		return 1;
	}
	child = fork();
	if (child < 0) {
		perror("messages: fork");
		return 1;
	}
	close(sockets[child == 0 ? 0 : 1]);
	if (child == 0)
		_exit(run(sockets[1], 1));
	failed = run(sockets[0], 0);
	waitpid(child, &status, 0);
	return failed || status;
}
