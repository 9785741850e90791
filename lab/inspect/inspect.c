/* SPDX-License-Identifier: BSD-3-Clause */
/* What the `onecopy` command shows: no state of a job, only of this process and machine. */
#include "lab/inspect/inspect.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/options.h"
#include "heap/heap.h"
#include "lab/topo/machine.h"
#include "os/os.h"

/* What a child publishes for the probes; shared before the fork. */
struct target {
	uint8_t nonce[16], cell[16];
};

/* A process to try things on, which ends with this one; as fork(). */
static pid_t fork_target(void)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		pause();
	_exit(0);
}

#define FILE_REMEDY "allow memfd_create, or make /dev/shm writable with room in it"

/* What helps against the error, if it is not the usual one. */
static const char *remedy_of(int error, const char *usual)
{
	if (error == -EMFILE || error == -ENFILE)
		return "raise ulimit -n";
	return error == -EFBIG ? "raise ulimit -f" : usual;
}

static int probe_cma(char *why, size_t bytes)
{
	struct target *target = mmap(NULL, sizeof(*target), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error = target == MAP_FAILED ? -errno : oci_os_random(target->nonce, 16);
	uint8_t nonce[16];
	pid_t child;

	if (error) {
		snprintf(why, bytes, "no memory to probe with: %s", strerror(-error));
		return error;
	}
	memcpy(nonce, target->nonce, 16);
	child = fork_target();
	if (child < 0) {
		error = -errno;
		snprintf(why, bytes, "no child to probe with: %s; raise ulimit -u",
			 strerror(-error));
	} else {
		struct oci_end end = { .pid = child, .whole = 16 };

		error = oci_copy_probe_one(&oci_copy_cma, &end, (uintptr_t)target->nonce, nonce,
					   (uintptr_t)target->cell, why, bytes);
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(target, sizeof(*target));
	return error;
}

/* By a region of this process: whose it is makes no difference to the module. */
static int probe_kmod(char *why, size_t bytes)
{
	uint8_t nonce[16], seen[16] = { 0 }, *page;
	struct iovec given = { nonce, 16 }, taken = { seen, 16 };
	int fd = oci_os_kmod_open(), error = fd < 0 ? fd : oci_os_random(nonce, 16);
	uint64_t cookie = 0;
	ssize_t moved;

	page = mmap(NULL, oci_os_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (page == MAP_FAILED)
		error = error ? error : -ENOMEM;
	if (!error)
		error = oci_os_kmod_register(fd, (uintptr_t)page, oci_os_page_bytes(), true, 0,
					     &cookie);
	if (!error) {
		moved = oci_os_kmod_copy(fd, cookie, 8, &given, 1, 16, OCI_OS_KMOD_WRITE);
		if (moved == 16)
			moved = oci_os_kmod_copy(fd, cookie, 8, &taken, 1, 16, 0);
		if (moved != 16 || memcmp(nonce, seen, 16))
			error = moved < 0 ? (int)moved : -EIO;
	}
	if (error)
		oci_copy_explain_kmod(-error, why, bytes);
	if (page != MAP_FAILED)
		munmap(page, oci_os_page_bytes());
	if (fd >= 0)
		close(fd);
	return error;
}

/* As a peer's arena is mapped, from a child that has the file open. 0, or -errno and the sentence.
 */
static int probe_map(char *why, size_t bytes)
{
	int error = 0, theirs, fd = oci_os_shared_file("onecopy-info", oci_os_page_bytes());
	uint8_t *mine = NULL, *mapped = NULL;
	pid_t child = -1;

	if (fd >= 0)
		mine = oci_os_map_shared(fd, oci_os_page_bytes(), &error);
	if (fd < 0 || !mine || oci_os_random(mine, 16)) {
		error = fd < 0 ? fd : error ? error : -EIO;
		snprintf(why, bytes, "no shared file to probe with: %s; %s", strerror(-error),
			 remedy_of(error, FILE_REMEDY));
		goto out;
	}
	child = fork_target();
	if (child < 0) {
		error = -errno;
		snprintf(why, bytes, "no child to probe with: %s; raise ulimit -u",
			 strerror(-error));
		goto out;
	}
	theirs = oci_os_open_peer_fd(child, fd);
	if (theirs >= 0) {
		mapped = oci_os_map_peer(theirs, oci_os_page_bytes(), &error);
		close(theirs);
		if (mapped)
			error = oci_os_open_mapped(mapped, oci_os_page_bytes());
	} else {
		error = theirs;
	}
	if (mapped && !error && memcmp(mapped, mine, 16))
		error = -EPROTO;
	if (error)
		snprintf(why, bytes,
			 "a file of another process cannot be opened and mapped: %s; %s",
			 strerror(-error),
			 remedy_of(error, "make the program readable (chmod +r), raise ulimit -v, "
					  "and keep all ranks in one container with its /proc"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
out:
	if (mapped)
		oci_os_unmap(mapped, oci_os_page_bytes());
	if (mine)
		oci_os_unmap(mine, oci_os_page_bytes());
	if (fd >= 0)
		close(fd);
	return error;
}

/* The sentence of a refusal is "cause; remedy". */
static void split(char *why, const char **remedy)
{
	char *mark = strstr(why, "; ");

	*remedy = "";
	if (mark) {
		*mark = '\0';
		*remedy = mark + 2;
	}
}

#define MECHANISMS 4

/* What a probe of a mechanism found, as the command shows it. */
static struct oc_mechanism_info told(const struct oci_copy *copy, int error, char *why,
				     size_t bytes, const char *found)
{
	struct oc_mechanism_info info = { .name = copy->name,
					  .what = copy->what,
					  .works = !error,
					  .sentence = why,
					  .remedy = "" };

	if (error)
		split(why, &info.remedy);
	else
		snprintf(why, bytes, "%s", found);
	return info;
}

static void probe_all(struct oc_mechanism_info info[MECHANISMS])
{
	static char why[MECHANISMS][256];
	int error, fd;

	error = probe_map(why[0], sizeof(why[0]));
	info[0] = told(&oci_copy_map, error, why[0], sizeof(why[0]),
		       "mapped a file of a child process, and 16 random bytes in it were right");
	error = probe_cma(why[1], sizeof(why[1]));
	info[1] = told(&oci_copy_cma, error, why[1], sizeof(why[1]),
		       "read and wrote 16 random bytes in a child process, and they were right");
	error = probe_kmod(why[2], sizeof(why[2]));
	info[2] = told(&oci_copy_kmod, error, why[2], sizeof(why[2]),
		       "wrote and read 16 random bytes by a region, and they were right");
	fd = oci_os_shared_file("onecopy-info", oci_os_page_bytes());
	if (fd < 0)
		snprintf(why[3], sizeof(why[3]), "%s; %s", strerror(-fd),
			 remedy_of(fd, FILE_REMEDY));
	else
		close(fd);
	info[3] = told(&oci_copy_shm, fd < 0 ? fd : 0, why[3], sizeof(why[3]),
		       "made and removed a shared file");
}

const struct oc_mechanism_info *oc_inspect_mechanism(unsigned int index)
{
	static struct oc_mechanism_info info[MECHANISMS];

	if (!info[0].name)
		probe_all(info);
	return index < MECHANISMS ? &info[index] : NULL;
}

json_t *oc_inspect_module(void)
{
	struct oci_os_kmod_counters c;
	int fd = oci_os_kmod_open();
	int error = fd < 0 ? fd : oci_os_kmod_count(fd, &c);

	if (fd >= 0)
		close(fd);
	if (error)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I}",
			 "version", (json_int_t)c.version, "regions_created",
			 (json_int_t)c.regions_created, "regions_now", (json_int_t)c.regions_now,
			 "regions_gone", (json_int_t)c.regions_gone, "pages_pinned_now",
			 (json_int_t)c.pages_pinned_now, "copies", (json_int_t)c.copies,
			 "copies_by_thread", (json_int_t)c.copies_by_thread, "copies_by_engine",
			 (json_int_t)c.copies_by_engine, "bytes", (json_int_t)c.bytes,
			 "bytes_by_engine", (json_int_t)c.bytes_by_engine, "failures",
			 (json_int_t)c.failures, "channels", (json_int_t)c.channels, "engines_busy",
			 (json_int_t)c.engines_busy, "engine_failures",
			 (json_int_t)c.engine_failures, "maps_now", (json_int_t)c.maps_now);
}

json_t *oc_inspect_topology(void)
{
	const struct oci_topo *topo = oci_topo_local();
	struct oci_topo_summary s;

	if (!topo)
		return NULL;
	oci_topo_summary(topo, &s);
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:i, s:f}", "packages",
			 s.packages, "numa_nodes", s.numa_nodes, "l3s", s.l3s, "l2s", s.l2s,
			 "cores", s.cores, "cpus", s.cpus, "l2_bytes", (json_int_t)s.l2_bytes,
			 "l3_bytes", (json_int_t)s.l3_bytes, "cores_per_l2", s.cores_per_l2,
			 "cores_per_l3", s.cores_per_l3, "cpus_allowed", oci_os_cpus_allowed(),
			 "cgroup_cpus", oci_os_cgroup_cpus());
}

void oc_inspect_algorithm_options(void)
{
	oci_forced_by_environment(OC_BARRIER);
}

size_t oc_inspect_team_bytes(void)
{
	return sizeof(struct oci_region);
}

const char *oc_inspect_heap(void)
{
	const struct oci_arena *arena = oci_arena_self(true);

	if (!arena)
		return "libonecopy-heap.so cannot be loaded here (ONECOPY_LOG=debug says why)";
	return arena->base ? NULL : arena->why;
}

const char *oc_inspect_allocator(void)
{
	const struct oci_arena *arena = oci_arena_self(true);
	static char text[100];

	if (arena && arena->base)
		oci_arena_allocator(arena, text, sizeof(text));
	return text;
}
