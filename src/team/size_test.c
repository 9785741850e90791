/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a team of many ranks takes: shared memory, own memory, page tables, mappings, descriptors
 * and time. With numbers of ranks as arguments the program prints the table of
 * docs/results/ranks.csv.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/clock.h"
#include "os/os.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/test.h"

enum quantity { SHARED, USED, HEAP, PEAK, TABLES, MAPPINGS, DESCRIPTORS, CPU_US, US, QUANTITIES };

/* ---- what the library takes of malloc: the linker's --wrap ---------------------------------- */

static long in_use, most_in_use; /* bytes; ranks have one thread */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static void *counted(void *memory)
{
	in_use += (long)malloc_usable_size(memory);
	if (in_use > most_in_use)
		most_in_use = in_use;
	return memory;
}

void *__wrap_malloc(size_t bytes)
{
	return counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return counted(__real_calloc(count, bytes));
}

/* Both may be there for a moment. */
void *__wrap_realloc(void *memory, size_t bytes)
{
	long before = (long)malloc_usable_size(memory);
	void *grown = counted(__real_realloc(memory, bytes));

	in_use -= grown ? before : 0;
	return grown;
}

void __wrap_free(void *memory)
{
	in_use -= (long)malloc_usable_size(memory);
	__real_free(memory);
}

/* ---- what a rank takes ----------------------------------------------------------------------- */

/* Of a process, or what it has more than before. */
struct taken {
	long of[QUANTITIES];
};

static long cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return 1000000 * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_usec;
}

static struct taken now(void)
{
	struct taken taken = { { 0 } };
	struct oci_segment_id segment;
	struct stat file;

	if (oci_segment_base() && !oci_segment_self(&segment, 1) && !fstat(segment.fd, &file))
		taken.of[SHARED] = 512 * (long)file.st_blocks;
	taken.of[USED] = (long)oci_segment_live_bytes();
	taken.of[HEAP] = (long)mallinfo2().uordblks;
	taken.of[PEAK] = most_in_use;
	taken.of[TABLES] = oct_field("/proc/self/status", "VmPTE: %ld") << 10;
	taken.of[MAPPINGS] = oct_mappings();
	taken.of[DESCRIPTORS] = oct_descriptors();
	taken.of[CPU_US] = cpu_us();
	taken.of[US] = (long)(oci_clock_ns() / 1000);
	return taken;
}

struct measured {
	struct taken before; /* the ranks are forked */
	struct taken *of_rank;
};

static int measure(struct oc_team *team, void *arg)
{
	struct measured *measured = arg;
	struct oc_call barrier = { .collective = OC_BARRIER };
	struct taken *mine = &measured->of_rank[oc_team_rank(team)];

	if (oc_collective(team, &barrier))
		return 1;
	*mine = now();
	for (int q = 0; q < QUANTITIES; q++)
		mine->of[q] -= q == CPU_US ? 0 :
					     measured->before.of[q]; /* it began with the rank */
	oct_meet();
	return 0;
}

/* The most that a rank takes for the team. */
static int most(uint32_t ranks, struct taken *most)
{
	size_t bytes = ranks * sizeof(struct taken);
	struct measured measured = { .of_rank = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
						     MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	int failed;

	most_in_use = in_use;
	measured.before = now();
	failed = oct_fork_team(ranks, -1, measure, &measured);
	*most = measured.of_rank[0];
	for (uint32_t r = 1; r < ranks; r++)
		for (int q = 0; q < QUANTITIES; q++)
			if (measured.of_rank[r].of[q] > most->of[q])
				most->of[q] = measured.of_rank[r].of[q];
	munmap(measured.of_rank, bytes);
	return failed;
}

TEST(what_a_rank_takes_is_linear_in_the_ranks)
{
	struct taken few, many;

	assert_int_equal(most(33, &few), 0);
	assert_int_equal(most(64, &many), 0);
	assert_int_equal(few.of[DESCRIPTORS], many.of[DESCRIPTORS]);
	assert_in_range(many.of[DESCRIPTORS], 1, 2);
	assert_in_range(many.of[MAPPINGS] - few.of[MAPPINGS], 0, 2 * 31);
	/* Two slots for all teams, and a region, whose bytes lane.h tells. */
	assert_in_range(few.of[USED], 2 * OCI_SLOT_BYTES,
			2 * OCI_SLOT_BYTES + oci_region_bytes(33) + 128);
	assert_int_equal(few.of[SHARED], many.of[SHARED]);
	/* Of malloc, while the team was made, too: each further rank as much as each of the few. */
	assert_in_range(many.of[PEAK] - few.of[PEAK], 31, 31 * few.of[PEAK] / 33);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_in_range(many.of[HEAP] - few.of[HEAP], 0, 31 * 512);
	/* A page of them for each ten, and what the fronts of 16 peers take. */
	assert_in_range(many.of[TABLES] - few.of[TABLES], 0, 31 * 1024);
#endif
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { FURTHER = 16 };

/* Each page that is touched for the first time is a fault. */
TEST_ON_RANKS(a_further_team_takes_little_memory, 2)
{
	struct oc_team *further[FURTHER];
	size_t before = 0;
	int error = oct_barrier(team);

	for (int i = 0; i < FURTHER && !error; i++) {
		struct oc_bootstrap bootstrap = oct_again(team);

		before = i ? before : mallinfo2().uordblks;
		error = oc_team_create(&further[i], &bootstrap) || oct_made(further[i]) != 1 ||
			oct_barrier(further[i]);
	}
	before = mallinfo2().uordblks - before;
	for (int i = 0; i < FURTHER && !error; i++)
		error = oc_team_destroy(further[i]);
	printf("%zu bytes for each of %d teams\n", before / FURTHER, FURTHER);
	return error || before > (size_t)FURTHER * 8192;
}
#endif

/* Bytes of slots that such calls have made this rank add. */
static size_t slots_of_calls(struct oc_team *team, enum oc_collective collective, size_t bytes)
{
	static uint8_t send[3 * OCI_SMALL_SLOT_BYTES], recv[3 * OCI_SMALL_SLOT_BYTES];
	struct oc_call call = { .collective = collective,
				.send = send,
				.recv = recv,
				.bytes = bytes };
	size_t before = oci_slots_bytes();

	if (oc_team_force(team, oci_collective_name(collective), "cico"))
		return SIZE_MAX;
	for (int i = 0; i < 30; i++)
		if (oc_collective(team, &call))
			return SIZE_MAX;
	return oci_slots_bytes() - before;
}

TEST_ON_RANKS(blocks_that_fit_a_small_slot_take_no_other, 3)
{
	size_t most = OCI_LANES * OCI_SMALL_SLOT_BYTES;
	int error = oct_barrier(team);
	size_t bcast = slots_of_calls(team, OC_BCAST, OCI_SMALL_SLOT_BYTES);
	size_t scatter = slots_of_calls(team, OC_SCATTER, OCI_SMALL_SLOT_BYTES / 3);

	return error || bcast > most || bcast + scatter > most;
}

/* Is the page in our page table? */
static bool is_there(const void *address)
{
	uint64_t page = (uintptr_t)address / oci_os_page_bytes(), entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))),
			 sizeof(entry));
	close(fd);
	return entry >> 63;
}

TEST(small_pieces_are_touched_several_at_a_time)
{
	struct oci_segment_id id;
	uint8_t *base;
	int64_t small, large;

	assert_int_equal(oci_segment_self(&id, 1), 0);
	base = oci_segment_base();
	if (madvise(base, oci_os_page_bytes(), MADV_POPULATE_WRITE))
		oct_skip("madvise() has no MADV_POPULATE_WRITE (since Linux 5.14)");
	large = oci_segment_alloc(OCI_SLOT_BYTES);
	small = oci_segment_alloc(100);
	assert_in_range(small, large, INT64_MAX);
	assert_false(is_there(base + large));
	assert_true(is_there(base + small));
	assert_true(is_there(base + small + (8 << 10)));
	assert_false(is_there(base + small + (64 << 10)));
	oci_segment_free(small, 100);
	oci_segment_free(large, OCI_SLOT_BYTES);
}

static int print(int argc, char **argv)
{
	printf("ranks,shared_bytes_rank,shared_bytes_node,used_bytes_rank,heap_bytes_rank,"
	       "page_table_bytes_rank,page_table_bytes_node,mappings_rank,descriptors_rank,"
	       "cpu_ms_rank,setup_ms\n");
	for (int i = 1; i < argc; i++) {
		uint32_t ranks = (uint32_t)strtoul(argv[i], NULL, 10);
		struct taken taken;

		if (!ranks || most(ranks, &taken))
			return 1;
		printf("%u,%ld,%ld,%ld,%ld,%ld,%ld,%ld,%ld,%.1f,%.1f\n", ranks, taken.of[SHARED],
		       taken.of[SHARED] * ranks, taken.of[USED], taken.of[HEAP], taken.of[TABLES],
		       taken.of[TABLES] * ranks, taken.of[MAPPINGS], taken.of[DESCRIPTORS],
		       1e-3 * (double)taken.of[CPU_US], 1e-3 * (double)taken.of[US]);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	return argc > 1 ? print(argc, argv) : oct_test_run(NULL, NULL);
}
