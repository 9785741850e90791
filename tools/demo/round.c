// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int build_command(const struct demo *demo, const struct demo_case *one, enum demo_side side,
			 struct child_args *args)
{
	if (side == DEMO_WITH) {
		if (demo_words(args, demo->opt.with))
			return -1;
		child_args_add(args, "--stats-json");
		child_args_add(args, demo->files.stats);
	}
	if (demo_mpi_launch(demo, one->mpi, args))
		return -1;
	return demo_program_command(demo, one->program, one->mpi, args);
}

/* One run, verified or complained about. */
static int run_once(const struct demo *demo, const struct demo_case *one, enum demo_side side,
		    struct demo_result *result)
{
	struct child_args args = { .n = 0 };
	int ret;

	if (one->program->kind == DEMO_HPCC && demo_hpcc_prepare(demo))
		return -1;
	unlink(demo->files.stats);
	ret = build_command(demo, one, side, &args);
	if (!ret) {
		ret = demo_run(demo, &args, &result->wall_s);
		if (!ret)
			ret = demo_program_read(demo, one->program, result);
		if (!ret && side == DEMO_WITH)
			ret = demo_stats_read(demo, result);
		if (ret)
			demo_tail(demo, &args);
	}
	child_args_destroy(&args);
	return ret;
}

int demo_case_run(const struct demo *demo, struct demo_case *one)
{
	static const char *const sides[] = { "without", "with   " };
	int rounds = demo->opt.rounds;

	printf("\n%s, %s: %s\n", one->program->name, demo_mpis[one->mpi].name, one->program->what);
	one->results = calloc((size_t)(DEMO_SIDES * rounds), sizeof(*one->results));
	if (!one->results) {
		fprintf(stderr, "onecopy-demo: no memory\n");
		return -1;
	}
	for (int i = 0; i < DEMO_SIDES * rounds; i++) {
		enum demo_side side = i % 2 ? DEMO_WITH : DEMO_WITHOUT;
		struct demo_result *result = &one->results[side * rounds + i / 2];

		printf("  round %d of %d, %s onecopy ... ", i / 2 + 1, rounds, sides[side]);
		fflush(stdout);
		if (run_once(demo, one, side, result))
			return -1;
		if (strcmp(result->checksum, one->results[0].checksum) != 0) {
			fprintf(stderr,
				"\nonecopy-demo: %s: not verified: its result has checksum %s, the "
				"first run's has %s\n",
				one->program->name, result->checksum, one->results[0].checksum);
			return -1;
		}
		printf("%6.2f s, verified\n", result->wall_s);
	}
	return 0;
}
