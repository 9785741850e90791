/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_bench_compare's data: what was asked, the median of every cell of every run, and what follows
 * from them. All times are in microseconds; a ratio is stock/onecopy, above 1 when onecopy is
 * faster.
 */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "buffers.h"
#include "collective.h"
#include "lab/harness/child.h"
#include "lab/harness/host.h"
#include "lab/harness/stats.h"
#include "text.h"

enum config {
	CONFIG_STOCK,
	CONFIG_ONECOPY,
	CONFIG_CONTROL, /* stock a second time: stock/control shows what noise alone does */
	CONFIG_HEAP,	/* onecopy with shared heaps, if asked for */
	CONFIG_OTHER,	/* the other MPI's stock, if asked for: each cell against the faster */
	CONFIG_LIMIT,	/* memcpy of the bytes that have to move, if asked for: limit.h */
	CONFIG_COUNT,
};

enum {
	COMPARE_MAX_RANKS = 8,
	COMPARE_MAX_CELLS = OC_COLLECTIVES * TEXT_MAX_SIZES,
	COMPARE_LARGE_BYTES = 64 << 10,
	COMPARE_PATH_CHARS = 4096,
};

/* An MPI that can be compared: what differs between launchers, and what is asked of the result. */
struct compare_mpi {
	const char *name;   /* as --mpi has it */
	const char *mpirun; /* unless --mpirun says otherwise */
	const char *program;
	const char *bound, *unbound; /* options: a core for each rank; ranks share cores */
	int ranks_n;		     /* of the ranks 2 and 4, unless --ranks names others */
	double geomean, geomean_large, barrier;
};

struct compare_options {
	const struct compare_mpi *mpi;
	int ranks[COMPARE_MAX_RANKS];
	int ranks_n;
	long runs;
	long timeout_s;
	struct collective_list collectives;
	struct size_list sizes;
	enum buffer_mode mode;
	long iterations;   /* 0: as the benchmark chooses */
	const char *token; /* --token-ns, passed on; NULL: all calls count */
	bool check;
	const char *with;
	bool with_given;
	bool shared_heap; /* CONFIG_HEAP takes its turns, too */
	bool better;	  /* CONFIG_OTHER, too */
	bool limit;	  /* and CONFIG_LIMIT */
	const struct compare_mpi *other;
	const char *mpirun;
	const char *program; /* NULL: beside this one */
	const char *json;    /* NULL: in @out */
	const char *out;     /* NULL: bench-out/<date> */
	bool quick;
	bool plots;
	bool gate;
	/* What the gate asks of ranks that each have a core, and of ranks that share cores. */
	double floor, floor_oversubscribed;
	double geomean, geomean_oversubscribed;
	double geomean_large;
	double barrier;
	double geomean_heap, geomean_heap_large, geomean_heap_oversubscribed;
};

/* Of a cell's calls in one run; what is compared are medians, the others show their spread. */
enum quantile {
	QUANTILE_50,
	QUANTILE_10,
	QUANTILE_90,
	QUANTILE_COUNT,
};

struct compare_cell {
	enum oc_collective collective;
	size_t bytes;
};

struct compare {
	struct compare_options options;
	struct host host;
	char mpi[2][128]; /* their own names; the second of CONFIG_OTHER */
	char out[COMPARE_PATH_CHARS];
	char stats[COMPARE_PATH_CHARS]; /* where onecopy leaves its counters in a run */
	struct compare_cell cells[COMPARE_MAX_CELLS];
	int cells_n;
	long rounds; /* complete ones; the first @rounds values of each cell are there */
	double *us;  /* see compare_quantile */
	/* Summed over the onecopy runs and their ranks, by onecopy's own counters. */
	struct compare_service {
		long long served;
		long long handed_back;
	} service[COMPARE_MAX_RANKS];
	/* The least and the most that a token took from rank to rank; 0 if ranks share cores. */
	struct range token_ns[COMPARE_MAX_RANKS];
	bool unverified; /* some run left no counters */
	char *commands[COMPARE_MAX_RANKS][CONFIG_COUNT];
};

struct cell_summary {
	double stock_us;
	double onecopy_us;
	double limit_us; /* 0: not asked for, or nothing has to move */
	struct stats_estimate ratio;
	struct stats_estimate control;
	bool lost;
	enum config stock; /* whose stock the ratio is of: the faster one's, or the only one's */
};

/* The geometric mean over some cells, taken in each round, with its interval over the rounds. */
struct group_summary {
	int cells;
	struct stats_estimate ratio;
	struct stats_estimate control;
};

/* Of CONFIG_ONECOPY or CONFIG_HEAP on so many ranks. */
struct ranks_summary {
	enum config subject;
	int ranks_index;
	int ranks;
	bool oversubscribed;
	double floor;
	int lost;
	struct cell_summary cells[COMPARE_MAX_CELLS];
	struct group_summary all; /* without the barrier */
	struct group_summary large;
	struct group_summary barrier;
};

const char *config_name(enum config config);

/* Returns -1 to go on, or the status to exit with. */
int compare_options_parse(int argc, char **argv, struct compare_options *options);

/* The values of one cell, one a round: options.runs of them. */
double *compare_quantile(const struct compare *compare, enum quantile quantile, int ranks_index,
			 enum config config, int cell);
/* The medians. */
double *compare_us(const struct compare *compare, int ranks_index, enum config config, int cell);

/* Whether these ranks have to share cores. */
bool compare_oversubscribed(const struct compare *compare, int ranks_index);

/* compare_run.c: run everything into @compare->us. Returns 0 or -errno, the reason said. */
int compare_run(struct compare *compare);

/* Whether this configuration takes turns. */
bool compare_has(const struct compare *compare, enum config config);

/* Whose MPI a configuration runs: options.mpi, or for CONFIG_OTHER the other one. */
const struct compare_mpi *compare_mpi(const struct compare *compare, enum config config);

/* compare_summary.c: compare_summaries() of them, one for each of the rank counts, and with shared
 * heaps as many more behind them. Needs at least one round. */
int compare_summaries(const struct compare *compare);
int compare_summarise(const struct compare *compare, struct ranks_summary *summaries);
bool compare_gate_passes(const struct compare *compare, const struct ranks_summary *summaries,
			 FILE *out);

/* compare_report.c */
void compare_print(const struct compare *compare, const struct ranks_summary *summaries, FILE *out);

/* compare_json.c. Returns 0 or -errno, the reason said. */
int compare_write_json(const struct compare *compare, const struct ranks_summary *summaries,
		       const char *path);

/* compare_plot.c. Returns 0, or -errno after saying why there are no plots. */
int compare_plot(const struct compare *compare, const struct ranks_summary *summaries);

#endif
