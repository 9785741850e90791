/* SPDX-License-Identifier: BSD-3-Clause */
/* Log and options. Options are parsed once per process, so each case runs in a child. */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			printf("%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition); \
			fflush(stdout);                                                      \
			_exit(1);                                                            \
		}                                                                            \
	} while (0)

/* Runs the body in a child whose standard error is kept; returns the child's exit status. */
static int in_child(void (*body)(void), char *said, size_t bytes)
{
	size_t used = 0;
	ssize_t done;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		body();
		_exit(0);
	}
	close(ends[1]);
	while ((done = read(ends[0], said + used, bytes - 1 - used)) > 0)
		used += (size_t)done;
	said[used] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static unsigned int lines_in(const char *text)
{
	unsigned int lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static char said[65536];

static void log_at_default(void)
{
	unsetenv("ONECOPY_LOG");
	errno = EXDEV;
	oci_error("first %d: %m", 1);
	oci_warn("second");
	oci_info("third");
	oci_debug("fourth");
	CHECK(errno == EXDEV);
}

TEST(log_prints_warnings_by_default_and_keeps_errno)
{
	char expected[64];

	assert_int_equal(in_child(log_at_default, said, sizeof(said)), 0);
	assert_int_equal(lines_in(said), 2);
	assert_true(!strncmp(said, "onecopy: [", 10));
	snprintf(expected, sizeof(expected), "error: first 1: %s\n", strerror(EXDEV));
	assert_non_null(strstr(said, expected));
	assert_non_null(strstr(said, "] warning: second\n"));
}

static void log_at_debug(void)
{
	setenv("ONECOPY_LOG", "debug", 1);
	oci_debug("fourth");
}

TEST(log_level_comes_from_the_environment)
{
	assert_int_equal(in_child(log_at_debug, said, sizeof(said)), 0);
	assert_int_equal(lines_in(said), 1);
	assert_non_null(strstr(said, "] debug: fourth\n"));
}

static void log_long(void)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	oci_error("%s", text);
	close(STDERR_FILENO);
	oci_error("into nowhere");
}

TEST(log_cuts_a_long_line_and_survives_a_closed_stderr)
{
	assert_int_equal(in_child(log_long, said, sizeof(said)), 0);
	assert_int_equal(strlen(said), 1023);
	assert_string_equal(said + 1015, "xxxx...\n");
}

static void *log_many(void *argument)
{
	for (int i = 0; i < 100; i++)
		oci_error("%s", (const char *)argument);
	return NULL;
}

static void log_from_threads(void)
{
	static char text[2][101];
	pthread_t thread[2];

	for (int i = 0; i < 2; i++) {
		memset(text[i], 'a' + i, 100);
		CHECK(!pthread_create(&thread[i], NULL, log_many, text[i]));
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

TEST(log_lines_of_threads_do_not_mix)
{
	char *line, *rest = NULL;
	unsigned int lines = 0;

	assert_int_equal(in_child(log_from_threads, said, sizeof(said)), 0);
	for (line = strtok_r(said, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *text = strstr(line, "error: ");

		assert_non_null(text);
		text += strlen("error: ");
		assert_int_equal(strlen(text), 100);
		assert_int_equal(strspn(text, (char[]){ *text, '\0' }), 100);
		lines++;
	}
	assert_int_equal(lines, 200);
}

static void clear_environment(void)
{
	clearenv();
}

static const struct oci_option_info *find_info(const char *variable)
{
	const struct oci_option_info *found;

	for (unsigned int i = 0; (found = oci_option_info(i)) != NULL; i++)
		if (!strcmp(found->variable, variable))
			return found;
	return NULL;
}

static void read_defaults(void)
{
	const struct oci_options *options;

	clear_environment();
	options = oci_options();
	CHECK(options == oci_options());
	CHECK(options->enable && options->check_calls);
	CHECK(options->mechanism == OCI_WAY_AUTO && options->p2p == OCI_WAY_AUTO &&
	      !strcmp(options->algorithm[OC_ALLREDUCE], "auto"));
	CHECK(options->ptracer == OCI_PTRACER_ANCESTOR && !options->stats_dir);
	CHECK(!options->tuning);
	CHECK(options->segment_bytes == (size_t)1 << 30 && options->spins > 0);
	CHECK(options->log == OCI_LOG_WARN);
	for (unsigned int i = 0; oci_option_info(i); i++) {
		CHECK(!strcmp(oci_option_info(i)->from, "default"));
		CHECK(!strcmp(oci_option_info(i)->value, oci_option_info(i)->fallback));
		CHECK(*oci_option_info(i)->help);
	}
}

TEST(options_have_silent_defaults)
{
	assert_int_equal(in_child(read_defaults, said, sizeof(said)), 0);
	assert_string_equal(said, "");
}

static void read_settings(void)
{
	const struct oci_options *options;

	clear_environment();
	setenv("ONECOPY", "off", 1);
	setenv("ONECOPY_MECHANISM", "cma", 1);
	setenv("ONECOPY_P2P", "writev", 1);
	setenv("ONECOPY_BCAST", "knomial:4", 1);
	setenv("ONECOPY_PTRACER", "any", 1);
	setenv("ONECOPY_SEGMENT_BYTES", "3m", 1);
	setenv("ONECOPY_HEAP_BYTES", "2G", 1);
	setenv("ONECOPY_SPINS", "0", 1);
	setenv("ONECOPY_CHECK", "0", 1);
	setenv("ONECOPY_STATS_DIR", "/tmp/x", 1);
	setenv("ONECOPY_TUNING", "/tmp/y", 1);
	setenv("ONECOPY_LOG", "info", 1);
	options = oci_options();
	unsetenv("ONECOPY_BCAST"); /* the program may; the value stays */
	CHECK(!options->enable && !options->check_calls && !options->spins);
	CHECK(options->mechanism == OCI_WAY_CMA && options->p2p == OCI_WAY_WRITEV &&
	      !strcmp(options->algorithm[OC_BCAST], "knomial:4"));
	CHECK(options->ptracer == OCI_PTRACER_ANY && options->segment_bytes == 3u << 20);
	CHECK(options->heap_bytes == (size_t)2 << 30);
	CHECK(!strcmp(options->tuning, "/tmp/y"));
	CHECK(!strcmp(options->stats_dir, "/tmp/x") && options->log == OCI_LOG_INFO);
	CHECK(!strcmp(find_info("ONECOPY_BCAST")->value, "knomial:4"));
	CHECK(!strcmp(find_info("ONECOPY_BCAST")->from, "environment"));
}

TEST(options_come_from_the_environment)
{
	assert_int_equal(in_child(read_settings, said, sizeof(said)), 0);
	assert_string_equal(said, "");
}

static void read_bad_values(void)
{
	static const char *const bad[][2] = {
		{ "ONECOPY", "maybe" },	     { "ONECOPY_MECHANISM", "warp" },
		{ "ONECOPY_BCAST", "" },     { "ONECOPY_GATHER", "x y" },
		{ "ONECOPY_PTRACER", "me" }, { "ONECOPY_SEGMENT_BYTES", "12Q" },
		{ "ONECOPY_SPINS", "-1" },   { "ONECOPY_CHECK", "2" },
		{ "ONECOPY_LOG", "loud" },
	};

	clear_environment();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		setenv(bad[i][0], bad[i][1], 1);
	setenv("ONECOPY_REDUCE", "foo", 1);
	CHECK(oci_options()->enable && oci_options()->spins > 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(!strcmp(find_info(bad[i][0])->from, "default"));
		oci_option_reject(bad[i][0], bad[i][1], "something else"); /* said before */
	}
	CHECK(!strcmp(find_info("ONECOPY_REDUCE")->from, "environment"));
	oci_option_reject("ONECOPY_REDUCE", "foo", "the name of one"); /* of a right form */
	CHECK(!strcmp(find_info("ONECOPY_REDUCE")->value, "auto"));
	CHECK(!strcmp(find_info("ONECOPY_REDUCE")->from, "default"));
}

TEST(a_bad_value_gives_one_warning_and_the_default)
{
	assert_int_equal(in_child(read_bad_values, said, sizeof(said)), 0);
	assert_int_equal(lines_in(said), 10);
	assert_non_null(strstr(said,
			       "warning: ONECOPY_MECHANISM=warp cannot be used: expected auto, "
			       "cma, map, shm or kmod; going on with ONECOPY_MECHANISM=auto\n"));
}

static void read_misspelt(void)
{
	clear_environment();
	setenv("ONECOPY_BCST", "knomial:4", 1);
	setenv("ONECOPYRIGHT", "mine", 1);
	oci_options();
}

TEST(a_misspelt_variable_is_named)
{
	assert_int_equal(in_child(read_misspelt, said, sizeof(said)), 0);
	assert_int_equal(lines_in(said), 1);
	assert_non_null(strstr(said, "ONECOPY_BCST is not an option"));
}

static void read_as_rank_one(void)
{
	clear_environment();
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("ONECOPY_SPINS", "many", 1);
	oci_options();
}

TEST(only_the_first_rank_of_a_job_warns)
{
	assert_int_equal(in_child(read_as_rank_one, said, sizeof(said)), 0);
	assert_string_equal(said, "");
}

/* Prints the hash under a setting, as the child's whole output. */
static const char *hash_variable, *hash_value;

static void print_hash(void)
{
	char text[32];
	int length;

	clear_environment();
	if (hash_variable)
		setenv(hash_variable, hash_value, 1);
	length = snprintf(text, sizeof(text), "%016llx", (unsigned long long)oci_options_hash());
	CHECK(write(STDERR_FILENO, text, (size_t)length) == length);
}

static void hash_under(const char *variable, const char *value, char text[32])
{
	hash_variable = variable;
	hash_value = value;
	assert_int_equal(in_child(print_hash, text, 32), 0);
	assert_int_equal(strlen(text), 16);
}

TEST(the_hash_covers_what_ranks_must_share_and_nothing_else)
{
	static const char *const same[][2] = {
		{ "ONECOPY", "1" },
		{ "ONECOPY_SPINS", "7" },
		{ "ONECOPY_LOG", "error" },
		{ "ONECOPY_STATS_DIR", "/tmp" },
		{ "ONECOPY_PTRACER", "any" },
		{ "ONECOPY_SEGMENT_BYTES", "1048576K" },
		{ "ONECOPY_HEAP_BYTES", "1G" },
	};
	static const char *const other[][2] = {
		{ "ONECOPY", "0" },	     { "ONECOPY_MECHANISM", "shm" },
		{ "ONECOPY_BCAST", "cico" }, { "ONECOPY_ALLREDUCE", "mpi" },
		{ "ONECOPY_CHECK", "off" },  { "ONECOPY_SEGMENT_BYTES", "64M" },
	};
	char base[32], text[32];

	hash_under(NULL, NULL, base);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		hash_under(same[i][0], same[i][1], text);
		assert_string_equal(text, base);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		hash_under(other[i][0], other[i][1], text);
		assert_string_not_equal(text, base);
	}
}

TEST(bytes_take_a_suffix_and_refuse_what_does_not_fit)
{
	static const char *const bad[] = { "",
					   "K",
					   "-1",
					   "1KK",
					   " 1",
					   "1.5M",
					   "0x10",
					   "18446744073709551616",
					   "18014398509481984K" };
	size_t bytes = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(oci_option_bytes(bad[i], &bytes));
	assert_int_equal(bytes, 7);
	assert_true(oci_option_bytes("0", &bytes) && bytes == 0);
	assert_true(oci_option_bytes("65536", &bytes) && bytes == 65536);
	assert_true(oci_option_bytes("64k", &bytes) && bytes == 65536);
	assert_true(oci_option_bytes("2G", &bytes) && bytes == (size_t)2 << 30);
}

TEST(the_clock_runs_forward_and_words_exchange)
{
	uint64_t before = oci_clock_ns(), word = 1, expected = 2;

	usleep(2000);
	assert_true(oci_clock_ns() - before >= 2000000);
	assert_false(oci_compare_exchange(&word, &expected, 3));
	assert_int_equal(expected, 1);
	assert_true(oci_compare_exchange(&word, &expected, 3));
	oci_store_release(&word, 4);
	assert_int_equal(oci_load_acquire(&word), 4);
}
