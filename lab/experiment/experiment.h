/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is measured with programs, and how it is shown.
 *
 * An experiment has figures: values over places (bytes, ranks, calls, copiers), one series for each
 * variant or rival that is compared. Steps bring the values: a round runs all of them, those of one
 * turn in an order that changes from round to round, so that what drifts meets all series alike.
 * Each round adds one sample to a cell. A comparison holds one series against another within each
 * round, beside what the other does against itself.
 *
 * Tables, JSON, plots and the page know nothing else. Memory that is lacking ends the program.
 */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/experiment/progress.h"
#include "lab/harness/host.h"
#include "lab/harness/options.h"
#include "lab/harness/stats.h"

enum { NOTES_MOST = 8, GROUPS_MOST = 3 };

/* One series at one place. */
struct figure_cell {
	char label[64];		     /* the series with its parameter here: "knomial:4" */
	double *samples;	     /* [rounds]; NaN: that round has none. NULL: none has */
	double (*spread)[2];	     /* what a sample's run says of its calls: 10 % and 90 % */
	unsigned int count;	     /* of the samples that are there */
	struct stats_estimate value; /* of them, once results_finish() ran */
	double plans, closed;	     /* predicted, in the figure's unit; NaN: not */
	bool wanted;		     /* this series has a value here */
	bool wrong;  /* a run delivered wrong bytes: its time compares with nothing */
	bool chosen; /* this is what a job would take */
};

struct figure {
	char name[64];		   /* of its files, and in the lines that programs print */
	const char *title, *about; /* what is compared, how it was measured; "" at first */
	const char *row;	   /* in the table of a comparison; "" at first */
	const char *x_name, *unit;
	bool x_is_bytes, log_y;
	bool more_is_better;
	bool compared; /* the series are rivals: the best comes first, and 1 is its value */
	bool measured, predicted; /* which plots and columns it has */
	unsigned int group;	  /* of the comparisons that it is in; 0: none */
	bool folded;		  /* they are all that is shown of it */
	const size_t *x;
	const char *const *x_names; /* of the places, which are 1, 2, ... then; NULL: numbers */
	const bool *hidden;	    /* [x_count]: not worth a row; NULL: none is */
	unsigned int x_count, series_count, rounds;
	char (*series)[64];
	struct figure_cell *cells; /* [series_count * x_count] */
	char *notes[NOTES_MOST];
	unsigned int note_count;
};

/* WRONG: one of the two delivered wrong bytes, so nothing is compared. */
enum verdict { VERDICT_NONE, VERDICT_WON, VERDICT_LOST, VERDICT_WRONG, VERDICTS };

/* A cell of a comparison: one for each place of its figures. Ratios are above 1 where the subject
 * is better. */
struct compared {
	const struct figure *figure;
	unsigned int x;
	const struct figure_cell *stock, *subject, *limit; /* limit: NULL, there is none */
	bool other; /* the other stock was the better one here, and is `stock` */
	struct stats_estimate ratio, control;
	enum verdict verdict;
};

/* Cells whose geometric mean is taken in each round. */
struct group {
	const char *name;
	bool (*has)(const struct figure *figure, unsigned int x);
	double least; /* what the gate asks of it; 0: nothing */
	unsigned int cells;
	struct stats_estimate ratio, control;
};

struct comparison {
	const char *title; /* "2 ranks, one a core" */
	const char *about; /* lines for the head of its table; "" at first */
	const char *stem;  /* of its plots, which comparisons of one group share; "": no plots */
	unsigned int group;
	/* Series. NULL: there is none. Of stock and other the better one of each cell counts. */
	const char *subject, *stock, *other, *control, *limit;
	const char *controlled; /* what `control` runs once more; `stock` at first */
	double floor;		/* a cell is lost below it; 0: none is */
	struct group groups[GROUPS_MOST];
	unsigned int group_count;
	const char *note; /* behind the table; "" at first */
	/* Once results_finish() ran: those of one figure after the other. */
	struct compared *cells;
	unsigned int cell_count, lost;
};

struct results;

/* A part of a round. */
struct step {
	char what[96];	   /* for who watches */
	unsigned int turn; /* steps of one turn stand side by side and change their order */
	/* 0; else the experiment ends before the round is complete. */
	int (*run)(struct results *results, struct step *step, unsigned int round);
	void *context;
	unsigned int at;
	bool left_out;
};

struct results {
	char command[1024];
	struct host host;
	const char *about; /* of all tables; "" at first */
	const char *model; /* which predicts; "": none */
	unsigned int rounds, complete;
	/* The rounds end before they take longer, 0: never, but not before the least number of
	 * them; or once they are enough, NULL: never. The next one is taken to be as long as the
	 * last. */
	double seconds;
	unsigned int least;
	bool (*enough)(struct results *results);
	bool lacks;   /* a run failed, and a note of its figure says why */
	bool settled; /* of cells with too few rounds it is known that they are not lost */
	struct figure **figures;
	struct comparison **comparisons;
	struct step **steps;
	const char **summary; /* over all figures */
	/* Tables of the experiment's own instead of the comparisons'; NULL: it has none. */
	void (*print)(const struct results *results, FILE *out);
	char **texts;
	double last_s; /* of the last round */
	unsigned int figure_count, comparison_count, step_count, summary_count, text_count, turn;
	json_t *settings; /* what the experiment wants in the JSON; owned */
	struct progress progress;
};

/* Ends the program where memory is NULL. */
void *must(void *memory);
/* Puts an item behind the `count` ones of a list. */
#define LIST_ADD(list, count, item)                                              \
	do {                                                                     \
		(list) = must(realloc((list), ((count) + 1) * sizeof(*(list)))); \
		(list)[(count)++] = (item);                                      \
	} while (0)

/* ---- results.c --------------------------------------------------------------------------------
 */

void results_begin(struct results *results, int argc, char **argv, unsigned int rounds);
void results_end(struct results *results);
/* The steps from here on are another turn. */
void results_turn(struct results *results);
struct step *results_step(struct results *results,
			  int (*run)(struct results *, struct step *, unsigned int), void *context,
			  unsigned int at, const char *what, ...)
	__attribute__((format(printf, 5, 6)));
/* All rounds, or as many as there is time for. Returns what broke them off, else 0. */
int results_run(struct results *results);
/* Statistics of all cells and comparisons. */
void results_finish(struct results *results);
/* A text that lives as long as the results do. */
const char *results_text(struct results *results, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A sentence over all figures. */
#define results_say(results, ...) \
	LIST_ADD((results)->summary, (results)->summary_count, results_text((results), __VA_ARGS__))
struct comparison *results_compare(struct results *results, unsigned int group, const char *stock,
				   const char *subject);

/* "PARENT/DATE", for who names no folder. */
void results_folder(const struct results *results, const char *parent, char *out, size_t n);
/* Whether results can be put there: a measurement is not to be lost to it. 0, or 1 and says why. */
int results_check_places(const char *json, const char *out, const char *option);
/* The folder: index.html, plots, tables, JSON. 0; or says why and 1, or 2: only plots are lacking.
 */
int results_write_folder(const struct results *results, const char *out, bool plots);

/* A file in it, FOLDER/STEM.END, and its path, which has room for PATH_MAX; or says why not:
 * NULL, 1.
 */
FILE *results_open(const char *folder, const char *stem, const char *end, char *path);
int results_close(FILE *file, const char *path);

/* ---- figure.c ---------------------------------------------------------------------------------
 */

/* `x` must live as long. The results free it. */
struct figure *figure_new(struct results *results, const size_t *x, unsigned int x_count,
			  const char *unit, const char *name, ...)
	__attribute__((format(printf, 5, 6)));
struct figure *figure_find(const struct results *results, const char *name);
/* The series of that name, made if there is none. */
unsigned int figure_series(struct figure *figure, const char *name);
struct figure_cell *figure_cell(const struct figure *figure, unsigned int series, unsigned int x);
/* NULL: there is no such series. */
struct figure_cell *figure_cell_of(const struct figure *figure, const char *series, unsigned int x);
void figure_add(struct figure *figure, struct figure_cell *cell, unsigned int round, double sample);
/* What the sample's own calls differ by. */
void figure_add_spread(struct figure *figure, struct figure_cell *cell, unsigned int round,
		       const double spread[2]);
void figure_note(struct figure *figure, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The samples that are there, ascending, into sorted[rounds]; returns their number. */
unsigned int figure_sorted(const struct figure *figure, const struct figure_cell *cell,
			   double *sorted);
/* Series with a value at x, rivals the best first; returns their number. order: [series_count] */
unsigned int figure_order(const struct figure *figure, unsigned int x, unsigned int *order);
void figure_finish(struct figure *figure);
void figure_free(struct figure *figure);
bool figure_shows(const struct figure *figure, unsigned int x);
/* "64K", or "3". */
void figure_x_text(const struct figure *figure, unsigned int x, char *text, size_t n);
/* Four digits, so that columns line up and nothing is claimed that was not measured. */
void figure_value_text(double value, char *text, size_t n);
void bytes_text(size_t bytes, char *text, size_t n);

/* ---- compare.c --------------------------------------------------------------------------------
 */

void comparison_finish(const struct results *results, struct comparison *comparison);
/* Whether the rounds that there are to be in all may still find subject's cell lost to stock: until
 * now too few of the ratios are at the floor or above it. */
bool comparison_may_lose(const struct results *results, const struct figure *figure, unsigned int x,
			 const char *stock, const char *subject, double floor);
/* The next figure of the group behind `figure`, or the first behind NULL; NULL: there is none. */
struct figure *comparison_figure(const struct results *results, const struct comparison *comparison,
				 const struct figure *figure);
/* Whether nothing is lost and all means are what is asked of them; says what is not. */
bool comparison_passes(const struct comparison *comparison, FILE *out);

/* ---- showing ----------------------------------------------------------------------------------
 */

/* show.c: as tables of text, and as JSON */
void results_print(const struct results *results, FILE *out);
/* "-": on standard output. 0, or 1 and says why. */
int results_write_json(const struct results *results, const char *path);

/* plot.c: 0, or 1 after saying why there are no plots. */
int results_plot(const struct results *results, const char *out);
/* Of a figure: what was measured, or predicted; or of those of a comparison: values, or ratios. */
struct picture {
	char stem[96]; /* of its files */
	const char *what;
	const struct figure *figure;
	const struct comparison *comparison;
	bool second;
};
/* All there are, one after the other, until one is not 0, which is returned. */
int results_pictures(const struct results *results,
		     int (*each)(const struct results *, const struct picture *, void *context),
		     void *context);
/* page.c */
int results_write_page(const struct results *results, const char *out, bool plotted);

#endif
