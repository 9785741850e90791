/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages through pipes, forced: what happens around them. The bytes of random messages are
 * message_random_test's affair, which runs with each way forced. */
#include <stdbool.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/engine.h"
#include "p2p/p2p.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

#define BYTES ((size_t)1000003)

static void fill(uint8_t *bytes, unsigned int seed)
{
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4093 + seed);
}

static size_t right(const uint8_t *bytes, unsigned int seed)
{
	size_t i = 0;

	while (i < BYTES && bytes[i] == (uint8_t)(i * 7 + i / 4093 + seed))
		i++;
	return i;
}

/* From 0 to 1, with no descriptor left to `starved`; true when it went through a pipe. */
static int pass(struct oc_team *team, int me, int starved, unsigned int seed, int *piped)
{
	uint8_t *bytes = malloc(BYTES);
	int before = oct_pipes(), failed;

	oct_starve(me == starved);
	fill(bytes, me ? 0 : seed);
	failed = me ? oc_recv(team, 0, 5, bytes, BYTES, NULL) : oc_send(team, 1, 5, bytes, BYTES);
	if (!failed && right(bytes, seed) != BYTES)
		failed = 1;
	oct_starve(false);
	*piped = oct_pipes() > before;
	free(bytes);
	return failed;
}

TEST_ON_RANKS(without_descriptors_messages_go_another_way, 2)
{
	int me = oc_team_rank(team) != 0, piped;

	/* What is opened at a first message for other reasons is open. */
	if (oct_barrier(team))
		return 1;
	if (pass(team, me, 0, 1, &piped) || piped)
		return 2; /* the sender cannot make one */
	if (pass(team, me, 1, 2, &piped) || piped != !me)
		return 3; /* it can, and the receiver cannot open it */
	if (pass(team, me, -1, 3, &piped) || piped != me)
		return 4; /* both can: the sender's is there already */
	return 0;
}

/* Asked for in another order than they were sent, one of them cut short. */
TEST_ON_RANKS(several_messages_follow_one_another_in_a_pipe, 2)
{
	uint8_t *bytes[4];
	struct oc_request *requests[4];
	struct oc_status status[4];
	int failed = 0;

	for (int i = 0; i < 4; i++) {
		bytes[i] = malloc(BYTES);
		fill(bytes[i], oc_team_rank(team) ? 0 : 10 + (unsigned int)i);
	}
	for (int i = 0; i < 4; i++) {
		int tag = oc_team_rank(team) ? 3 - i : i;

		if (oc_team_rank(team))
			failed |= oc_irecv(team, 0, tag, bytes[tag], tag == 2 ? 300000 : BYTES,
					   &status[tag], &requests[tag]);
		else
			failed |= oc_isend(team, 1, tag, bytes[tag], BYTES, &requests[tag]);
	}
	for (int i = 0; i < 4 && !failed; i++) {
		int error = oc_wait(requests[i]);
		bool cut = oc_team_rank(team) && i == 2;

		if (error != (cut ? -EMSGSIZE : 0))
			failed = 1;
		if (oc_team_rank(team) && status[i].bytes != BYTES)
			failed = 1;
		if (cut ? right(bytes[i], 10 + (unsigned int)i) < 300000 :
			  right(bytes[i], 10 + (unsigned int)i) != BYTES)
			failed = 1;
	}
	for (int i = 0; i < 4; i++)
		free(bytes[i]);
	return failed;
}

/* What the program does with the descriptors of pipes, none of which it opened: closes them; has a
 * file of its own there; or closes them while a child, say, holds the same pipes. */
enum loss { CLOSED, REPLACED, HELD, LOSSES };

struct loses {
	bool rank[2];
	enum loss how;
};

static bool is_pipe(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && S_ISFIFO(status.st_mode);
}

static void lose_pipes(enum loss how, int file)
{
	for (int fd = 3; fd < 512; fd++) {
		if (!is_pipe(fd))
			continue;
		if (how == HELD)
			fcntl(fd, F_DUPFD_CLOEXEC, 512);
		if (how == REPLACED)
			dup2(file, fd);
		else
			close(fd);
	}
}

/* Until a part of the first message is on its way: this rank's end of the pipe is open. */
static void until_under_way(const struct oc_team *team, const uint8_t *bytes)
{
	const struct oci_outbound *out;

	if (oc_team_rank(team)) {
		while (!bytes[0])
			oc_progress();
		return;
	}
	out = team->p2p->out[1];
	while (!TAILQ_FIRST(&out->announced) || !TAILQ_FIRST(&out->announced)->at)
		oc_progress();
}

/* Three messages are under way when their pipe is lost, the last of which is not asked for yet. */
static int lose_one(struct oc_team *team, const struct loses *loses)
{
	static uint8_t bytes[3][BYTES];
	struct oc_request *requests[3];
	uint32_t me = oc_team_rank(team);
	int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), failed = 0;

	/* Longer than a message: what was taken for a pipe could be read. */
	if (file < 0 || ftruncate(file, (off_t)(4 * BYTES)))
		return 1;
	for (int i = 0; i < 3; i++) {
		fill(bytes[i], me ? 0 : 10 + (unsigned int)i);
		if (me && i < 2)
			failed |= oc_irecv(team, 0, i, bytes[i], BYTES, NULL, &requests[i]);
		else if (!me)
			failed |= oc_isend(team, 1, i, bytes[i], BYTES, &requests[i]);
	}
	until_under_way(team, bytes[0]);
	if (loses->rank[me])
		lose_pipes(loses->how, file);
	oc_progress();
	if (me)
		failed |= oc_irecv(team, 0, 2, bytes[2], BYTES, NULL, &requests[2]);
	for (int i = 0; i < 3; i++)
		failed |= oc_wait(requests[i]);
	for (unsigned int i = 0; i < 3 && me; i++)
		failed |= right(bytes[i], 10 + i) != BYTES;
	failed |= lseek(file, 0, SEEK_CUR) != 0; /* neither read nor written */
	close(file);
	return failed ? 2 : 0;
}

static int loses(struct oc_team *team, void *arg)
{
	int me = (int)oc_team_rank(team), failed = lose_one(team, arg), piped;

	/* The next one has a pipe again. */
	if (!failed && (pass(team, me, -1, 3, &piped) ||
			(me ? team->p2p->in[0].pipe.fd : team->p2p->out[1]->pipe.write_fd) < 0))
		failed = 3;
	return failed;
}

TEST(a_message_arrives_though_the_program_closes_its_pipe)
{
	for (int ranks = 1; ranks <= 3; ranks++) {
		for (int how = 0; how < LOSSES; how++) {
			struct loses what = { { ranks & 1, ranks & 2 }, (enum loss)how };

			assert_int_equal(oct_fork_team(2, -1, loses, &what), 0);
		}
	}
}

/* Rank 1 dies while rank 0's bytes are in the pipe. */
static int dies(struct oc_team *team, void *arg)
{
	uint8_t *bytes = calloc(1, BYTES);
	struct oc_request *request;
	int error = 0;

	(void)arg;
	if (oc_team_rank(team)) {
		if (oc_irecv(team, 0, 0, bytes, BYTES, NULL, &request))
			return 1;
		while (!bytes[0])
			oc_progress();
		raise(SIGKILL);
	}
	bytes[0] = 1;
	error = oc_send(team, 1, 0, bytes, BYTES);
	/* Its last bytes are not asked for any more: a first message may just have gone. */
	while (!error)
		error = oc_send(team, 1, 0, bytes, BYTES);
	free(bytes);
	return error == -EOWNERDEAD ? 0 : 2;
}

TEST(a_receiver_that_dies_is_an_error_and_no_signal)
{
	assert_int_equal(oct_fork_team(2, 1, dies, NULL), 0);
}

int main(void)
{
	setenv("ONECOPY_P2P", "vmsplice", 1);
	return oct_test_run(NULL, NULL);
}
