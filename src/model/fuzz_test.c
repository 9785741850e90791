/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutations of valid tuning files: each is read and comes back from writing the same, or is refused
 * with file, line, column and what was expected. The same mutations in each run; for other ones,
 * and more: fuzz_test [COUNT [SEED]].
 */
#include "lab/tune/write.h"
#include "model/model.h"
#include "support/test.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long count = 10000;
static uint64_t seed = 20261120;

/* xorshift64*: good enough to mutate by, and the same everywhere. */
static uint64_t draw(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * 0x2545f4914f6cdd1du >> 16) % below;
}

static const char *const words[] = {
	"{",
	"}",
	"[",
	"]",
	",",
	":",
	"\"",
	"\\",
	"\\u0000",
	"\\ud800",
	"null",
	"true",
	"-",
	"NaN",
	"Infinity",
	"1e999",
	"-1e-999",
	"1e-320",
	"99999999999999999999",
	"-1",
	"0.5",
	"4294967296",
	"18446744073709551615",
	"\xff",
	"\xc3\xa9",
	"\x1b[2J",
	"\n",
	" ",
	"//",
	"\"cma.alpha\"",
	"\"value\"",
	"\"version\"",
	"\"cells\"",
	"\"64K\"",
	"\"distance\"",
	"\"map.push_beta\"",
	"\"cache.shared\"",
	"\"op\"",
	"{\"a\":",
	"[[[[[[[[[[",
	"",
};

struct buffer {
	char *text;
	size_t length, room;
};

static void splice(struct buffer *b, size_t at, size_t drop, const char *put, size_t length)
{
	if (drop > b->length - at)
		drop = b->length - at;
	if (b->length - drop + length > b->room)
		return;
	memmove(b->text + at + length, b->text + at + drop, b->length - at - drop);
	memcpy(b->text + at, put, length);
	b->length += length - drop;
}

static void mutate(struct buffer *b)
{
	size_t at = draw(b->length + 1), other, length;
	const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
	char piece[256];

	switch (draw(6)) {
	case 0:
		if (at < b->length)
			b->text[at] = (char)draw(256);
		return;
	case 1:
		splice(b, at, draw(4), word, strlen(word));
		return;
	case 2:
		splice(b, at, draw(64), "", 0);
		return;
	case 3: /* a piece of the file elsewhere in it */
		other = draw(b->length + 1);
		length = draw(sizeof(piece));
		if (length > b->length - other)
			length = b->length - other;
		memcpy(piece, b->text + other, length);
		splice(b, at, draw(2) ? length : 0, piece, length);
		return;
	case 4: /* a digit for a digit */
		for (; at < b->length; at++) {
			if (b->text[at] >= '0' && b->text[at] <= '9') {
				b->text[at] = "0123456789e-."[draw(13)];
				return;
			}
		}
		return;
	default:
		if (!draw(8))
			b->length = at;
	}
}

/* As `onecopy tune` writes it: the first terms that there are, and no others. */
static void give(struct oci_model *model, unsigned int terms)
{
	const struct oci_term_info *info;

	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		struct oci_term *term = oci_term_of(model, info);

		if (i >= terms)
			*term = (struct oci_term){ 0 };
		if (i >= terms || term->given)
			continue;
		*term = (struct oci_term){ .value = info->least > 0 ? 2 * info->least :
								      info->most / 2,
					   .residual = 0.01,
					   .given = true,
					   .source = "measured",
					   .method = "dictated",
					   .host = "vm",
					   .date = "2026-11-22" };
	}
	model->calibrated = true;
}

/* "tuned": everything; "short": a little of everything; else a profile. */
static char *valid_text(const char *profile)
{
	bool tuned = !strcmp(profile, "tuned"), is_short = !strcmp(profile, "short");
	struct oci_model model;
	char *text;

	assert_int_equal(oci_model_profile(tuned || is_short ? "default" : profile, &model), 0);
	if (tuned || is_short)
		give(&model, is_short ? 3 : UINT_MAX);
	free(model.cells);
	model.cells = calloc(2, sizeof(*model.cells));
	assert_non_null(model.cells);
	model.cell_count = 2;
	model.cells[0] = (struct oci_model_cell){ "bcast", "knomial:4", 2, 8, 1, 4096 };
	model.cells[1] = (struct oci_model_cell){ "gather", "mpi", 3, UINT32_MAX, 0, SIZE_MAX };
	text = oci_model_text(&model);
	assert_non_null(text);
	oci_model_destroy(&model);
	return text;
}

/* "t.json:LINE:COLUMN: ... expected ...", printable, with a place inside of the text. */
static void check_refusal(const struct oci_model_error *error, const struct buffer *b)
{
	unsigned int line = 0, column = 0, lines = 1;

	assert_int_equal(sscanf(error->text, "t.json:%u:%u: ", &line, &column), 2);
	assert_non_null(strstr(error->text, "expected"));
	for (const char *c = error->text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
	for (size_t i = 0; i < b->length; i++)
		lines += b->text[i] == '\n';
	assert_true(line >= 1 && line <= lines && column >= 1 && column <= b->length + 1);
}

static void check(const struct buffer *b, unsigned long *accepted)
{
	struct oci_model model, again;
	struct oci_model_error error;
	/* Of its own size, so that a sanitizer sees a step beyond the end. */
	char *exact = malloc(b->length ? b->length : 1), *text;
	int result;

	assert_non_null(exact);
	memcpy(exact, b->text, b->length);
	result = oci_model_parse("t.json", exact, b->length, OCI_MODEL_ANY_MACHINE, NULL, &model,
				 &error);
	free(exact);
	if (result) {
		assert_int_equal(result, -EINVAL);
		check_refusal(&error, b);
		return;
	}
	(*accepted)++;
	text = oci_model_text(&model);
	assert_non_null(text);
	if (oci_model_parse("t.json", text, strlen(text), OCI_MODEL_ANY_MACHINE, NULL, &again,
			    &error))
		fail_msg("what was read cannot be read again: %s", error.text);
	/* JSON has no integer for the largest sizes, so that one end may come back smaller. */
	if (again.cell_count == model.cell_count)
		for (size_t i = 0; i < model.cell_count; i++)
			if (model.cells[i].bytes_max > INT64_MAX)
				again.cells[i].bytes_max = model.cells[i].bytes_max;
	assert_int_equal(oci_model_hash(&again), oci_model_hash(&model));
	free(text);
	oci_model_destroy(&model);
	oci_model_destroy(&again);
}

TEST(mutated_files_are_read_or_refused_with_their_place)
{
	static const char *const profile[] = { "knl", "default", "tuned" };
	unsigned long accepted = 0;

	for (int p = 0; p < 3; p++) {
		char *valid = valid_text(profile[p]);
		size_t length = strlen(valid);
		struct buffer b = { malloc(2 * length), length, 2 * length };

		assert_non_null(b.text);
		for (unsigned long i = 0; i < count / 3; i++) {
			b.length = length;
			memcpy(b.text, valid, length);
			for (uint64_t n = 1 + draw(4); n; n--)
				mutate(&b);
			check(&b, &accepted);
		}
		free(b.text);
		free(valid);
	}
	/* Neither all nor none: the mutations reach behind the parser. */
	assert_true(accepted > count / 100 && accepted < count);
}

TEST(every_prefix_of_a_file_is_refused)
{
	char *valid = valid_text("short");
	size_t length = strlen(valid);
	unsigned long accepted = 0;

	assert_true(length > 1000);
	/* Those that end with three blanks or more say what those with two do. */
	for (size_t i = 0; i < length; i++)
		if (i < 3 || strspn(valid + i - 3, " \n") < 3)
			check(&(struct buffer){ valid, i, length }, &accepted);
	assert_int_equal(accepted, 0);
	check(&(struct buffer){ valid, length, length }, &accepted);
	assert_int_equal(accepted, 1);
	free(valid);
}

/* Each term, and each number of the state, by what no machine has: refused where it stands. */
TEST(values_out_of_bounds_are_refused_at_their_place)
{
	static const char *const wrong[] = { "-1.0", "1e300", "\"1\"", "null", "[]" };
	char *valid = valid_text("tuned"), *text = malloc(strlen(valid) + 32);
	unsigned int refused = 0;

	assert_non_null(text);
	for (const char *at = valid; (at = strstr(at, "\": ")) != NULL; at += 3) {
		const char *end = at + 3 + strspn(at + 3, "0123456789.e+-");
		const char *key = at;

		while (key[-1] != '"')
			key--;
		if (end == at + 3 || (strncmp(key, "value", 5) && strncmp(key, "flag\"", 5) &&
				      strncmp(key, "share", 5) && strncmp(key, "other\"", 6)))
			continue;
		for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++) {
			unsigned int line = 1, told = 0;
			struct oci_model model;
			struct oci_model_error error;

			for (const char *c = valid; c < at; c++)
				line += *c == '\n';
			sprintf(text, "%.*s%s%s", (int)(at + 3 - valid), valid, wrong[w], end);
			if (oci_model_parse("t.json", text, strlen(text), OCI_MODEL_ANY_MACHINE,
					    NULL, &model, &error) != -EINVAL)
				fail_msg("line %u: %s is taken", line, wrong[w]);
			assert_int_equal(sscanf(error.text, "t.json:%u:", &told), 1);
			assert_int_equal(told, line);
			assert_non_null(strstr(error.text, "expected"));
			refused++;
		}
	}
	/* All terms and the three numbers of the state. */
	assert_true(refused > 5 * 70);
	free(text);
	free(valid);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		count = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10) | 1;
	return oct_test_run(NULL, NULL);
}
