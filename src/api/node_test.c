/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes may form a team, as front ends ask before there is one. */
#include <sys/wait.h>
#include <unistd.h>

#include "onecopy/onecopy.h"
#include "support/test.h"

/* What a child says that asks before this process knows. */
static uint64_t of_child(void)
{
	uint64_t said = 0;
	pid_t child;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		said = oc_node();
		_exit(write(ends[1], &said, sizeof(said)) != sizeof(said));
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &said, sizeof(said)), sizeof(said));
	close(ends[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return said;
}

TEST(processes_of_one_node_say_the_same)
{
	uint64_t said = of_child();

	assert_true(said != 0);
	assert_true(oc_node() == said);
	assert_true(oc_node() == said);
}
