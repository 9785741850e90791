/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank maps of itself and of the others costs nothing by accident: a core dump leaves it
 * out, mlockall() does not fill it, a child of fork() does not hold it. And what the program maps
 * over its own memory is seen as that by the others.
 */
#include "case.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, MIB = 1 << 20, CALLS = 4 };

static int rank, ranks;

/* Memory of MPI_Alloc_mem: the first use maps the other ranks' heaps. */
static void use_memory(void)
{
	unsigned char *memory;

	if (MPI_Alloc_mem(BLOCK, MPI_INFO_NULL, &memory))
		case_fail("no memory");
	for (int call = 0; call < CALLS; call++) {
		int root = call % ranks;

		memset(memory, rank == root ? call + 1 : 0xff, BLOCK);
		MPI_Bcast(memory, BLOCK, MPI_BYTE, root, MPI_COMM_WORLD);
		case_count(CASE_BCAST, 1);
		for (int at = 0; at < BLOCK; at++)
			if (memory[at] != call + 1)
				case_fail("byte %d of Bcast %d is %d", at, call, memory[at]);
	}
	MPI_Free_mem(memory);
}

/* Shared mappings of files of ours, and those of them that a core dump would hold. */
struct mappings {
	int all, dumped;
};

static struct mappings look_at_mappings(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	struct mappings found = { 0, 0 };
	char line[512], mode[8] = "";
	int ours = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*x-%*x %7s", mode) == 1 && strlen(mode) == 4)
			ours = mode[3] == 's' && strstr(line, "memfd:onecopy");
		if (!ours || strncmp(line, "VmFlags:", 8))
			continue;
		found.all++;
		if (!strstr(line, " dd"))
			found.dumped++;
	}
	if (file)
		fclose(file);
	return found;
}

/* Bytes in use of this rank's own files, by their descriptors, of which there are `*files`. */
static long used_bytes(int *files)
{
	DIR *directory = opendir("/proc/self/fd");
	char path[300], name[64];
	struct dirent *entry;
	struct stat status;
	long sum = 0;

	*files = 0;
	while (directory && (entry = readdir(directory))) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, name, sizeof(name) - 1);
		if (length <= 0)
			continue;
		name[length] = '\0';
		if (!strstr(name, "memfd:onecopy") || stat(path, &status))
			continue;
		sum += status.st_blocks * 512;
		++*files;
	}
	if (directory)
		closedir(directory);
	return sum;
}

/* Filled, each rank's heap would show against what all else takes. */
static void check_heap(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long from, to, heap = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "memfd:onecopy-heap") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			heap += to - from;
	if (file)
		fclose(file);
	if (heap < 512UL * MIB || heap > (512UL * (unsigned int)ranks + 64) * MIB)
		case_fail("of shared heaps of 512 MiB %lu MiB are mapped", heap / MIB);
}

static void check_dumps(void)
{
	struct mappings found = look_at_mappings();

	/* Segments and heaps of two ranks at least. */
	if (found.all < 4)
		case_fail("%d mappings are shared, not 4 or more", found.all);
	if (found.dumped)
		case_fail("a core dump would hold %d of %d mappings", found.dumped, found.all);
}

static void check_child(void)
{
	int status = -1, files;
	pid_t child = fork();

	if (!child) {
		used_bytes(&files);
		_exit(files | look_at_mappings().all << 4);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		case_fail("the child ended with status 0x%x", (unsigned int)status);
	if (WEXITSTATUS(status))
		case_fail("the child of a fork holds %d files and %d mappings of its parent's",
			  WEXITSTATUS(status) & 15, WEXITSTATUS(status) >> 4);
}

static int refusal; /* errno of who may not lock memory here, which all ranks may alike */

/* Without a right to more than the limit, mlockall(MCL_FUTURE) succeeds, and what is mapped later
 * fails, in the MPI, too. */
static void try_to_lock(void)
{
	const size_t much = (size_t)64 << 30;
	void *memory =
		mmap(NULL, much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		case_fail("nothing can be mapped: %s", strerror(errno));
	refusal = mlock2(memory, much, MLOCK_ONFAULT) ? errno : 0;
	munmap(memory, much);
}

static int skip(void)
{
	if (!rank)
		printf("skipped: memory may not be locked here: %s; run as root, with "
		       "CAP_IPC_LOCK, or with ulimit -l unlimited\n",
		       strerror(refusal));
	MPI_Finalize();
	return 77;
}

/* Where that is refused, memory is used all the same, for the other checks. */
static void check_locked(int flags, const char *name)
{
	int files;
	long before, after;

	case_barrier(MPI_COMM_WORLD);
	before = used_bytes(&files);
	case_barrier(MPI_COMM_WORLD);
	if (!refusal && mlockall(flags))
		case_fail("mlockall(%s): %s", name, strerror(errno));
	use_memory();
	case_barrier(MPI_COMM_WORLD);
	after = used_bytes(&files);
	munlockall();
	if (after - before > 96L * MIB)
		case_fail("mlockall(%s) filled %ld MiB", name, (after - before) / MIB);
}

/* Of memory of malloc, by copies to it, from it, and by an operation. */
static void use_replaced(int *memory, int *other)
{
	const int count = BLOCK / (int)sizeof(int);

	for (int root = 0; root < ranks; root++) {
		for (int at = 0; at < count; at++)
			memory[at] = rank == root ? at + root : -1;
		MPI_Bcast(memory, count, MPI_INT, root, MPI_COMM_WORLD);
		case_count(CASE_BCAST, 1);
		for (int at = 0; at < count; at++)
			if (memory[at] != at + root)
				case_fail("item %d of a Bcast by rank %d is %d", at, root,
					  memory[at]);
		MPI_Allreduce(memory, other, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		case_count(CASE_ALLREDUCE, 1);
		for (int at = 0; at < count; at++)
			if (other[at] != ranks * (at + root))
				case_fail("sum %d is %d", at, other[at]);
	}
}

static void check_replaced(void)
{
	int *memory = NULL, *other = NULL;

	if (posix_memalign((void **)&memory, 4096, BLOCK) ||
	    posix_memalign((void **)&other, 4096, BLOCK))
		case_fail("no memory");
	use_replaced(memory, other);
	for (int turn = 0; turn < ranks; turn++) {
		if (rank == turn &&
		    (mmap(memory, BLOCK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory ||
		     mmap(other, BLOCK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != other))
			case_fail("nothing can be mapped there: %s", strerror(errno));
		use_replaced(memory, other);
	}
}

int main(int argc, char **argv)
{
	case_begin(&argc, &argv, &rank, &ranks);
	try_to_lock();
	/* The others' heaps are mapped in it. */
	check_locked(MCL_FUTURE, "MCL_FUTURE, before memory is used");
	check_heap();
	check_dumps();
	check_child();
	check_locked(MCL_CURRENT, "MCL_CURRENT");
	check_locked(MCL_FUTURE, "MCL_FUTURE");
	check_locked(MCL_CURRENT | MCL_FUTURE, "MCL_CURRENT | MCL_FUTURE");
	check_replaced();
	if (refusal)
		return skip();
	return case_end(
		"mapped: neither dumped nor filled nor held by children, and seen as it is\n");
}
