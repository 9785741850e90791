/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is declared as tracer of the ranks. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"
#include "team/ptracer.h"
#include "team/team.h"

TEST(the_common_ancestor_of_siblings_is_their_parent)
{
	pid_t children[2], all[3];

	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (!children[i]) {
			pause();
			_exit(0);
		}
	}
	assert_int_equal(oci_common_ancestor(children, 2), getpid());
	assert_int_equal(oci_common_ancestor(children, 1), children[0]);
	all[0] = children[0];
	all[1] = getpid();
	assert_int_equal(oci_common_ancestor(all, 2), getpid());
	for (int i = 0; i < 2; i++)
		kill(children[i], SIGKILL);
	for (int i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
}

static int declared;

/* As a kernel with Yama has it. */
int __wrap_oci_os_set_ptracer(pid_t pid);

int __wrap_oci_os_set_ptracer(pid_t pid)
{
	(void)pid;
	declared++;
	return 0;
}

/* Yama does not pass a declaration on to children. */
TEST(a_child_of_fork_declares_anew)
{
	struct oci_member member[2] = { { .pid = getpid() }, { .pid = getppid() } };
	struct oci_team team = { .size = 2, .member = member };
	int status, known = oci_ptracer_declare(&team);
	pid_t child;

	if (known == -ESRCH)
		oct_skip("the test's parent is init");
	declared = 0;
	oci_ptracer_declare(&team);
	assert_int_equal(declared, 0);
	child = fork();
	if (!child) {
		oci_ptracer_fork_child();
		oci_ptracer_declare(&team);
		_exit(declared);
	}
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 1);
}

/* Whoever descends from init may be any process of this user. */
TEST(init_is_not_declared_as_tracer)
{
	struct oci_member member[2] = { { .pid = getpid() }, { .pid = 1 } };
	struct oci_team team = { .size = 2, .member = member };

	assert_int_equal(oci_ptracer_declare(&team), -ESRCH);
}
