// SPDX-License-Identifier: BSD-3-Clause
/*
 * Sizes are such that stock spends a third and more of a program's time in MPI on 2 ranks, also
 * where their cores share a cache (EPYC of docs/results, 2026-11-24: 34 to 60 %), and that a run
 * takes half a second with its start: a rank has as little to compute as one of many. intsort is
 * not here, as at no size more than a quarter of its time is communication.
 */
#include "demo.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const char demo_stock[] = "stock";

static const struct demo_program programs[] = {
	{ .name = "asp",
	  .checks =
		  "all-pairs shortest paths, C: a row on each rank in each graph equals Dijkstra's; "
		  "all runs' matrices have one checksum",
	  .arguments = "--size 16384 --rows 24 --graphs 50",
	  .quick = "--size 4096 --rows 24" },
	{ .name = "cg",
	  .checks = "conjugate gradients, C: every point of every solve equals the known solution",
	  .arguments = "--size 16 --solves 800",
	  .quick = "--size 16 --solves 5" },
	{ .name = "heat",
	  .checks = "heat by Fourier transforms, Fortran: every point and every step's sum equal "
		    "the known solution",
	  .arguments = "--size 32 --steps 4000",
	  .quick = "--size 32 --steps 5" },
	{ .name = "halo",
	  .checks = "a substance in the wind, Fortran: every point equals the known solution; "
		    "messages alone",
	  .arguments = "--size 256 --planes 2 --steps 3000",
	  .quick = "--size 64 --steps 5" },
	{ .name = "train",
	  .checks =
		  "texts sorted by topic, C: every sum of every step is right on every rank, and all "
		  "runs learn the same weights; sums are under way while ranks compute unlike long",
	  .arguments = "--steps 4000",
	  .quick = "--steps 50" },
	{ .name = "gradients",
	  .checks = "averaged gradients, Python: every parameter, loss and statistic on every rank "
		    "is exact",
	  .script = true,
	  .arguments = "--steps 60",
	  .quick = "--floats 65536 --steps 5" },
	{ .name = "shuffle",
	  .checks = "shuffled records, Python: every record is whole, there once, and where it "
		    "belongs",
	  .script = true,
	  .arguments = "--epochs 300",
	  .quick = "--records 100 --epochs 5" },
};

static const struct variant variants[] = {
	{ .name = demo_stock },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};

const struct demo_set demo_usual = {
	.programs = programs,
	.program_count = COUNT(programs),
	.variants = variants,
	.variant_count = COUNT(variants),
};

/*
 * Section VI-E and Table I: 16384 vertices on Zoot's 16 cores, 32768 on IG's 48. What a rank does
 * between two calls is the paper's, as it has as many rows as a core had there.
 */
#define PAPER_CHECKS \
	"8 whole rows of each rank equal Dijkstra's; all runs' matrices have one checksum"

static const struct demo_program papers[] = {
	{ .name = "64 KiB",
	  .file = "asp",
	  .checks = PAPER_CHECKS,
	  .arguments = "--size 16384 --calls 64",
	  .quick = "--size 16384 --calls 8",
	  .rank_bytes = 65536,
	  .rank_rows = 16384 / 16 },
	{ .name = "128 KiB",
	  .file = "asp",
	  .checks = PAPER_CHECKS,
	  .arguments = "--size 32768 --calls 64",
	  .quick = "--size 32768 --calls 8",
	  .rank_bytes = 131072,
	  .rank_rows = 32768 / 48 },
};

static const struct variant paper_variants[] = {
	{ .name = "two copies", .two_copies = true },
	{ .name = demo_stock },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};

const struct demo_set demo_paper = {
	.programs = papers,
	.program_count = COUNT(papers),
	.variants = paper_variants,
	.variant_count = COUNT(paper_variants),
	.openmpi_only = true,
	.about =
		"ASP of Ma et al., Kernel Assisted Collective Intra-node MPI Communication (ICPP "
		"2011),\nTable I: rows of 64 KiB (Zoot) and 128 KiB (IG), as many on a rank as on a "
		"core there;\n64 rows are broadcast, not all. stock: one copy, by CMA.",
};
