/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `onecopy bench` finds out, and how it is shown.
 *
 * Every experiment gives figures: values over bytes or copiers, one series a thing that is
 * compared. Each round of a run adds one sample to every cell, so that what drifts meets all series
 * alike. Tables, JSON, plots and the page know figures only.
 */
#ifndef ONECOPY_BENCH_H
#define ONECOPY_BENCH_H

#include "lab/tune/tune.h"
#include "measure.h"
#include "predict.h"
#include "progress.h"

#include <stdbool.h>
#include <stdio.h>

enum { ROUNDS_MOST = 101, FIGURES_MOST = 64, NOTES_MOST = 8 };

enum bench_what {
	BENCH_ALGORITHMS = 1,
	BENCH_MECHANISMS = 2,
	BENCH_CONTENTION = 4,
	BENCH_MODEL = 8,
	BENCH_ALL = 15, /* without a word; what follows is for those who name it */
	BENCH_P2P = 16,
	BENCH_START = 32
};

struct bench_options {
	unsigned int what; /* of enum bench_what */
	enum oc_collective collectives[OC_COLLECTIVES];
	unsigned int collective_count;
	struct size_list sizes;
	uint32_t ranks;
	unsigned int rounds;
	bool quick, every_parameter, touch, mapped;
	double token_ns[2];  /* of the samples of p2p that count; high 0: all do */
	const char *profile; /* NULL: what jobs go by here */
	const char *json, *out;
};

/* One series at one place of the axis. */
struct figure_cell {
	char label[64];	 /* the series with its parameter here: "knomial:4" */
	double *samples; /* [rounds]; of them `count` are there */
	unsigned int count;
	double median, low, high; /* low, high: 10 % and 90 % quantiles; once figure_finish() ran */
	double plans, closed;	  /* predicted, in the figure's unit; NaN: not */
	bool wanted;		  /* this series has a value here */
	bool chosen;		  /* this is what a job would take */
};

struct figure {
	char name[64];	 /* of its files */
	char title[128]; /* what is compared */
	char about[512]; /* how it was measured */
	const char *x_name, *unit;
	bool x_is_bytes, log_y;
	bool more_is_better;
	bool compared; /* the series are rivals: the best comes first, and 1 is its value */
	bool measured, predicted; /* which plots and columns it has */
	const size_t *x;
	unsigned int x_count, series_count, rounds;
	char (*series)[64];
	struct figure_cell *cells; /* [series_count * x_count] */
	char *notes[NOTES_MOST];
	unsigned int note_count;
};

struct bench {
	struct bench_options options;
	char command[1024];
	char date[32]; /* UTC */
	struct oci_machine machine;
	char model[MODEL_TEXT]; /* which predicts */
	uint32_t cpus;		/* that may be used */
	struct figure *figures[FIGURES_MOST];
	unsigned int figure_count;
	char *summary[5]; /* over all figures; NULL where there is nothing to say */
	struct progress progress;
	unsigned int step, steps;
};

/* ---- figures; memory that is lacking ends the command -----------------------------------------
 */

/* `x` must live as long. Added to the bench, which frees it. */
struct figure *figure_new(struct bench *bench, const size_t *x, unsigned int x_count);
void figure_free(struct figure *figure);
/* The series of that name, made if there is none. */
unsigned int figure_series(struct figure *figure, const char *name);
struct figure_cell *figure_cell(const struct figure *figure, unsigned int series, unsigned int x);
void figure_add(struct figure *figure, struct figure_cell *cell, double sample);
void figure_note(struct figure *figure, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Statistics of all cells. */
void figure_finish(struct figure *figure);
/* Series with a value at x, rivals the best first; returns their number. order: [series_count] */
unsigned int figure_order(const struct figure *figure, unsigned int x, unsigned int *order);
/* "64K", or "3". */
void figure_x_text(const struct figure *figure, unsigned int x, char *text, size_t n);
/* Four digits, so that columns line up and nothing is claimed that was not measured. */
void figure_value_text(double value, char *text, size_t n);

/* Sets bench->summary[i]. */
void bench_say(struct bench *bench, unsigned int i, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- experiments: steps first, so that progress knows the whole; 0 or an exit status ----------
 */

void bench_step(struct bench *bench, const char *what);

/* bench_algorithms.c: algorithms, model */
void bench_algorithms_plan(struct bench *bench);
int bench_algorithms_round(struct bench *bench, unsigned int round);
void bench_algorithms_sum_up(struct bench *bench);

/* bench_copies.c: mechanisms, contention */
void bench_copies_plan(struct bench *bench);
int bench_copies_round(struct bench *bench, unsigned int round);
void bench_copies_end(struct bench *bench);

/* bench_p2p.c: p2p */
void bench_p2p_plan(struct bench *bench);
int bench_p2p_round(struct bench *bench, unsigned int round);
/* What is computed from the samples: before the figures are finished, and behind. */
void bench_p2p_end(struct bench *bench);
void bench_p2p_sum_up(struct bench *bench);

/* bench_start.c: start */
void bench_start_plan(struct bench *bench);
int bench_start_round(struct bench *bench, unsigned int round);
/* Before the figures are finished, and behind. */
void bench_start_end(void);
void bench_start_sum_up(struct bench *bench);

/* ---- showing ----------------------------------------------------------------------------------
 */

void bench_print(const struct bench *bench, FILE *out);
/* 0, or says why not and returns 1. */
int bench_write_json(const struct bench *bench, const char *path);
/* The medians as Markdown, series by place: for a report. */
int bench_write_markdown(const struct bench *bench, const char *path);
int bench_plot(const struct bench *bench);
/* Not of a figure without values, nor of Barrier, which has no bytes to be drawn over. */
bool bench_plot_has(const struct figure *figure);
int bench_write_page(const struct bench *bench, bool plotted);
/* The stem of a figure's plot of what was measured, or of the model against it. */
void bench_plot_stem(const struct figure *figure, bool predicted, char *stem, size_t n);

#endif
