/* SPDX-License-Identifier: BSD-3-Clause */
/* Every way to allocate, and memory given back. */
#include "check.h"
#include "support/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static void *of_constructor;

/* Before the library's own turn would come, if it had one. */
__attribute__((constructor(101))) static void early(void)
{
	of_constructor = malloc(100);
}

/* gcc knows what malloc does, and would leave out what is not used. */
static void *volatile kept;

static void *keep(void *memory, size_t bytes)
{
	kept = memory;
	CHECK(kept && in_arena(kept, bytes));
	CHECK(malloc_usable_size(kept) >= bytes);
	memset(kept, 0x5a, bytes);
	return kept;
}

static void every_function(void)
{
	/* By their addresses, too: oc_heap_fixed has its own for them. */
	void *(*volatile make)(size_t) = malloc;
	void (*volatile give)(void *) = free;
	char *line = NULL, *text, *volatile whole;
	void *memory = NULL;
	size_t room = 0;
	FILE *file;

	CHECK(in_arena(of_constructor, 100));
	for (size_t bytes = 1; bytes <= 64 * MIB; bytes = bytes * 3 + 1) {
		free(keep(malloc(bytes), bytes));
		give(keep(make(bytes), bytes));
		free(keep(memalign(64, bytes), bytes));
		free(keep(aligned_alloc(4096, bytes), bytes));
		free(keep(valloc(bytes), bytes));
		CHECK(!posix_memalign(&memory, 128, bytes) && !((uintptr_t)memory & 127));
		free(keep(memory, bytes));
		text = calloc(bytes, 1);
		CHECK(text && !text[0] && !text[bytes - 1] && !memchr(text, 0x5a, bytes));
		free(keep(text, bytes));
	}
	text = malloc(10);
	CHECK(text);
	memcpy(text, "a content", 10);
	for (size_t bytes = 20; bytes <= 40 * MIB; bytes *= 5) {
		whole = realloc(text, bytes);
		CHECK(whole && in_arena(whole, bytes) && !strcmp(whole, "a content"));
		text = whole;
	}
	text = reallocarray(text, 3, 5);
	CHECK(text && !strcmp(text, "a content"));
	free(text);
	free(NULL);

	text = strdup("of the C library");
	CHECK(in_arena(text, 17));
	free(text);
	CHECK(asprintf(&text, "%d %s", 7, "words") == 7 && in_arena(text, 8));
	free(text);
	free(keep(wcsdup(L"wide"), 20));
	file = fopen("/proc/self/status", "re");
	CHECK(file && in_arena(file, 1) && getline(&line, &room, file) > 0 && in_arena(line, room));
	free(line);
	fclose(file);
}

/* Sizes that are powers of two, and beside them: allocators have ways of their own for these. */
static void every_alignment(void)
{
	enum { EACH = 20 };
	static void *block[3 * EACH];

	for (size_t align = 16; align <= 65536; align *= 2)
		for (size_t power = 8; power <= 65536; power *= 2)
			for (int beside = -1; beside <= 1; beside++) {
				size_t bytes = power + (size_t)beside;

				for (int i = 0; i < EACH; i++) {
					block[3 * i] = memalign(align, bytes);
					block[3 * i + 1] = aligned_alloc(align, bytes);
					CHECK(!posix_memalign(&block[3 * i + 2], align, bytes));
				}
				for (int i = 0; i < 3 * EACH; i++) {
					CHECK(block[i] && !((uintptr_t)block[i] & (align - 1)));
					free(keep(block[i], bytes));
				}
			}
}

static void refusals(void)
{
	/* Not constants: compilers refuse those. */
	volatile size_t most = SIZE_MAX / 2 - 1, count = SIZE_MAX / 4, unlikely = SIZE_MAX;
	void *memory = &memory;

	errno = 0;
	CHECK(!malloc(most) && errno == ENOMEM);
	errno = 0;
	CHECK(!calloc(count, 8) && errno == ENOMEM);
	errno = 0;
	CHECK(!reallocarray(NULL, count, 8) && errno == ENOMEM);
	CHECK(posix_memalign(&memory, 3, 8) == EINVAL && memory == &memory);
	errno = 0;
	CHECK(!memalign(unlikely, 8) && errno == EINVAL);
	kept = malloc(8);
	errno = 77;
	free(kept);
	CHECK(errno == 77);
}

/* What the C library's malloc does where the standard leaves it open, and programs count on. */
static void as_the_c_library(void)
{
	static const size_t aligns[] = { 0, 1, 3, 24, 48, 100, 5000 };

	for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
		size_t power = 1;
		void *a = memalign(aligns[i], 100), *b = aligned_alloc(aligns[i], 100);

		while (power < aligns[i])
			power *= 2;
		CHECK(a && b && !((uintptr_t)a & (power - 1)) && !((uintptr_t)b & (power - 1)));
		free(a);
		free(b);
	}
	/* Frees, and has nothing to give. */
	CHECK(!realloc(malloc(10), 0) && !reallocarray(malloc(10), 5, 0));
	kept = realloc(NULL, 0);
	CHECK(kept);
	free(kept);
}

static void wait_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void given_back(void)
{
	enum { BLOCKS = 2000, BYTES = 100000 };
	uint64_t before = arena()->counts().used, full;
	static char *block[BLOCKS];
	const size_t most = 300 * MIB;
	char *big = malloc(most);

	CHECK(big);
	memset(big, 1, most);
	CHECK(arena()->counts().used >= before + most);
	free(big);
	CHECK(arena()->counts().used < before + 40 * MIB);

	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(BYTES);
		CHECK(block[i]);
		memset(block[i], 1, BYTES);
	}
	full = arena()->counts().used;
	CHECK(full >= before + (size_t)BLOCKS * BYTES);
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	/* mimalloc waits half a second before it gives up what may be wanted again. */
	for (int i = 0; i < 20 && arena()->counts().used > full / 4; i++) {
		wait_ms(100);
		malloc_trim(0);
	}
	CHECK(arena()->counts().used <= full / 4);

	/* What a program does by itself with a block that it keeps. */
	CHECK(!posix_memalign((void **)&big, 4096, 8 * MIB));
	memset(big, 1, 8 * MIB);
	full = arena()->counts().used;
	CHECK(!madvise(big, 8 * MIB, MADV_DONTNEED));
	CHECK(arena()->counts().used + 8 * MIB <= full);
	CHECK(!big[0] && !big[4 * MIB] && !big[8 * MIB - 1]);
	free(big);
}

static int by_the_kernel(void *address, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, address, bytes, advice);
}

/* Libraries that keep memory registered, UCX and Open MPI, write a jump to theirs over whatever has
 * the name, and go on by the system call, by which a file keeps its pages. */
static void given_back_by_a_hook(void)
{
	uint8_t jump[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 }; /* to rax */
	int (*hook)(void *, size_t, int) = by_the_kernel;
	uint8_t *named = dlsym(RTLD_DEFAULT, "madvise");
	uintptr_t page = (uintptr_t)named & ~(uintptr_t)4095;
	char *block;

	memcpy(jump + 2, &hook, sizeof(hook));
	CHECK(!posix_memalign((void **)&block, 4096, 8 * MIB));
	memset(block, 1, 8 * MIB);
	CHECK(in_arena(block, 8 * MIB));
	CHECK(!mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	memcpy(named, jump, sizeof(jump));
	CHECK(!madvise(block, 4 * MIB, MADV_DONTNEED));
	CHECK(!madvise(block + 4 * MIB, 2 * MIB, MADV_FREE));
	CHECK(!block[0] && !block[4 * MIB - 1] && !block[4 * MIB] && !block[6 * MIB - 1]);
	CHECK(block[6 * MIB] == 1 && block[8 * MIB - 1] == 1);
	free(block);
}

/* Backed before it is touched, and by nothing but large pages; skipped where it is not. */
static void large_pages(void)
{
	uint64_t before = arena()->counts().used;
	const size_t most = 64 * MIB;
	char *big = malloc(most);

	CHECK(in_arena(big, most));
	if (arena()->counts().used < before + most / 2)
		_Exit(77);
	CHECK((size_t)oct_field("/proc/self/smaps_rollup", "ShmemPmdMapped: %ld") >=
	      most / 2 / 1024);
	for (size_t i = 0; i < most; i += 1000)
		CHECK(!big[i]);
	memset(big, 1, most);
	free(big);
	CHECK(arena()->counts().used <= before + 34 * MIB);
}

static void *allocate_little(void *unused)
{
	char *memory = malloc(100);

	CHECK(in_arena(memory, 100));
	free(memory);
	return unused;
}

static void *allocate_more(void *unused)
{
	enum { BLOCKS = 150, BYTES = 10000 };
	char *memory[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		memory[i] = malloc(BYTES);
		CHECK(in_arena(memory[i], BYTES));
		memset(memory[i], i, BYTES);
	}
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(memory[i][0] == (char)i && memory[i][BYTES - 1] == (char)i);
		free(memory[i]);
	}
	return unused;
}

/* What a thread begins with becomes a large page with its second MiB; skipped where there are none.
 */
static void large_page_of_a_thread(void)
{
	uint64_t before = arena()->counts().large, backed;
	pthread_t thread;

	if (arena()->mimalloc >= 300) {
		printf("skipped: threads of mimalloc 3 have no memory of their own\n");
		exit(77);
	}
	/* What must be there for the threads themselves comes first. */
	free(malloc(64 * MIB));
	backed = arena()->counts().large;
	if (backed == before)
		_Exit(77);
	CHECK(!pthread_create(&thread, NULL, allocate_little, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(arena()->counts().large == backed);
	CHECK(!pthread_create(&thread, NULL, allocate_more, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(arena()->counts().large == backed + 2 * MIB);
}

/* Each thread frees what its neighbour allocated. */
enum { THREADS = 64, ROUNDS = 10, SLOTS = 200 };
static void *_Atomic slot[THREADS][SLOTS];

static void *mix(void *argument)
{
	unsigned int me = (unsigned int)(uintptr_t)argument, seed = me + 1;
	unsigned int next = (me + 1) % THREADS;

	for (int i = 0; i < ROUNDS * SLOTS; i++) {
		size_t bytes = (size_t)rand_r(&seed) % 5000 + 16;
		unsigned int at = (unsigned int)rand_r(&seed) % SLOTS;
		size_t *made = malloc(bytes), *old;

		CHECK(made && in_arena(made, bytes));
		made[0] = bytes;
		((char *)made)[bytes - 1] = 0x33;
		old = atomic_exchange(&slot[next][at], made);
		CHECK(!old || ((char *)old)[old[0] - 1] == 0x33);
		free(old);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, mix, (void *)i));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

const struct scenario family_scenarios[] = {
	{ "every_function", every_function },
	{ "every_alignment", every_alignment },
	{ "refusals", refusals },
	{ "as_the_c_library", as_the_c_library },
	{ "given_back", given_back },
	{ "given_back_by_a_hook", given_back_by_a_hook },
	{ "threads", threads },
	{ "large_pages", large_pages },
	{ "large_page_of_a_thread", large_page_of_a_thread },
	{ NULL, NULL },
};
