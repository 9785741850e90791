/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's side: what of our memory the kernel module has pinned for peers.
 *
 * A bounded cache. A region is used by whoever reads the cookie in our segment, in this operation
 * and in later ones, until the memory goes, of which the module tells by the region's status word,
 * or another region needs the place: then the one goes that has been asked for longest ago.
 */
#include "team/registration.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "team/team.h"

/* Entry i has status word i + 1. The first entry is the segment's front, for probes, and stays. */
#define WORDS (OCI_REGISTRATIONS + 1)

static struct {
	pthread_mutex_t lock;
	bool begun;
	int fd; /* the device; below 0: -errno, why there is none */
	ino_t inode;
	uint64_t channels;
	const uint32_t *words;
	uint32_t was[OCI_REGISTRATIONS]; /* of its word, before the region was made */
	uint64_t used[OCI_REGISTRATIONS], uses;
	size_t bytes; /* of all */
	struct oci_registration_counts counts;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -ENODEV };

static struct oci_registration *entry_of(unsigned int i)
{
	return &oci_segment_registrations()[i];
}

static void tell(struct oci_registration *entry, uint64_t address, uint64_t bytes, uint64_t cookie)
{
	uint64_t turn = oci_load_relaxed(&entry->turn);

	oci_store_relaxed(&entry->turn, turn + 1);
	/* Release on each: who sees a new term sees the odd turn. Pairs with the acquires of
	 * oci_registration_find(). */
	oci_store_release(&entry->address, address);
	oci_store_release(&entry->bytes, bytes);
	oci_store_release(&entry->cookie, cookie);
	/* Release: the even turn is seen behind it. */
	oci_store_release(&entry->turn, turn + 2);
}

/* ---- the cache, under the lock --------------------------------------------------------------- */

static void drop(unsigned int i)
{
	struct oci_registration *entry = entry_of(i);

	oci_os_kmod_unregister(own.fd, entry->cookie);
	own.bytes -= entry->bytes;
	tell(entry, 0, 0, 0);
}

static bool is_gone(unsigned int i)
{
	/* Acquire: the kernel has counted it before the call returned that took the memory. */
	return __atomic_load_n(&own.words[i + 1], __ATOMIC_ACQUIRE) != own.was[i];
}

/* The entry that has all of it; -1. Those whose memory is gone leave on the way. */
static int find(uint64_t from, uint64_t to)
{
	int found = -1;

	for (unsigned int i = 1; i < OCI_REGISTRATIONS; i++) {
		const struct oci_registration *entry = entry_of(i);

		if (!entry->cookie)
			continue;
		if (is_gone(i)) {
			own.counts.gone++;
			drop(i);
		} else if (from >= entry->address && to <= entry->address + entry->bytes) {
			found = (int)i;
		}
	}
	return found;
}

/* An entry that is not in use, or -1. */
static int free_entry(void)
{
	for (unsigned int i = 1; i < OCI_REGISTRATIONS; i++)
		if (!entry_of(i)->cookie)
			return (int)i;
	return -1;
}

static bool drop_oldest(void)
{
	unsigned int oldest = 0;

	for (unsigned int i = 1; i < OCI_REGISTRATIONS; i++)
		if (entry_of(i)->cookie && (!oldest || own.used[i] < own.used[oldest]))
			oldest = i;
	if (!oldest)
		return false;
	own.counts.replaced++;
	drop(oldest);
	return true;
}

/* Of what may be locked; more is not asked for. */
static size_t room(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ?
		       SIZE_MAX :
		       limit.rlim_cur;
}

static int make(unsigned int i, uint64_t from, uint64_t to)
{
	uint64_t cookie;
	int error;

	own.was[i] = __atomic_load_n(&own.words[i + 1], __ATOMIC_ACQUIRE);
	error = oci_os_kmod_register(own.fd, from, to - from, true, i + 1, &cookie);
	/* Memory that the owner itself cannot write. */
	if (error == -EFAULT)
		error = oci_os_kmod_register(own.fd, from, to - from, false, i + 1, &cookie);
	if (error)
		return error;
	own.bytes += to - from;
	tell(entry_of(i), from, to - from, cookie);
	return 0;
}

static void add(uint64_t from, uint64_t to)
{
	size_t most = room();
	int error = -ENOMEM;
	int i = -1;

	if (to - from <= most && own.bytes <= most) {
		while (own.bytes > most - (to - from) && drop_oldest())
			;
		do {
			i = free_entry();
			if (i >= 0)
				error = make((unsigned int)i, from, to);
		} while ((i < 0 || error == -ENOMEM) && drop_oldest());
	}
	if (error) {
		own.counts.refused++;
		oci_debug("no registration of %zu KiB (%s): they are copied another way",
			  (size_t)(to - from) >> 10, strerror(-error));
		return;
	}
	own.counts.made++;
	own.used[i] = ++own.uses;
}

/* ---- what others use ------------------------------------------------------------------------- */

static void begin(void)
{
	struct oci_os_kmod_counters counters;
	struct stat file;
	int error = 0;

	own.fd = oci_os_kmod_open();
	if (own.fd < 0)
		return;
	own.words = oci_os_kmod_words(own.fd, WORDS, &error);
	if (own.words)
		error = oci_os_kmod_count(own.fd, &counters);
	if (!error)
		error = make(0, (uintptr_t)oci_segment_base(),
			     (uintptr_t)oci_segment_base() + oci_os_page_bytes());
	if (!error && !fstat(own.fd, &file)) {
		own.inode = file.st_ino;
		own.channels = counters.channels;
		return;
	}
	close(own.fd);
	own.fd = error ? error : -EBADF;
}

void oci_registrations_begin(void)
{
	enum oci_way way = oci_options()->mechanism;

	if (way != OCI_WAY_AUTO && way != OCI_WAY_KMOD)
		return;
	pthread_mutex_lock(&own.lock);
	if (!own.begun)
		begin();
	own.begun = true;
	pthread_mutex_unlock(&own.lock);
}

int oci_registrations_device(void)
{
	return own.fd;
}

uint64_t oci_registrations_channels(void)
{
	return own.channels;
}

void oci_register(uint64_t address, size_t bytes)
{
	uint64_t page = oci_os_page_bytes(), from = address / page * page, to;
	int i;

	if (!bytes || own.fd < 0 || __builtin_add_overflow(address, bytes + page - 1, &to))
		return;
	to = to / page * page;
	pthread_mutex_lock(&own.lock);
	i = find(from, to);
	if (i < 0) {
		add(from, to);
	} else {
		own.counts.reused++;
		own.used[i] = ++own.uses;
	}
	pthread_mutex_unlock(&own.lock);
}

struct oci_registration_counts oci_registration_counts(void)
{
	struct oci_registration_counts counts;

	pthread_mutex_lock(&own.lock);
	counts = own.counts;
	pthread_mutex_unlock(&own.lock);
	return counts;
}

bool oci_registration_find(const struct oci_registration *told, uint64_t address,
			   struct oci_registered *found)
{
	for (unsigned int i = 0; told && i < OCI_REGISTRATIONS; i++) {
		/* Acquire of each, so the turn is read again behind them: pairs with tell(). */
		uint64_t turn = oci_load_acquire(&told[i].turn);
		uint64_t offset = address - oci_load_acquire(&told[i].address);
		uint64_t bytes = oci_load_acquire(&told[i].bytes);
		uint64_t cookie = oci_load_acquire(&told[i].cookie);

		if (turn & 1 || oci_load_relaxed(&told[i].turn) != turn || !cookie ||
		    offset >= bytes)
			continue;
		*found = (struct oci_registered){ cookie, offset, bytes - offset };
		return true;
	}
	return false;
}

/* The regions are the parent's, as is the file, until it is closed here, too. */
void oci_registrations_fork_child(void)
{
	struct stat file;

	pthread_mutex_init(&own.lock, NULL);
	if (own.fd >= 0) {
		oci_os_unmap((void *)(uintptr_t)own.words, WORDS * sizeof(*own.words));
		if (!fstat(own.fd, &file) && file.st_ino == own.inode)
			close(own.fd);
	}
	own.fd = -ENODEV;
	own.words = NULL;
	own.channels = 0;
	own.begun = false;
	own.bytes = 0;
	memset(&own.counts, 0, sizeof(own.counts));
}
