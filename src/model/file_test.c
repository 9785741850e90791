/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning files: what is read back, and what is refused, where and in which words. */
#include "lab/tune/write.h"
#include "model/model.h"
#include "model/place.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/onecopy-file-test-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int check_cell(const char *collective, const char *algorithm, const char **expected)
{
	*expected = "bcast with knomial:4";
	return strcmp(collective, "bcast") || strcmp(algorithm, "knomial:4") ? -EINVAL : 0;
}

static int parse(const char *text, unsigned int flags, struct oci_model *model,
		 struct oci_model_error *error)
{
	return oci_model_parse("t.json", text, strlen(text), flags, check_cell, model, error);
}

/* The text is refused at LINE:COLUMN with words that hold `want`. */
static void refused(const char *text, unsigned int line, unsigned int column, const char *want)
{
	struct oci_model_error error;
	struct oci_model model;
	char place[64];

	snprintf(place, sizeof(place), "t.json:%u:%u: ", line, column);
	memset(&model, 0x5a, sizeof(model));
	assert_int_equal(parse(text, OCI_MODEL_ANY_MACHINE, &model, &error), -EINVAL);
	if (strncmp(error.text, place, strlen(place)) || !strstr(error.text, want))
		fail_msg("got '%s', want '%s...%s'", error.text, place, want);
	assert_int_equal(*(unsigned char *)&model, 0x5a);
}

#define HEAD "{\"onecopy\": \"tuning\", \"version\": 1, \"name\": \"x\",\n"
#define MACHINE \
	"\"machine\": {\"host\": \"h\", \"cpu\": \"c\", \"cpus\": 2, \"page_bytes\": 4096},\n"
#define TERM(members) HEAD MACHINE "\"terms\": {\"cma.alpha\": {" members "}}}"
#define CELL(members) HEAD MACHINE "\"terms\": {},\n\"cells\": [{" members "}]}"
#define BCAST "\"collective\": \"bcast\", \"algorithm\": \"knomial:4\""

TEST(what_is_no_tuning_file_is_refused_with_its_place)
{
	refused("", 1, 1, "expected a tuning file in JSON");
	refused("[]", 1, 1, "expected an object, found an array");
	refused("nonsense", 1, 1, "expected a tuning file in JSON");
	refused("{\n  \"onecopy\": \"tuning\",\n  \"version\": 1", 3, 14, "JSON");
	refused("{\"version\": 1}", 1, 1, "\"onecopy\"");
	refused("{\"onecopy\": \"plan\", \"version\": 1}", 1, 13, "expected \"tuning\"");
	refused("{\"onecopy\": \"tuning\", \"version\": 2}", 1, 34, "version 1");
	refused("{\"onecopy\": \"tuning\", \"version\": 1.0}", 1, 34, "whole number");
	refused("{\"onecopy\": \"tuning\", \"version\": -1}", 1, 34, "0 to");
	refused("{\"onecopy\": \"tuning\",\n\"version\": 1, \"nmae\": 2}", 2, 15, "found \"nmae\"");
	refused(HEAD "\"terms\": {}}", 1, 1, "\"machine\"");
	refused(HEAD "\"machine\": 3, \"terms\": {}}", 2, 12, "expected an object");
	refused(HEAD MACHINE "\"terms\": []}", 3, 10, "expected an object, found an array");
	refused(HEAD MACHINE "\"calibrated\": 1, \"terms\": {}}", 3, 15, "true or false");
	refused(HEAD "\"name\": \"y\"}", 2, 6, "duplicate");
}

TEST(a_bad_term_is_refused_with_its_place)
{
	refused(HEAD MACHINE "\"terms\": {\"cma.alhpa\": 1}}", 3, 11, "found \"cma.alhpa\"");
	refused(HEAD MACHINE "\"terms\": {\"cma.alpha\": 1}}", 3, 24, "found a number");
	refused(TERM("\"unit\": \"s\", \"source\": \"\""), 3, 24, "\"value\": a number");
	refused(TERM("\"value\": \"1\", \"unit\": \"s\", \"source\": \"\""), 3, 34,
		"found a string");
	refused(TERM("\"value\": -1, \"unit\": \"s\", \"source\": \"\""), 3, 34, "from 0 to 1");
	refused(TERM("\"value\": 1e300, \"unit\": \"s\", \"source\": \"\""), 3, 34, "from 0 to 1");
	refused(TERM("\"value\": 1e999, \"unit\": \"s\", \"source\": \"\""), 3, 34, "overflow");
	refused(TERM("\"value\": NaN, \"unit\": \"s\", \"source\": \"\""), 3, 34, "JSON");
	refused(TERM("\"value\": 0, \"unit\": \"us\", \"source\": \"\""), 3, 45, "the unit \"s\"");
	refused(TERM("\"value\": 0, \"unit\": \"s\""), 3, 24, "\"source\"");
	refused(TERM("\"value\": 0, \"unit\": \"s\", \"source\": \"\\u0007\""), 3, 60, "control");
	refused(TERM("\"value\": 0, \"unit\": \"s\", \"source\": \"\", \"x\": 0"), 3, 64,
		"found \"x\"");
	refused(TERM("\"value\": 0, \"unit\": \"s\", \"source\": \"\", \"residual\": -1"), 3, 76,
		"found -1");
}

TEST(a_bad_cell_is_refused_with_its_place)
{
	refused(CELL(""), 4, 11, "\"collective\"");
	refused(CELL("\"collective\": \"bcast\", \"algorithm\": \"knomail\""), 4, 11,
		"expected bcast with knomial:4, found \"bcast\" with \"knomail\"");
	refused(CELL(BCAST ", \"ranks\": [8, 2]"), 4, 70, "smaller number first");
	refused(CELL(BCAST ", \"ranks\": [1, 2, 3]"), 4, 70, "found 3");
	refused(CELL(BCAST ", \"ranks\": [1, 4294967296]"), 4, 70, "at most 4294967295");
	refused(CELL(BCAST ", \"bytes\": [0, \"64Q\"]"), 4, 74, "64K");
	refused(CELL(BCAST ", \"bytes\": -5"), 4, 70, "negative");
	refused(CELL(BCAST ", \"bytes\": null"), 4, 70, "null");
	refused(HEAD MACHINE "\"terms\": {}, \"cells\": {}}", 3, 23, "expected an array");
}

TEST(deep_nesting_is_refused_before_anyone_recurses)
{
	static char deep[100001];

	memset(deep, '[', sizeof(deep) - 1);
	refused(deep, 1, 9, "at most 8 brackets");
	for (size_t i = 0; i + 5 < sizeof(deep); i += 5)
		memcpy(deep + i, "{\"a\":", 5);
	refused(deep, 1, 41, "at most 8 brackets");
	refused("{\"onecopy\": \"[[[[[[[[[[[[[[[[\"}", 1, 13, "at most 15 bytes");
}

TEST(a_sentence_holds_no_control_characters)
{
	struct oci_model_error error;
	struct oci_model model;

	assert_int_equal(parse("{\"\\u001b[31m\": 1, \"onecopy\": \"tuning\", \"version\": 1}", 0,
			       &model, &error),
			 -EINVAL);
	for (const char *c = error.text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
	assert_int_equal(parse("{\"a\": \x1b}", 0, &model, &error), -EINVAL);
	for (const char *c = error.text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
	assert_int_equal(oci_model_parse("t", "{}\0{}", 5, 0, NULL, &model, &error), -EINVAL);
}

TEST(cells_take_numbers_ranges_and_suffixes)
{
	struct oci_model_error error;
	struct oci_model model;

	assert_int_equal(parse(HEAD MACHINE "\"terms\": {}, \"cells\": ["
					    "{" BCAST ", \"ranks\": 8, \"bytes\": [0, \"64K\"]},"
					    "{" BCAST ", \"comment\": \"all\"}]}",
			       OCI_MODEL_ANY_MACHINE, &model, &error),
			 0);
	assert_int_equal(model.cell_count, 2);
	assert_int_equal(model.cells[0].ranks_min, 8);
	assert_int_equal(model.cells[0].ranks_max, 8);
	assert_int_equal(model.cells[0].bytes_min, 0);
	assert_int_equal(model.cells[0].bytes_max, 65536);
	assert_int_equal(model.cells[1].ranks_max, UINT32_MAX);
	assert_true(model.cells[1].bytes_max == SIZE_MAX);
	oci_model_destroy(&model);
}

/* As `onecopy tune` of 0.2.0 wrote it: the state of the machine in which it measured, and terms of
 * first touches. */
TEST(what_an_older_file_says_of_no_cost_is_ignored)
{
	static const char *const distance[] = {
		"",
		("\"distance\": {\"state\": \"near\", \"flag\": 9.2e-8, \"share\": 0.61, "
		 "\"other\": 1.9e-7},\n"),
		"\"distance\": {\"state\": \"far\", \"flag\": 1.9e-7, \"share\": 0.3},\n",
	};
	static const char touches[] =
		"\"touch\": {\"value\": 1e-7, \"unit\": \"s/page\", \"source\": \"\"},\n"
		"\"map.first\": {\"value\": 2e-8, \"unit\": \"s/page\", \"source\": \"\"},\n";
	uint64_t hash[3];

	for (size_t i = 0; i < 3; i++) {
		struct oci_model_error error;
		struct oci_model model;
		char text[1000];

		snprintf(text, sizeof(text),
			 HEAD MACHINE
			 "%s\"terms\": {%s\"cma.alpha\": {\"value\": 1e-6, \"unit\": \"s\", "
			 "\"source\": \"\"}}}",
			 distance[i], i ? touches : "");
		assert_int_equal(parse(text, OCI_MODEL_ANY_MACHINE, &model, &error), 0);
		assert_true(model.copy[OCI_MODEL_CMA].alpha.value == 1e-6);
		hash[i] = oci_model_hash(&model);
		oci_model_destroy(&model);
	}
	assert_true(hash[0] == hash[1] && hash[1] == hash[2]);
}

TEST(what_is_written_is_read_back_the_same)
{
	struct oci_model_error error;
	struct oci_model model, again;
	struct stat status;
	const char *name;

	for (unsigned int i = 0; (name = oci_model_profile_name(i)) != NULL; i++) {
		assert_int_equal(oci_model_profile(name, &model), 0);
		assert_string_equal(model.name, name);
		assert_false(model.calibrated);
		assert_true(oci_model_knows(&model, OCI_MODEL_CMA));
		oci_machine_self(&model.machine);
		model.copy[OCI_MODEL_CMA].beta.value = 1.0 / 3e10; /* takes 17 digits */
		model.cells = calloc(2, sizeof(*model.cells));
		model.cell_count = 2;
		model.cells[0] = (struct oci_model_cell){ "bcast", "knomial:4", 2, 8, 1, 4096 };
		model.cells[1] =
			(struct oci_model_cell){ "bcast", "knomial:4", 0, UINT32_MAX, 0, SIZE_MAX };
		assert_int_equal(oci_model_write(&model, in_folder("a/b/x.json")), 0);
		assert_int_equal(stat(in_folder("a/b/x.json"), &status), 0);
		assert_int_equal(status.st_mode & 07777, 0644);
		assert_int_equal(
			oci_model_read(in_folder("a/b/x.json"), 0, check_cell, &again, &error), 0);
		assert_int_equal(oci_model_hash(&again), oci_model_hash(&model));
		assert_string_equal(again.path, in_folder("a/b/x.json"));
		assert_string_equal(again.copy[OCI_MODEL_CMA].alpha.source,
				    model.copy[OCI_MODEL_CMA].alpha.source);
		assert_memory_equal(&again.machine, &model.machine, sizeof(model.machine));
		oci_model_destroy(&model);
		oci_model_destroy(&again);
	}
	assert_int_equal(oci_model_profile("cray", &model), -ENOENT);
	assert_int_equal(oci_model_profile("default", &model), 0);
	assert_int_equal(oci_model_write(&model, folder), -EISDIR);
	assert_int_equal(oci_model_write(&model, "/dev/null"), -ENOTSUP);
	assert_int_equal(oci_model_write(&model, "/proc/nowhere/x"), -ENOENT);
	assert_int_equal(oci_model_write(&model, ""), -ENOENT);
	oci_model_destroy(&model);
}

TEST(a_file_of_another_machine_is_refused_by_what_differs)
{
	static const char *const part[] = { "\"cpu\"", "\"cpus\"", "\"page_bytes\"", "\"host\"" };
	struct oci_machine self;

	oci_machine_self(&self);
	assert_true(*self.host && *self.cpu && self.cpus && self.page_bytes);
	for (int i = 0; i < 5; i++) {
		struct oci_model_error error;
		struct oci_model model;
		char want[64], *text;

		assert_int_equal(oci_model_profile("knl", &model), 0);
		model.machine = self;
		if (i == 0)
			strcpy(model.machine.cpu, "Z80");
		if (i == 1)
			model.machine.cpus++;
		if (i == 2)
			model.machine.page_bytes *= 2;
		if (i == 3)
			strcpy(model.machine.host, "else*where");
		if (i == 4) {
			strcpy(model.machine.host, "*");
			strcpy(model.machine.kernel, "0.1");
		}
		text = oci_model_text(&model);
		oci_model_destroy(&model);
		assert_non_null(text);
		assert_int_equal(parse(text, 0, &model, &error), i < 4 ? -EINVAL : 0);
		if (i == 4)
			oci_model_destroy(&model);
		else
			snprintf(want, sizeof(want), "expected %.*s ", (int)strlen(part[i]) - 2,
				 part[i] + 1);
		if (i < 4 && (!strstr(error.text, want) || !strstr(error.text, "onecopy tune")))
			fail_msg("'%s' does not say '%s'", error.text, want);
		free(text);
	}
}

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

TEST(what_is_not_to_be_trusted_is_refused)
{
	struct oci_model_error error;
	struct oci_model model;
	const char *path = in_folder("t.json");

	assert_int_equal(oci_model_read(path, 0, NULL, &model, &error), -ENOENT);
	assert_non_null(strstr(error.text, path));
	assert_int_equal(oci_model_read(folder, 0, NULL, &model, &error), -EINVAL);
	assert_non_null(strstr(error.text, "regular file"));
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes into it, and nobody waits */
	assert_int_equal(oci_model_read(path, 0, NULL, &model, &error), -EINVAL);
	unlink(path);
	put(path, "{}", 0666);
	assert_int_equal(oci_model_read(path, 0, NULL, &model, &error), -EACCES);
	assert_non_null(strstr(error.text, "chmod"));
	put(path, "{}", 0600);
	if (!geteuid()) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(oci_model_read(path, 0, NULL, &model, &error), -EACCES);
		assert_non_null(strstr(error.text, "12345"));
		assert_int_equal(oci_model_read(path, OCI_MODEL_ANY_OWNER, NULL, &model, &error),
				 -EINVAL);
		assert_non_null(strstr(error.text, "t.json:1:1: expected \"onecopy\""));
	}
	assert_int_equal(truncate(path, (1 << 20) + 1), 0);
	assert_int_equal(oci_model_read(path, OCI_MODEL_ANY_OWNER, NULL, &model, &error), -EFBIG);
	unlink(path);
}

TEST(processors_have_names_on_each_architecture)
{
	char name[64];

	oci_machine_cpu_name("processor\t: 0\nmodel name\t: Xeon 9\nflags: x\n", name, 64);
	assert_string_equal(name, "Xeon 9");
	oci_machine_cpu_name("processor\t: 0\ncpu\t\t: POWER8 (raw)\n", name, 64);
	assert_string_equal(name, "POWER8 (raw)");
	oci_machine_cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", name, 64);
	assert_string_equal(name, "ARM 0x41 0xd0c");
	oci_machine_cpu_name("", name, 64);
	assert_string_equal(name, "");
	oci_machine_cpu_name("model name : 0123456789", name, 5);
	assert_string_equal(name, "0123");
}

TEST(places_are_found_in_text_that_nobody_checked)
{
	static const char *const broken[] = {
		"",    "{", "{\"a",	      "{\"a\"", "{\"a\":", "[", "[1,", "{\"a\": \"\\",
		"[[[", "]", "{\"b\":1,\"a\":"
	};
	const struct oci_json_step steps[] = { { "a", 0 }, { NULL, 1 } };

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		size_t length = strlen(broken[i]);

		for (size_t count = 0; count < 3; count++)
			assert_true(oci_json_place(broken[i], length, steps, count, true) <=
				    length);
		assert_true(oci_json_too_deep(broken[i], length, 8) == length);
	}
	assert_int_equal(oci_json_place(" {\"b\": [\"]\"], \"a\": [1, 2]}", 26, steps, 2, false),
			 23);
}

static void *find_current(void *argument)
{
	(void)argument;
	return (void *)oci_model_current(check_cell);
}

/*
 * What a process that looks for its model says, at level info, and the name of what it found: in a
 * child, as a process looks once. `user`, where we are root: root may search every directory.
 */
static const char *said(const char *variable, const char *value, uid_t user)
{
	static char text[4096];
	FILE *file = tmpfile();
	size_t length;
	int status;
	pid_t pid;

	assert_non_null(file);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		unsetenv("ONECOPY_TUNING");
		unsetenv("XDG_CONFIG_HOME");
		setenv("ONECOPY_LOG", "info", 1);
		setenv(variable, value, 1);
		dup2(fileno(file), STDERR_FILENO);
		if (!geteuid() && setuid(user))
			_exit(1);
		dprintf(STDERR_FILENO, "[%s]\n", oci_model_current(check_cell)->name);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rewind(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not say '%s'", text, part);
}

TEST(a_home_that_may_not_be_searched_is_no_file)
{
	char closed[256], place[512], named[700], info[700];
	struct oci_machine machine;
	const char *text;

	oci_machine_self(&machine);
	snprintf(closed, sizeof(closed), "%s", in_folder("closed"));
	snprintf(place, sizeof(place), "%s/onecopy/%s.json", closed, machine.host);
	assert_int_equal(mkdir(closed, 0), 0);
	snprintf(info, sizeof(info), "info: %s: Permission denied; the next place", place);
	text = said("XDG_CONFIG_HOME", closed, 65534);
	has(text, info);
	snprintf(named, sizeof(named), "warning: %s", place);
	assert_null(strstr(text, named));
	/* The same place, named by the user, is the user's mistake. */
	text = said("ONECOPY_TUNING", place, 65534);
	snprintf(named, sizeof(named), "ONECOPY_TUNING: %s: Permission denied; going on", place);
	has(text, named);
	has(text, "warning: ");
	has(text, "[default]");
	rmdir(closed);
}

TEST(a_path_that_is_too_long_is_said_and_ends_the_search)
{
	static struct oci_model refused_model;
	char path[sizeof(((struct oci_model *)NULL)->path) + 1];
	struct oci_model_error error;
	const char *text;

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	text = said("ONECOPY_TUNING", path, 0);
	has(text, "warning: ONECOPY_TUNING: expected a path of at most 511 bytes, found 512: /aaa");
	has(text, "[default]");
	/* Nor does a reader that is given it cut it off. */
	assert_int_equal(oci_model_read(path, 0, NULL, &refused_model, &error), -ENAMETOOLONG);
	assert_non_null(strstr(error.text, "at most 511 bytes, found 512"));
	/* One less is looked for: its name is longer than file systems take. */
	path[sizeof(path) - 2] = '\0';
	has(said("ONECOPY_TUNING", path, 0), "File name too long; going on");
}

/* Last, and once: what is found stays. */
TEST(the_model_of_a_process_is_found_once_and_a_bad_file_leaves_the_default)
{
	const struct oci_model *model[2];
	struct oci_model fallback;
	pthread_t thread[2];
	char path[512];

	put(in_folder("bad.json"), "{\"onecopy\": \"tuning\", \"version\": 7}", 0644);
	setenv("ONECOPY_TUNING", in_folder("bad.json"), 1);
	setenv("XDG_CONFIG_HOME", folder, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, find_current, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], (void **)&model[i]);
	assert_ptr_equal(model[0], model[1]);
	assert_false(model[0]->calibrated);
	assert_int_equal(oci_model_profile("default", &fallback), 0);
	assert_int_equal(oci_model_hash(model[0]), oci_model_hash(&fallback));
	oci_model_destroy(&fallback);
	assert_true(oci_model_place(OCI_MODEL_PLACE_VARIABLE, path, sizeof(path)));
	assert_string_equal(path, in_folder("bad.json"));
	assert_true(oci_model_place(OCI_MODEL_PLACE_USER, path, sizeof(path)));
	assert_non_null(strstr(path, in_folder("onecopy/")));
	assert_false(oci_model_place(OCI_MODEL_PLACE_SITE, path, 4));
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(in_folder("bad.json"));
	unlink(in_folder("a/b/x.json"));
	rmdir(in_folder("a/b"));
	rmdir(in_folder("a"));
	return rmdir(folder);
}

int main(void)
{
	return oct_test_run(make_folder, remove_folder);
}
