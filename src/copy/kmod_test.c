/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies by the kernel module where memory goes, is refused or is too much, on real processes.
 * Where there is no /dev/onecopy, what needs it is skipped: kernel/guest/mpi.sh runs it in a guest.
 * More than 500 lines, as it is a list of small cases.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "copy/kmod.h"
#include "copy/memcpy.h"
#include "lab/tune/write.h"
#include "model/terms_test.h"
#include "support/call.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"

#define BYTES ((size_t)304 << 10) /* a quarter of it is whole pages */

static void need_device(void)
{
	int fd = oci_os_kmod_open();

	if (fd < 0)
		oct_skip("there is no /dev/onecopy; the module's guest runs this");
	close(fd);
	setenv("ONECOPY_MECHANISM", "kmod", 1);
	setenv("ONECOPY_BCAST", "direct-read", 1);
}

/* As far as is left of what may be locked, which tests lower. */
static void need_memory(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	need_device();
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		oct_skip("the limit of locked memory cannot be raised");
}

/* And channels of DMA engines. */
static void need_engine(void)
{
	struct oci_os_kmod_counters counters;
	int fd, error;

	need_memory();
	fd = oci_os_kmod_open();
	error = fd < 0 ? fd : oci_os_kmod_count(fd, &counters);
	close(fd);
	if (error || !counters.channels || oci_memcpy_dma_min_here() == SIZE_MAX)
		oct_skip("no DMA engine, or no cache is known");
}

/* That all processes have had copied by engines; of one with a team. */
static uint64_t by_engines(void)
{
	struct oci_os_kmod_counters counters = { 0 };

	oci_os_kmod_count(oci_registrations_device(), &counters);
	return counters.bytes_by_engine;
}

static uint8_t *map(void *at, size_t bytes)
{
	void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Less what the probes of the team's creation have copied, three times 16 with each peer. */
static uint64_t copied(const struct oc_team *team)
{
	return oci_kmod_counts().bytes - 48 * (oc_team_size(team) - 1);
}

/* `value` from rank `root`: 0 when it came. */
static int round_of(struct oc_team *team, uint8_t *buffer, uint8_t value, uint32_t root)
{
	memset(buffer, oc_team_rank(team) == root ? value : 0xff, BYTES);
	if (oct_bcast(team, buffer, BYTES, root))
		return 1;
	return oct_all(buffer, value, BYTES) ? 0 : 2;
}

#define TEST_WITH_DEVICE(name, need, ...)                                                         \
	static int name##_on_a_rank(struct oc_team *team, void *unused);                          \
	TEST(name)                                                                                \
	{                                                                                         \
		static const uint32_t sizes[] = { __VA_ARGS__ };                                  \
                                                                                                  \
		need();                                                                           \
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)               \
			assert_int_equal(oct_fork_team(sizes[i], -1, name##_on_a_rank, NULL), 0); \
	}                                                                                         \
	static int name##_on_a_rank(struct oc_team *team, __attribute__((unused)) void *unused)

TEST(an_address_is_found_where_it_is_registered)
{
	struct oci_registration told[OCI_REGISTRATIONS] = {
		[3] = { 2, 0x10000, 0x4000, 7 },
		[5] = { 3, 0x20000, 0x4000, 8 }, /* being written */
		[6] = { 2, 0x30000, 0x4000, 0 }, /* not any more */
		[31] = { 2, 0x14000, 0x1000, 9 },
	};
	struct oci_registered found;

	assert_true(oci_registration_find(told, 0x10000, &found));
	assert_int_equal(found.cookie, 7);
	assert_int_equal(found.offset, 0);
	assert_int_equal(found.bytes, 0x4000);
	assert_true(oci_registration_find(told, 0x13fff, &found));
	assert_int_equal(found.bytes, 1);
	assert_true(oci_registration_find(told, 0x14000, &found));
	assert_int_equal(found.cookie, 9);
	assert_false(oci_registration_find(told, 0xffff, &found));
	assert_false(oci_registration_find(told, 0x15000, &found));
	assert_false(oci_registration_find(told, 0x20000, &found));
	assert_false(oci_registration_find(told, 0x30000, &found));
	assert_false(oci_registration_find(NULL, 0x10000, &found));
}

/* By oc_start(), as each start of a persistent call is. */
static int round_by_request(struct oc_team *team, uint8_t *buffer, uint8_t value)
{
	struct oc_call call = { .collective = OC_BCAST, .send = buffer, .bytes = BYTES };
	struct oc_request *request;

	memset(buffer, oc_team_rank(team) ? 0xff : value, BYTES);
	if (oc_start(team, &call, &request) || oc_wait(request))
		return 1;
	return oct_all(buffer, value, BYTES) ? 0 : 2;
}

TEST_WITH_DEVICE(one_region_serves_all_readers_and_later_calls, need_memory, 2, 4)
{
	struct oci_registration_counts counts;
	uint8_t *buffer = map(NULL, BYTES);

	for (uint8_t i = 0; buffer && i < 20; i++)
		if (i % 2 ? round_by_request(team, buffer, i) : round_of(team, buffer, i, 0))
			return 1;
	counts = oci_registration_counts();
	if (oci_kmod_counts().misses || counts.refused || counts.gone)
		return 2;
	if (oc_team_rank(team))
		return counts.made || copied(team) != 20 * BYTES ? 3 : 0;
	return counts.made != 1 || counts.reused != 19 || copied(team) ? 4 : 0;
}

TEST_WITH_DEVICE(memory_that_was_mapped_anew_is_never_read_stale, need_memory, 2, 4)
{
	uint8_t *buffer = map(NULL, BYTES);
	uint8_t i = 0;

	for (; buffer && i < 20; i++) {
		if (round_of(team, buffer, i, i % oc_team_size(team)))
			return 1;
		/* What others have pinned is not it any more. */
		if (i % 3 == 0 && map(buffer, BYTES) != buffer)
			return 2;
		if (i % 3 == 1 && madvise(buffer + BYTES / 2, BYTES / 4, MADV_DONTNEED))
			return 3;
	}
	if (oci_registration_counts().gone < 2 || oci_kmod_counts().misses)
		return 4;
	return buffer && copied(team) ? 0 : 5;
}

TEST_WITH_DEVICE(memory_that_may_not_be_written_is_read, need_memory, 3)
{
	uint8_t *buffer = map(NULL, BYTES);

	if (oc_team_rank(team) == 0) {
		memset(buffer, 5, BYTES);
		if (mprotect(buffer, BYTES, PROT_READ))
			return 1;
	}
	if (oct_bcast(team, buffer, BYTES, 0) || !oct_all(buffer, 5, BYTES))
		return 2;
	return oci_registration_counts().refused || oci_kmod_counts().misses ? 3 : 0;
}

TEST_WITH_DEVICE(many_buffers_take_turns, need_memory, 2)
{
	enum { BUFFERS = 2 * OCI_REGISTRATIONS };
	uint8_t *buffers[BUFFERS];

	for (int i = 0; i < BUFFERS; i++)
		buffers[i] = map(NULL, BYTES);
	for (int i = 0; i < 3 * BUFFERS; i++)
		if (round_of(team, buffers[i % BUFFERS], (uint8_t)i, 1))
			return 1;
	if (oci_kmod_counts().misses || oci_registration_counts().refused)
		return 2;
	return oc_team_rank(team) && oci_registration_counts().replaced < BUFFERS ? 3 : 0;
}

/* The limit is the first rank's alone. */
TEST_WITH_DEVICE(what_may_not_be_locked_is_copied_another_way, need_memory, 3)
{
	struct rlimit limit = { 2 * BYTES, 2 * BYTES };
	uint8_t *buffer = map(NULL, 3 * BYTES);

	if (oc_team_rank(team) == 0 && setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	memset(buffer, oc_team_rank(team) ? 0 : 9, 3 * BYTES);
	if (oct_bcast(team, buffer, 3 * BYTES, 0) || !oct_all(buffer, 9, 3 * BYTES))
		return 2;
	if (oc_team_rank(team) == 0 ? oci_registration_counts().refused != 1 :
				      !oci_kmod_counts().misses || copied(team))
		return 3;
	/* What may be locked is. */
	if (round_of(team, buffer, 11, 0))
		return 4;
	return oc_team_rank(team) && !copied(team) ? 5 : 0;
}

TEST_WITH_DEVICE(a_fork_leaves_the_regions_with_the_parent, need_memory, 2)
{
	uint8_t *buffer = map(NULL, BYTES);

	for (uint8_t i = 0; i < 4; i++) {
		pid_t child;
		int status;

		if (round_of(team, buffer, i, 0))
			return 1;
		child = fork();
		if (!child) {
			memset(buffer, 0xaa, BYTES);
			oci_register((uintptr_t)buffer, BYTES);
			_exit(oci_registrations_device() != -ENODEV);
		}
		/* The one writes first, and the other. */
		if (i % 2 && (waitpid(child, &status, 0) != child || status))
			return 2;
		if (round_of(team, buffer, (uint8_t)(i + 100), 0))
			return 3;
		if (!(i % 2) && (waitpid(child, &status, 0) != child || status))
			return 4;
	}
	return oc_team_rank(team) && !copied(team) ? 5 : 0;
}

/* Whose gaps are small, whose gaps are large, and whose pieces are too many for that. */
TEST_WITH_DEVICE(buffers_with_gaps_are_reached, need_memory, 2)
{
	static const struct {
		size_t pieces, bytes, step;
		bool misses;
	} cases[] = { { 200, 1000, 3000, false },
		      { 6, 30000, 100000, false },
		      { 60, 3000, 50000, true } };

	for (unsigned int c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct oc_piece *pieces = calloc(cases[c].pieces + 1, sizeof(*pieces));
		struct oc_layout layout = { pieces, cases[c].pieces };
		uint8_t *buffer = map(NULL, cases[c].pieces * cases[c].step);
		struct oc_call call = { .collective = OC_BCAST,
					.send = buffer,
					.send_layout = &layout,
					.bytes = cases[c].pieces * cases[c].bytes };
		uint64_t missed = oci_kmod_counts().misses;

		for (size_t i = 0; i <= cases[c].pieces; i++) {
			pieces[i] = (struct oc_piece){ .address = buffer + i * cases[c].step,
						       .at = i * cases[c].bytes };
			if (i < cases[c].pieces)
				memset(pieces[i].address, oc_team_rank(team) ? 0xff : (int)i % 250,
				       cases[c].bytes);
		}
		if (oc_collective(team, &call))
			return 1;
		for (size_t i = 0; i < cases[c].pieces; i++)
			if (!oct_all(pieces[i].address, (uint8_t)(i % 250), cases[c].bytes))
				return 2;
		if (oc_team_rank(team) && (oci_kmod_counts().misses > missed) != cases[c].misses)
			return 3;
		free(pieces);
	}
	return 0;
}

TEST_WITH_DEVICE(messages_are_copied_by_it, need_memory, 2)
{
	uint8_t *buffer = map(NULL, BYTES);
	struct oc_status status;

	for (int round = 0; round < 10; round++) {
		memset(buffer, oc_team_rank(team) ? 0 : round + 1, BYTES);
		if (oc_team_rank(team) ? oc_recv(team, 0, round, buffer, BYTES, &status) :
					 oc_send(team, 1, round, buffer, BYTES))
			return 1;
		if (!oct_all(buffer, (uint8_t)(round + 1), BYTES))
			return 2;
	}
	if (oci_kmod_counts().misses)
		return 3;
	/* The sender may have copied a part. */
	return oc_team_rank(team) && !copied(team) ? 4 : 0;
}

/* The root's region, by the other rank alone. */
static int bcast_by_engine(struct oc_team *team, size_t bytes, uint64_t *by_engine)
{
	uint8_t *buffer = map(NULL, bytes), value = (uint8_t)(bytes >> 12);
	uint64_t before = by_engines();

	memset(buffer, oc_team_rank(team) ? 0xff : value, bytes);
	if (oct_bcast(team, buffer, bytes, 0) || !oct_all(buffer, value, bytes))
		return 1;
	*by_engine = by_engines() - before;
	return munmap(buffer, bytes) ? 2 : 0;
}

/* Whoever has CAP_IPC_LOCK has no limit. */
static int lock_no_more(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct rlimit none = { 0, 0 };

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	return syscall(SYS_capset, &header, data) ? -1 : setrlimit(RLIMIT_MEMLOCK, &none);
}

TEST_WITH_DEVICE(more_than_dma_min_is_copied_by_an_engine, need_engine, 2)
{
	size_t most = oci_memcpy_dma_min_here() / 4096 * 4096;
	uint64_t by_engine;

	if (oct_made(team) < 0)
		return 9;
	if (bcast_by_engine(team, most, &by_engine) || (oc_team_rank(team) && by_engine))
		return 1;
	if (bcast_by_engine(team, most + 4096, &by_engine) ||
	    (oc_team_rank(team) && by_engine != most + 4096))
		return 2;
	/* My side may not be pinned: by the CPU, out of the region all the same. */
	if (oc_team_rank(team) && lock_no_more())
		return 3;
	if (bcast_by_engine(team, most + 4096, &by_engine) || (oc_team_rank(team) && by_engine))
		return 4;
	if (oci_kmod_counts().misses)
		return 5;
	return oc_team_rank(team) && copied(team) != 3 * most + 8192 ? 6 : 0;
}

/* Into a region, and where both ends of a message copy. */
TEST_WITH_DEVICE(large_messages_are_copied_by_engines, need_engine, 2)
{
	size_t bytes = oci_memcpy_dma_min_here() / 4096 * 4096 * 2;
	uint8_t *buffer = map(NULL, bytes);
	struct oc_status status;
	uint64_t before;

	if (oct_made(team) < 0)
		return 9;
	memset(buffer, oc_team_rank(team) ? 0 : 7, bytes);
	before = by_engines();
	oct_meet();
	if (oc_team_rank(team) ? oc_recv(team, 0, 1, buffer, bytes, &status) :
				 oc_send(team, 1, 1, buffer, bytes))
		return 1;
	if (!oct_all(buffer, 7, bytes))
		return 2;
	oct_meet();
	return by_engines() - before < bytes / 2 || oci_kmod_counts().misses ? 3 : 0;
}

/* ---- engines and the CPU side by side ----------------------------------------------------------
 */

static int bind_to(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* And CPUs 0 and 1 share a cache, 2 and 3 another one. */
static void need_caches(void)
{
	struct oci_topo_place place[4];
	cpu_set_t before;
	bool told = true;

	need_engine();
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (uint32_t cpu = 0; cpu < 4 && told; cpu++)
		told = !bind_to(cpu) && oci_topo_self(&place[cpu], 4);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	for (uint32_t cpu = 0; cpu < 4 && told; cpu++)
		told = oci_topo_near(oci_topo_common(&place[cpu], &place[cpu ^ 1])) &&
		       oci_topo_apart(&place[cpu], &place[cpu ^ 2]);
	if (!told)
		oct_skip("CPUs 0 and 1, 2 and 3 do not share a cache each, or it is not told");
}

/* Of all ranks: what an Alltoall by pulling moved by engines and by the CPU, in blocks. */
static int alltoall_by(struct oc_team *team, size_t block, uint64_t engines, uint64_t cpu)
{
	struct oct_spec spec = { .collective = OC_ALLTOALL, .bytes = block };
	struct oci_os_kmod_counters before, after;
	struct oct_memory memory = { 0 };
	int result;

	oct_meet();
	if (oci_os_kmod_count(oci_registrations_device(), &before))
		return 1;
	oct_meet();
	result = oct_call_run(team, &memory, &spec);
	oct_meet();
	if (!result && oci_os_kmod_count(oci_registrations_device(), &after))
		result = 2;
	oct_meet();
	oct_memory_free(&memory);
	if (result)
		return result;
	after.bytes_by_engine -= before.bytes_by_engine;
	after.bytes -= before.bytes + after.bytes_by_engine;
	/* On a busy machine an engine may not be free yet again. */
	after.engines_busy -= before.engines_busy;
	engines -= after.engines_busy;
	cpu += after.engines_busy;
	if (after.bytes_by_engine == engines * block && after.bytes == cpu * block)
		return 0;
	fprintf(stderr,
		"blocks of %zu bytes: %.3f by engines, %.3f by the CPU, %llu times none was free\n",
		block, (double)after.bytes_by_engine / (double)block,
		(double)after.bytes / (double)block, (unsigned long long)after.engines_busy);
	return 3;
}

static int mixed(const struct oc_bootstrap *bootstrap, __attribute__((unused)) void *unused)
{
	size_t most = oci_memcpy_dma_min_here() / 4096 * 4096, third = most / 3 / 4096 * 4096;
	/* A rank copies three blocks, one of them from where it shares a cache. */
	const struct {
		size_t block;
		uint64_t engines, cpu;
	} rows[] = { { third, 0, 12 },
		     { third + 4096, 8, 4 },
		     { most, 8, 4 },
		     { most + 4096, 12, 0 } };
	struct oc_team *team;
	int result = 0;

	if (bind_to(bootstrap->rank) || oc_team_create(&team, bootstrap))
		return 1;
	if (oct_made(team) < 0 || oc_team_force(team, "alltoall", "pairwise"))
		return 2;
	for (unsigned int i = 0; i < 4 && !result; i++)
		result = alltoall_by(team, rows[i].block, rows[i].engines, rows[i].cpu);
	if (oci_kmod_counts().misses)
		result = 9;
	oc_team_destroy(team);
	return result;
}

TEST(where_no_cache_is_shared_engines_copy_first)
{
	need_caches();
	assert_int_equal(oct_fork_ranks(4, -1, mixed, NULL), 0);
}

/* ---- by the model ---------------------------------------------------------------------------- */

/* Of this machine, where a copy by the module takes so many times as long as one by cma. */
static void write_tuning(char *path, double times)
{
	oci_model_init(&model);
	model.calibrated = true;
	oci_machine_self(&model.machine);
	give("cma.alpha", 1e-6);
	give("cma.beta", 1e-10);
	give("cma.lock", 1e-7);
	give("kmod.alpha", times * 1e-6);
	give("kmod.beta", times * 1.2e-10);
	give("kmod.lock", 0);
	assert_int_equal(oci_model_write(&model, path), 0);
}

static int by_kmod(struct oc_team *team, void *expected)
{
	uint8_t *buffer = map(NULL, BYTES);

	for (uint8_t i = 0; i < 4; i++)
		if (round_of(team, buffer, i, 0))
			return 1;
	if (oci_kmod_counts().misses)
		return 2;
	if (!oc_team_rank(team))
		return 0;
	return copied(team) == (*(bool *)expected ? 4 * BYTES : 0) ? 0 : 3;
}

TEST(unless_told_the_quicker_one_by_the_model_is_taken)
{
	char folder[] = "/tmp/onecopy-kmod-test-XXXXXX", path[sizeof(folder) + 16];
	bool yes = true, no = false;

	need_memory();
	unsetenv("ONECOPY_MECHANISM");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tuning.json", folder);
	assert_int_equal(setenv("ONECOPY_TUNING", "none", 1), 0);
	assert_int_equal(oct_fork_team(3, -1, by_kmod, &no), 0);
	assert_int_equal(setenv("ONECOPY_TUNING", path, 1), 0);
	write_tuning(path, 1);
	assert_int_equal(oct_fork_team(3, -1, by_kmod, &yes), 0);
	write_tuning(path, 2);
	assert_int_equal(oct_fork_team(3, -1, by_kmod, &no), 0);
	unsetenv("ONECOPY_TUNING");
	unlink(path);
	rmdir(folder);
}
