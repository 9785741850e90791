/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was served and what was handed back, per process.
 *
 * A team counts for itself, without a lock; its counts join the process's when it is destroyed or
 * when they are written.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/log.h"
#include "base/options.h"
#include "copy/kmod.h"
#include "copy/map.h"
#include "copy/vm.h"
#include "heap/heap.h"
#include "os/os.h"
#include "team/arena.h"

struct back {
	const char *collective, *reason;
	uint64_t calls;
};

static struct {
	struct oci_counts counts; /* of destroyed teams */
	struct {
		uint64_t calls, bytes; /* atomic */
	} levels[OC_COLLECTIVES];
	uint64_t left[OC_COLLECTIVES]; /* calls; atomic, and not in `back` yet */
	struct back *back;
	unsigned int backs, room;
	pthread_mutex_t lock; /* guards back */
} stats = { .lock = PTHREAD_MUTEX_INITIALIZER };

void oci_stats_fork_child(void)
{
	pthread_mutex_init(&stats.lock, NULL);
}

/* Do others reach this rank's buffers by mapping them? */
static bool is_mapped(const struct oci_exec *x)
{
	return x->team->mapped &&
	       (oci_arena_holds((uintptr_t)x->send) || oci_arena_holds((uintptr_t)x->recv));
}

static json_t *mapped_json(void)
{
	struct oci_mapping_counts counts = oci_mapping_counts();
	json_t *other = json_array();

	for (enum oci_map_miss why = 0; why < OCI_MISSES; why++) {
		struct oci_map_misses missed = oci_map_misses(why);

		if (missed.copies)
			json_array_append_new(other, json_pack("{s:s, s:I, s:I}", "reason",
							       oci_map_miss_text(why), "copies",
							       (json_int_t)missed.copies, "bytes",
							       (json_int_t)missed.bytes));
	}
	return json_pack("{s:I, s:I, s:I, s:o}", "peers", (json_int_t)counts.made, "address_space",
			 (json_int_t)counts.bytes, "bytes", (json_int_t)oci_map_moved_bytes(),
			 "by_kernel", other);
}

/* By the kernel module. */
static json_t *kmod_json(void)
{
	struct oci_registration_counts regions = oci_registration_counts();
	struct oci_kmod_counts copies = oci_kmod_counts();

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "bytes", (json_int_t)copies.bytes,
			 "missed_copies", (json_int_t)copies.misses, "regions",
			 (json_int_t)regions.made, "reused", (json_int_t)regions.reused, "refused",
			 (json_int_t)regions.refused, "gone", (json_int_t)regions.gone, "replaced",
			 (json_int_t)regions.replaced);
}

/* The MPI's own. */
static json_t *messages_json(void)
{
	struct oci_map_misses mapped = oci_vm_mapped(), shared;
	json_t *other = json_array();
	uint64_t pushed;

	for (enum oci_vm_miss why = 0; why < OCI_VM_MISSES; why++) {
		struct oci_map_misses missed = oci_vm_missed(why);

		if (missed.copies)
			json_array_append_new(other, json_pack("{s:s, s:I, s:I}", "reason",
							       oci_vm_miss_text(why), "copies",
							       (json_int_t)missed.copies, "bytes",
							       (json_int_t)missed.bytes));
	}
	shared = oci_vm_shared(&pushed);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "copies", (json_int_t)mapped.copies,
			 "bytes", (json_int_t)mapped.bytes, "shared_copies",
			 (json_int_t)shared.copies, "shared_bytes", (json_int_t)shared.bytes,
			 "pushed_bytes", (json_int_t)pushed, "by_kernel", other);
}

/* Of the heap that this process was started with or has loaded. */
static json_t *heap_json(void)
{
	const struct oci_arena *arena = oci_arena_self(false);
	bool there = arena && arena->fd >= 0;
	struct oci_arena_counts counts = { 0 };

	if (there)
		counts = arena->counts();
	return json_pack("{s:i, s:I, s:I, s:I, s:I}", "heaps", there, "bytes_in_use",
			 (json_int_t)counts.used, "most_bytes_in_use", (json_int_t)counts.most,
			 "bytes_given_back", (json_int_t)counts.given_back, "bytes_in_large_pages",
			 (json_int_t)counts.large);
}

/* collective 8 bits, algorithm 8, mechanisms 8, parameter 32; bit 63 so that no key is 0. */
static uint64_t key_of(const struct oci_exec *x)
{
	const struct oci_plan_key *key = &x->plan->key;
	uint64_t moved = x->moved;

	/* A rank that others served, the root of a Bcast: how they did it. */
	if (!moved && x->team->size > 1 &&
	    oci_algorithm(key->collective, key->algorithm)->single_copy)
		moved = is_mapped(x)	     ? OCI_MOVED_MAP :
			x->team->any_kmod    ? OCI_MOVED_KMOD :
			x->team->single_copy ? OCI_MOVED_CMA :
					       OCI_MOVED_SHM;
	return 1ull << 63 | (uint64_t)key->parameter << 24 | moved << 16 |
	       (uint64_t)key->algorithm << 8 | key->collective;
}

static struct oci_count *count_find(struct oci_counts *counts, uint64_t key)
{
	for (unsigned int i = 0; i < counts->used; i++) {
		if (counts->count[i].key == key)
			return &counts->count[i];
	}
	if (counts->used == counts->room) {
		unsigned int room = counts->room ? 2 * counts->room : 16;
		struct oci_count *grown = realloc(counts->count, room * sizeof(*grown));

		if (!grown)
			return NULL;
		counts->count = grown;
		counts->room = room;
	}
	counts->count[counts->used] = (struct oci_count){ .key = key };
	return &counts->count[counts->used++];
}

void oci_counts_add(struct oc_team *team, const struct oci_exec *x)
{
	struct oci_recent *recent = team->recent[x->plan->key.collective];
	struct oci_count *count;

	/* A request may end when the last decision is another one already. */
	if (!recent->counted || recent->moved != x->moved || recent->ready.plan != x->plan) {
		count = count_find(&team->counts, key_of(x));
		if (!count)
			return;
		recent->counted = recent->ready.plan == x->plan;
		recent->moved = x->moved;
		recent->count = (unsigned int)(count - team->counts.count);
	}
	count = &team->counts.count[recent->count];
	count->calls++;
	count->bytes += x->params.bytes;
	count->recovered += x->recovered;
}

static void counts_join(struct oci_counts *to, const struct oci_counts *from)
{
	for (unsigned int i = 0; i < from->used; i++) {
		struct oci_count *count = count_find(to, from->count[i].key);

		if (!count)
			return;
		count->calls += from->count[i].calls;
		count->bytes += from->count[i].bytes;
		count->recovered += from->count[i].recovered;
	}
}

void oci_counts_merge(struct oci_counts *counts)
{
	counts_join(&stats.counts, counts);
	free(counts->count);
	*counts = (struct oci_counts){ 0 };
}

/* Most are the same strings, not equal ones. */
static bool is_same(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

/* With the lock. NULL: no memory. */
static struct back *back_of(const char *collective, const char *reason)
{
	for (unsigned int i = 0; i < stats.backs; i++)
		if (is_same(stats.back[i].collective, collective) &&
		    is_same(stats.back[i].reason, reason))
			return &stats.back[i];
	if (stats.backs == stats.room) {
		unsigned int room = stats.room ? 2 * stats.room : 16;
		struct back *grown = realloc(stats.back, room * sizeof(*grown));

		if (!grown)
			return NULL;
		stats.back = grown;
		stats.room = room;
	}
	stats.back[stats.backs] = (struct back){ collective, reason, 0 };
	return &stats.back[stats.backs++];
}

static void count_backs(const char *collective, const char *reason, uint64_t calls)
{
	struct back *back;

	pthread_mutex_lock(&stats.lock);
	back = back_of(collective, reason);
	if (back)
		back->calls += calls;
	pthread_mutex_unlock(&stats.lock);
}

void oc_count_handed_back(const char *collective, const char *reason)
{
	count_backs(collective, reason, 1);
}

/* Relaxed, as below. */
void oci_count_left(enum oc_collective collective)
{
	__atomic_fetch_add(&stats.left[collective], 1, __ATOMIC_RELAXED);
}

static void add_left(void)
{
	for (int c = 0; c < OC_COLLECTIVES; c++) {
		uint64_t calls = __atomic_exchange_n(&stats.left[c], 0, __ATOMIC_RELAXED);

		if (calls)
			count_backs(oci_collective_name(c), OC_LEFT_TO_MPI, calls);
	}
}

/* Relaxed: they are added up at the end. */
void oc_count_levels(enum oc_collective collective, size_t bytes)
{
	__atomic_fetch_add(&stats.levels[collective].calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stats.levels[collective].bytes, bytes, __ATOMIC_RELAXED);
}

static json_t *levels_json(void)
{
	json_t *list = json_array();

	for (int c = 0; c < OC_COLLECTIVES; c++) {
		uint64_t calls = __atomic_load_n(&stats.levels[c].calls, __ATOMIC_RELAXED);
		uint64_t bytes = __atomic_load_n(&stats.levels[c].bytes, __ATOMIC_RELAXED);

		if (calls)
			json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "collective",
							      oci_collective_name(c), "calls",
							      (json_int_t)calls, "bytes",
							      (json_int_t)bytes));
	}
	return list;
}

void oci_count_back(enum oc_collective collective, const char *reason)
{
	oc_count_handed_back(oci_collective_name(collective), reason);
}

/* "cma", "slot", "cma+shm" ...; "flags" when no byte moved. */
static void mechanism_text(unsigned int moved, char *text, size_t bytes)
{
	static const char *const names[] = { "inline", "slot", "cma", "shm", "map", "kmod" };

	snprintf(text, bytes, "%s", moved ? "" : "flags");
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (moved & 1u << i)
			snprintf(text + strlen(text), bytes - strlen(text), "%s%s",
				 *text ? "+" : "", names[i]);
	}
}

static json_t *count_json(const struct oci_count *count)
{
	enum oc_collective collective = count->key & 0xff;
	const struct oci_algorithm *a = oci_algorithm(collective, count->key >> 8 & 0xff);
	uint32_t parameter = (uint32_t)(count->key >> 24);
	char mechanism[64], name[64];

	mechanism_text(count->key >> 16 & 0xff, mechanism, sizeof(mechanism));
	snprintf(name, sizeof(name), parameter ? "%s:%u" : "%s", a->name, parameter);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "collective",
			 oci_collective_name(collective), "algorithm", name, "mechanism", mechanism,
			 "calls", (json_int_t)count->calls, "bytes", (json_int_t)count->bytes,
			 "recovered", (json_int_t)count->recovered);
}

/* The file that this code is in: it tells through which front end the program was served. */
static json_t *library_name(void)
{
	const char *name = "", *slash;
	json_t *json;
	Dl_info info;

	if (dladdr(&stats, &info) && info.dli_fname)
		name = info.dli_fname;
	slash = strrchr(name, '/');
	json = json_string(slash ? slash + 1 : name);
	return json ? json : json_string("?"); /* its name is no UTF-8 */
}

static json_t *stats_json(int world_rank, int world_size, const char *host)
{
	json_t *served = json_array(), *back = json_array();
	struct oci_counts all = { 0 };

	oci_engine_lock();
	counts_join(&all, &stats.counts);
	for (const struct oc_team *team = oci_engine.teams; team; team = team->next)
		counts_join(&all, &team->counts);
	oci_engine_unlock();
	for (unsigned int i = 0; i < all.used; i++)
		json_array_append_new(served, count_json(&all.count[i]));
	free(all.count);
	add_left();
	pthread_mutex_lock(&stats.lock);
	for (unsigned int i = 0; i < stats.backs; i++)
		json_array_append_new(back, json_pack("{s:s, s:s, s:I}", "collective",
						      stats.back[i].collective, "reason",
						      stats.back[i].reason, "calls",
						      (json_int_t)stats.back[i].calls));
	pthread_mutex_unlock(&stats.lock);
	return json_pack("{s:s, s:o, s:i, s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "onecopy", OC_VERSION, "library", library_name(), "rank", world_rank,
			 "job_ranks", world_size, "pid", (int)getpid(), "host", host, "collectives",
			 served, "two_levels", levels_json(), "handed_back", back, "mapped",
			 mapped_json(), "messages", messages_json(), "heap", heap_json(), "kmod",
			 kmod_json());
}

/*
 * Writes the file beside its place and moves it there, so that others see all of it or none. The
 * directory may be everybody's: what lies at either name, a link perhaps, is not written through.
 */
static int write_whole(const json_t *json, const char *path)
{
	char beside[4096 + 32];
	uint64_t number = 0;
	FILE *file;
	int fd, error = oci_os_random(&number, sizeof(number));

	if (error)
		return error;
	snprintf(beside, sizeof(beside), "%s.%016" PRIx64, path, number);
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file) {
		error = -errno;
		close(fd);
	} else {
		errno = 0;
		if (json_dumpf(json, file, JSON_INDENT(1) | JSON_PRESERVE_ORDER))
			error = errno ? -errno : -EIO;
		if (fclose(file) && !error)
			error = -errno;
	}
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

int oc_stats_write(int world_rank, int world_size)
{
	const char *directory = oci_options()->stats_dir;
	char path[4096], host[256] = "?";
	json_t *json;
	int error;

	if (!directory || !*directory)
		return 0;
	gethostname(host, sizeof(host) - 1);
	/* In PID namespaces of their own ranks of one host may have one number. */
	if (snprintf(path, sizeof(path), "%s/onecopy.%s.%d.%d.json", directory, host, (int)getpid(),
		     world_rank) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	json = stats_json(world_rank, world_size, host);
	if (!json)
		return -ENOMEM;
	error = write_whole(json, path);
	/* Where it is the same for all ranks, or for all of a node, one line is enough. */
	if (error)
		oci_log(world_rank ? OCI_LOG_INFO : OCI_LOG_WARN,
			"cannot write the statistics to %s: %s; ONECOPY_STATS_DIR has to be a folder "
			"of each node (under `onecopy run`: set TMPDIR to one that they share)",
			path, strerror(-error));
	json_decref(json);
	return error;
}
