// SPDX-License-Identifier: BSD-3-Clause
#include "lab/experiment/experiment.h"
#include "lab/experiment/run.h"
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 6 };

static const size_t places[] = { 4, 65536 };

/* Of the test that runs. */
static struct {
	struct results results;
	struct figure *figure;
	struct comparison *comparison;
} s;

static bool always(const struct figure *figure, unsigned int x)
{
	return figure->x[x] > 0;
}

static int set_up(void **state)
{
	(void)state;
	results_begin(&s.results, 0, NULL, ROUNDS);
	s.figure = figure_new(&s.results, places, 2, "us", "%s", "bcast");
	s.figure->group = 1;
	s.comparison = results_compare(&s.results, 1, "stock", "onecopy");
	s.comparison->control = "control";
	s.comparison->floor = 0.95;
	s.comparison->groups[0] = (struct group){ .name = "all", .has = always, .least = 1.5 };
	s.comparison->group_count = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	results_end(&s.results);
	return 0;
}

#define EXPERIMENT(name) TEST_WITH(name, set_up, tear_down)

/* Each round is a little slower than the one before, for all alike. */
static void add(const char *series, unsigned int x, double value)
{
	for (unsigned int r = 0; r < ROUNDS; r++) {
		struct figure_cell *cell =
			figure_cell(s.figure, figure_series(s.figure, series), x);

		figure_add(s.figure, cell, r, value * (1 + 0.1 * r));
	}
}

static void finish(void)
{
	s.results.complete = ROUNDS;
	results_finish(&s.results);
}

EXPERIMENT(ratios_are_taken_within_a_round)
{
	add("stock", 0, 4);
	add("onecopy", 0, 2);
	add("control", 0, 4);
	add("stock", 1, 9);
	add("onecopy", 1, 18);
	add("control", 1, 9);
	finish();
	/* What drifts meets both sides: the intervals are points. */
	assert_float_equal(s.comparison->cells[0].ratio.low, 2, 1e-9);
	assert_float_equal(s.comparison->cells[0].ratio.high, 2, 1e-9);
	assert_float_equal(s.comparison->cells[1].control.median, 1, 1e-9);
	assert_int_equal(s.comparison->cells[0].verdict, VERDICT_WON);
	assert_int_equal(s.comparison->cells[1].verdict, VERDICT_LOST);
	assert_int_equal(s.comparison->lost, 1);
	assert_float_equal(s.comparison->groups[0].ratio.median, 1, 1e-9);
	assert_int_equal(s.comparison->groups[0].cells, 2);
}

EXPERIMENT(what_the_control_does_too_is_no_loss)
{
	add("stock", 0, 4);
	add("onecopy", 0, 5);
	add("control", 0, 6); /* slower still */
	finish();
	assert_true(s.comparison->cells[0].ratio.high < s.comparison->floor);
	assert_int_equal(s.comparison->cells[0].verdict, VERDICT_NONE);
}

EXPERIMENT(the_control_is_held_against_what_it_repeats)
{
	s.comparison->stock = "caller";
	add("stock", 0, 1);
	add("control", 0, 1);
	add("caller", 0, 4);
	add("onecopy", 0, 5);
	finish();
	assert_float_equal(s.comparison->cells[0].control.median, 1, 1e-9);
	assert_float_equal(s.comparison->groups[0].control.median, 1, 1e-9);
	assert_int_equal(s.comparison->cells[0].verdict, VERDICT_LOST);
}

EXPERIMENT(of_two_stocks_the_faster_one_of_a_cell_counts)
{
	s.comparison->other = "other";
	add("stock", 0, 4);
	add("other", 0, 3);
	add("onecopy", 0, 2);
	add("stock", 1, 4);
	add("other", 1, 5);
	add("onecopy", 1, 2);
	finish();
	assert_true(s.comparison->cells[0].other);
	assert_float_equal(s.comparison->cells[0].ratio.median, 1.5, 1e-9);
	assert_false(s.comparison->cells[1].other);
	assert_float_equal(s.comparison->cells[1].ratio.median, 2, 1e-9);
}

EXPERIMENT(the_gate_asks_for_means_and_no_loss)
{
	FILE *nowhere = fopen("/dev/null", "w");

	add("stock", 0, 4);
	add("onecopy", 0, 2);
	finish();
	assert_true(comparison_passes(s.comparison, nowhere));
	s.comparison->groups[0].least = 2.5;
	assert_false(comparison_passes(s.comparison, nowhere));

	fclose(nowhere);
}

EXPERIMENT(of_few_rounds_nothing_is_judged)
{
	add("stock", 0, 4);
	add("onecopy", 0, 40);
	s.results.complete = ROUNDS - 1;
	results_finish(&s.results);
	assert_int_equal(s.comparison->cells[0].verdict, VERDICT_NONE);
}

/* Six rounds: the interval is the least to the most. */
EXPERIMENT(one_round_at_the_floor_settles_that_a_cell_is_not_lost)
{
	struct figure_cell *cell;

	assert_true(comparison_may_lose(&s.results, s.figure, 1, "stock", "onecopy", 0.95));
	add("stock", 1, 9);
	add("onecopy", 1, 10);
	assert_true(comparison_may_lose(&s.results, s.figure, 1, "stock", "onecopy", 0.95));
	cell = figure_cell_of(s.figure, "stock", 1);
	cell->samples[3] = NAN; /* a round without it tells nothing */
	assert_true(comparison_may_lose(&s.results, s.figure, 1, "stock", "onecopy", 0.95));
	cell->samples[4] *= 1.06;
	assert_false(comparison_may_lose(&s.results, s.figure, 1, "stock", "onecopy", 0.95));
}

/* Whichever side's, the control's among them. */
EXPERIMENT(wrong_bytes_compare_with_nothing)
{
	const struct compared *cells;

	add("stock", 0, 4);
	add("onecopy", 0, 40);
	add("stock", 1, 9);
	add("onecopy", 1, 9);
	figure_cell_of(s.figure, "stock", 0)->wrong = true;
	assert_false(comparison_may_lose(&s.results, s.figure, 0, "stock", "onecopy", 0.95));
	finish();
	cells = s.comparison->cells;
	assert_int_equal(cells[0].verdict, VERDICT_WRONG);
	assert_true(isnan(cells[0].ratio.median));
	assert_int_equal(cells[1].verdict, VERDICT_NONE);
	assert_int_equal(s.comparison->lost, 0);
	assert_int_equal(s.comparison->groups[0].cells, 1);
	assert_float_equal(s.comparison->groups[0].ratio.median, 1, 1e-9);
	figure_cell_of(s.figure, "onecopy", 1)->wrong = true;
	finish();
	assert_int_equal(s.comparison->cells[1].verdict, VERDICT_WRONG);
}

EXPERIMENT(a_control_with_wrong_bytes_lets_nothing_be_lost)
{
	add("stock", 0, 4);
	add("onecopy", 0, 40);
	add("control", 0, 4);
	figure_cell_of(s.figure, "control", 0)->wrong = true;
	finish();
	assert_int_equal(s.comparison->cells[0].verdict, VERDICT_WRONG);
}

EXPERIMENT(means_are_of_rounds_that_have_all_cells)
{
	add("stock", 0, 4);
	add("onecopy", 0, 2);
	add("stock", 1, 4);
	add("onecopy", 1, 8);
	for (unsigned int r = 2; r < ROUNDS; r++)
		figure_cell_of(s.figure, "stock", 0)->samples[r] = NAN;
	finish();
	assert_float_equal(s.comparison->groups[0].ratio.median, 1, 1e-9);
	assert_int_equal(s.comparison->groups[0].cells, 2);
	assert_float_equal(s.comparison->cells[1].ratio.coverage, 1 - 2.0 / 64, 1e-9);
}

static int wait_20_ms(struct results *results, struct step *step, unsigned int round)
{
	(void)results;
	(void)step;
	(void)round;
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	return 0;
}

static bool after_three(struct results *results)
{
	return results->complete == 3;
}

TEST(rounds_end_before_their_time_is_up)
{
	struct results results;

	results_begin(&results, 0, NULL, ROUNDS);
	results_step(&results, wait_20_ms, NULL, 0, "waits");
	results.seconds = 0.05; /* not for a third one */
	assert_int_equal(results_run(&results), 0);
	assert_in_range(results.complete, 1, 2);
	results_end(&results);
}

TEST(as_many_rounds_as_there_are_to_be_take_longer)
{
	struct results results;

	results_begin(&results, 0, NULL, ROUNDS);
	results_step(&results, wait_20_ms, NULL, 0, "waits");
	results.seconds = 0.01;
	results.least = 3;
	assert_int_equal(results_run(&results), 0);
	assert_int_equal(results.complete, 3);
	results_end(&results);
}

TEST(rounds_end_once_they_are_enough)
{
	struct results results;

	results_begin(&results, 0, NULL, ROUNDS);
	results_step(&results, wait_20_ms, NULL, 0, "waits");
	results.enough = after_three;
	assert_int_equal(results_run(&results), 0);
	assert_int_equal(results.complete, 3);
	results_end(&results);
}

EXPERIMENT(places_have_names_where_they_are_no_numbers)
{
	static const char *const names[] = { "asp", "cg" };
	char text[32];

	s.figure->x_names = names;
	figure_x_text(s.figure, 1, text, sizeof(text));
	assert_string_equal(text, "cg");
}

static int run_shell(const char *script, char *said, char *why, size_t n)
{
	static const struct variant variant = { .name = "stock" };
	struct run run = { .variant = &variant,
			   .program = "/bin/sh",
			   .arguments = script,
			   .timeout_s = 60 };
	int err = run_program(&s.results, &run, 2, why, n);

	strcpy(said, run.said);
	return err;
}

EXPERIMENT(lines_of_a_program_are_samples)
{
	char said[512], why[512];
	struct figure_cell *cell;

	assert_int_equal(run_shell("-c 'echo \"# it says\"; echo \"= bcast 65536 2.5 2 3\"'", said,
				   why, sizeof(why)),
			 0);
	cell = figure_cell_of(s.figure, "stock", 1);
	assert_string_equal(said, "it says");
	assert_non_null(cell);
	assert_float_equal(cell->samples[2], 2.5, 0);
	assert_true(isnan(cell->samples[1]));
	assert_float_equal(cell->spread[2][1], 3, 0);
}

EXPERIMENT(a_run_that_fails_is_explained)
{
	char said[512], why[512];

	assert_int_equal(run_shell("-c 'echo no memory; exit 3'", said, why, sizeof(why)), -ECHILD);
	assert_string_equal(why, "it ended with status 3: no memory");
	assert_int_equal(run_shell("-c 'echo = gather 4 1'", said, why, sizeof(why)), -EBADMSG);
	assert_non_null(strstr(why, "gather"));
	assert_int_equal(run_shell("-c 'unfinished", said, why, sizeof(why)), -EINVAL);
}
