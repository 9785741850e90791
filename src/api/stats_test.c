/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of statistics, in a directory where others may put what they like. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

static char directory[] = "/tmp/onecopy-stats-XXXXXX";
static char own[256 + 64], victim[64];
enum { RANK = 3 };

/* Of a rank of this process. */
static void name_file(char path[sizeof(own)], int rank)
{
	char host[256] = "?";

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(own), "%s/onecopy.%s.%d.%d.json", directory, host, (int)getpid(),
		 rank);
}

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	name_file(own, RANK);
	snprintf(victim, sizeof(victim), "%s/victim", directory);
	return setenv("ONECOPY_STATS_DIR", directory, 1);
}

static unsigned int entries(void)
{
	DIR *stream = opendir(directory);
	const struct dirent *entry;
	unsigned int count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		count += entry->d_name[0] != '.';
	closedir(stream);
	return count;
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(own);
	unlink(victim);
	return rmdir(directory);
}

static int written(const char *key)
{
	json_t *json = json_load_file(own, 0, NULL);
	int number = (int)json_integer_value(json_object_get(json, key));

	json_decref(json);
	return number;
}

TEST(a_later_run_with_the_number_writes_anew)
{
	assert_int_equal(oc_stats_write(RANK, 8), 0);
	assert_int_equal(written("rank"), RANK);
	assert_int_equal(written("job_ranks"), 8);
	assert_int_equal(oc_stats_write(RANK, 9), 0);
	assert_int_equal(written("job_ranks"), 9);
	assert_int_equal(entries(), 1);
}

/* As they may have in PID namespaces of their own. */
TEST(ranks_with_one_number_have_a_file_each)
{
	char other[sizeof(own)];

	name_file(other, RANK + 1);
	assert_int_equal(oc_stats_write(RANK + 1, 8), 0);
	assert_int_equal(entries(), 2);
	assert_int_equal(unlink(other), 0);
}

TEST(a_link_in_its_place_is_not_written_through)
{
	char text[16] = "";
	struct stat status;
	FILE *file = fopen(victim, "w");

	assert_non_null(file);
	fputs("precious", file);
	fclose(file);
	unlink(own);
	assert_int_equal(symlink(victim, own), 0);
	assert_int_equal(oc_stats_write(RANK, 8), 0);
	file = fopen(victim, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "precious");
	assert_int_equal(lstat(own, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(written("rank"), RANK);
}

TEST(what_cannot_be_replaced_is_an_error_and_leaves_nothing)
{
	unsigned int before;

	unlink(own);
	assert_int_equal(mkdir(own, 0700), 0);
	before = entries();
	assert_int_equal(oc_stats_write(RANK, 8), -EISDIR);
	assert_int_equal(entries(), before);
	rmdir(own);
}

/* In a rank of a team: three Bcasts, as the file has them. */
static int count_bytes(struct oc_team *team, void *arg)
{
	char path[sizeof(own)], buffer[1000] = "";
	json_t *json, *row = NULL, *found = NULL;
	size_t i;
	bool right;

	(void)arg;
	name_file(path, (int)oc_team_rank(team));
	for (int call = 0; call < 3; call++)
		if (oct_bcast(team, buffer, sizeof(buffer), 0))
			return 1;
	if (oc_stats_write((int)oc_team_rank(team), 2))
		return 2;
	json = json_load_file(path, 0, NULL);
	json_array_foreach(json_object_get(json, "collectives"), i, row)
	{
		if (!strcmp(json_string_value(json_object_get(row, "collective")), "bcast"))
			found = row;
	}
	right = json_integer_value(json_object_get(found, "calls")) == 3 &&
		json_integer_value(json_object_get(found, "bytes")) == 3 * sizeof(buffer);
	json_decref(json);
	unlink(path);
	return right ? 0 : 3;
}

TEST(calls_are_counted_with_their_bytes)
{
	assert_int_equal(oct_fork_team(2, -1, count_bytes, NULL), 0);
}

/* What is on standard error of a write with the rank, which fails. */
static void said_of_failure(int rank, char *text, size_t room)
{
	int before = dup(STDERR_FILENO), ends[2];
	ssize_t got;

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	assert_int_equal(oc_stats_write(rank, 8), -ENOENT);
	dup2(before, STDERR_FILENO);
	got = read(ends[0], text, room - 1);
	text[got > 0 ? got : 0] = '\0';
	close(before);
	close(ends[0]);
	close(ends[1]);
}

TEST(a_folder_that_a_node_lacks_is_one_line_of_the_job)
{
	char text[1024], away[PATH_MAX];

	snprintf(away, sizeof(away), "%s.away", directory);
	assert_int_equal(rename(directory, away), 0);
	said_of_failure(1, text, sizeof(text));
	assert_string_equal(text, "");
	said_of_failure(0, text, sizeof(text));
	assert_non_null(strstr(text, "set TMPDIR"));
	assert_int_equal(rename(away, directory), 0);
}

/* Run as `stats_test secure`: a set-uid program does not go where its caller's environment says. */
static int secure(void)
{
	if (!getauxval(AT_SECURE))
		return 77;
	return oc_stats_write(7, 8);
}

TEST(a_set_uid_program_does_not_go_by_the_environment)
{
	char copy[PATH_MAX], command[2 * PATH_MAX];
	int status;

	if (geteuid())
		oct_skip("only root can make a program of another user");
	snprintf(copy, sizeof(copy), "%s/program", directory);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", (int)getpid(), copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_int_equal(chown(copy, 65534, 65534), 0);
	assert_int_equal(chmod(copy, 04755), 0);
	snprintf(command, sizeof(command), "%s secure", copy);
	status = system(command);
	unlink(copy);
	if (WEXITSTATUS(status) == 77)
		oct_skip("the file system of %s is mounted nosuid", directory);
	assert_int_equal(status, 0);
	assert_int_equal(entries(), 1);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "secure"))
		_exit(secure()); /* the leak check of a sanitizer cannot run there */
	return oct_test_run(make_directory, remove_directory);
}
