/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. How often the kernel takes the locks of an address space while 1 to 8 processes
 * read memory of one: by process_vm_readv(), by the module's copies, through its mappings. For
 * contention.sh's guest; what it prints is a table for /proc/lock_stat's counts of all processes,
 * of which none does anything else meanwhile.
 */
#include "calls.h"

#include <sys/uio.h>

enum { BYTES = 1 << 20, COPIES = 20, READERS_MOST = 8 };

static const char *const ways[] = { "cma", "kmod", "map" };
enum way { CMA, KMOD, MAP, WAYS };

int device;

struct board {
	uint64_t cookie, warm;
	uint32_t ready, go, done, leave;
};

struct lock {
	unsigned long taken, waited;
};

/* All classes that begin so: "&mm->mmap_lock" has one for readers and one for writers. */
static struct lock lock_of(const char *name)
{
	FILE *file = fopen("/proc/lock_stat", "r");
	struct lock lock = { 0, 0 };
	char line[1024];

	CHECK(file);
	while (fgets(line, sizeof(line), file)) {
		/* bounces, contentions, shortest, longest, all, mean; bounces, acquisitions */
		unsigned long waited, taken;
		char *colon = strchr(line, ':'), *at = line + strspn(line, " ");

		if (!colon || strncmp(at, name, strlen(name)))
			continue;
		if (sscanf(colon + 1, "%*u %lu %*s %*s %*s %*s %*u %lu", &waited, &taken) != 2)
			continue;
		lock.taken += taken;
		lock.waited += waited;
	}
	fclose(file);
	return lock;
}

static void count_anew(void)
{
	int fd = open("/proc/lock_stat", O_WRONLY);

	CHECK(fd >= 0);
	CHECK(write(fd, "0", 1) == 1);
	close(fd);
}

static void await(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		usleep(1000);
}

static void read_once(enum way way, uint64_t cookie, uint8_t *shared, uint8_t *own,
		      const uint8_t *mapped, size_t bytes)
{
	struct iovec local = { own, bytes }, remote = { shared, bytes };

	switch (way) {
	case CMA:
		CHECK(process_vm_readv(getppid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes);
		break;
	case KMOD:
		CHECK(!copy(cookie, 0, own, bytes, 0));
		break;
	default:
		memcpy(own, mapped, bytes);
	}
}

static uint8_t *map(uint64_t cookie, size_t bytes)
{
	uint8_t *mapped;

	CHECK(!map_at(cookie, 0, bytes, 0, NULL, &mapped));
	return mapped;
}

static void reader(enum way way, struct board *board, uint8_t *shared)
{
	uint8_t *own = memory(BYTES), *mapped = map(board->warm, PAGE);

	/* What the process itself misses of its code and its own data it has then. */
	for (int i = 0; i < 2; i++)
		read_once(way, board->warm, shared, own, mapped, PAGE);
	__atomic_add_fetch(&board->ready, 1, __ATOMIC_ACQ_REL);
	await(&board->go, 1);
	if (way == MAP)
		mapped = map(board->cookie, BYTES);
	for (int i = 0; i < COPIES; i++)
		read_once(way, board->cookie, shared, own, mapped, BYTES);
	/* The end of a process takes its locks, too: after the count. */
	__atomic_add_fetch(&board->done, 1, __ATOMIC_ACQ_REL);
	await(&board->leave, 1);
	CHECK(is_filled(own, BYTES, 1));
	_exit(0);
}

static void measure(enum way way, unsigned int readers)
{
	struct board *board =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *shared = memory(BYTES), *small = memory(PAGE);
	struct lock area, table;
	pid_t child[READERS_MOST];

	CHECK(board != MAP_FAILED);
	board->warm = create(small, PAGE, ONECOPY_REGION_READ);
	for (unsigned int i = 0; i < readers; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (!child[i])
			reader(way, board, shared);
	}
	await(&board->ready, readers);
	/* After the fork: its pages are this process's alone. */
	fill(shared, BYTES, 1);
	count_anew();
	if (way != CMA)
		board->cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	__atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
	await(&board->done, readers);
	area = lock_of("&mm->mmap_lock");
	table = lock_of("ptlock_ptr(page)");
	__atomic_store_n(&board->leave, 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < readers; i++)
		CHECK(child_succeeds(child[i]));
	if (way != CMA)
		CHECK(!destroy(board->cookie));
	CHECK(!destroy(board->warm));
	munmap(small, PAGE);
	munmap(shared, BYTES);
	munmap(board, PAGE);
	printf("row %s,%u,%u,%d,%lu,%lu,%lu,%lu\n", ways[way], readers, readers * COPIES, BYTES,
	       area.taken, area.waited, table.taken, table.waited);
	fflush(stdout);
}

int main(void)
{
	static const unsigned int readers[] = { 1, 2, 4, 8 };

	device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	if (access("/proc/lock_stat", R_OK))
		leave_out("the kernel has no /proc/lock_stat (CONFIG_LOCK_STAT)");
	for (unsigned int i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		for (enum way way = 0; way < WAYS; way++)
			measure(way, readers[i]);
	return 0;
}
