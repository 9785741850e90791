/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor `kmod`: the kernel module (kernel/, docs/adr/0035) runs a graph in threads of the
 * kernel's, each step as soon as a socket has bytes or room. Unlike io_uring it has the whole
 * graph, CALCs of integers too, so nothing waits for the program. It is told by words of memory
 * that it shares with us.
 *
 * Which lanes are the run's is said here, as for every executor: a lane is granted by its word, and
 * passed on when the word says that it is over.
 *
 * What the module refuses (floating point, AF_UNIX, memory that may not be pinned) is run by
 * io_uring instead.
 */
#include "base/log.h"
#include "base/options.h"
#include "graph/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/onecopy.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Word 0 counts memory that has gone, or may have. */
enum { GONE, STATUS, LANES };

struct oci_kmod {
	int fd;
	uint32_t *words;
	size_t words_bytes;
	uint32_t gone; /* words[GONE] when its memory was pinned */
	bool issued;
};

/* The same bytes go to every executor. */
#define SAME(mine, theirs)                                                  \
	_Static_assert(offsetof(struct oci_graph_node, mine) ==             \
			       offsetof(struct onecopy_graph_node, theirs), \
		       #mine)
_Static_assert(sizeof(struct oci_graph_head) == sizeof(struct onecopy_graph_head), "head");
_Static_assert(sizeof(struct oci_graph_node) == sizeof(struct onecopy_graph_node), "node");
_Static_assert((int)OCI_GRAPH_MAGIC == ONECOPY_GRAPH_MAGIC, "magic");
_Static_assert((int)OCI_GRAPH_VERSION == ONECOPY_GRAPH_VERSION, "version");
_Static_assert((int)OCI_GRAPH_CALC == ONECOPY_GRAPH_CALC, "kinds");
_Static_assert((int)OC_GRAPH_XOR == ONECOPY_CALC_XOR, "operations");
_Static_assert((int)OC_GRAPH_FLOAT == 8, "types");
_Static_assert(sizeof(struct oc_graph_buffer) == sizeof(struct onecopy_piece), "buffers");
SAME(peer, peer);
SAME(from, from);
SAME(offset, offset);
SAME(from_offset, from_offset);
SAME(count, count);
SAME(edges_end, edges_end);

/* ---- is there one? ----------------------------------------------------------------------------
 */

static char refusal[256];

static int tell(int fd, uint32_t what)
{
	struct onecopy_graph_run call = { .size = sizeof(call), .what = what };

	return ioctl(fd, ONECOPY_GRAPH_RUN, &call) ? -errno : 0;
}

/* False: there is no descriptor or memory for it now, which says nothing of later. Else the refusal
 * is for ever. */
static bool try_module(void)
{
	int fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return false;
	if (fd < 0) {
		snprintf(
			refusal, sizeof(refusal),
			"there is no /dev/onecopy for this process (%s); build the module, load it "
			"(modprobe onecopy), and let the process have the device, see "
			"kernel/README.md",
			strerror(errno));
	} else {
		/* There is no graph to run, which a module that has the call says. */
		if (tell(fd, ONECOPY_GRAPH_LOOK) != -EINVAL)
			snprintf(refusal, sizeof(refusal), "%s",
				 "the module of /dev/onecopy is of a release that ran no graphs; "
				 "load the one of this release");
		close(fd);
	}
	if (*refusal)
		oci_log(oci_options()->async == OCI_ASYNC_KMOD ? oci_option_warning_level() :
								 OCI_LOG_INFO,
			"graph: %s; io_uring runs graphs instead", refusal);
	return true;
}

const char *oc_graph_kmod_refusal(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool known;
	const char *why;

	pthread_mutex_lock(&lock);
	known = known || try_module();
	why = !known   ? "no descriptor or memory is left for /dev/onecopy; raise ulimit -n" :
	      *refusal ? refusal :
			 NULL;
	pthread_mutex_unlock(&lock);
	return why;
}

/* ---- prepared ---------------------------------------------------------------------------------
 */

void oci_kmod_free(struct oc_graph_run *run)
{
	struct oci_kmod *kmod = run->kmod;

	if (!kmod)
		return;
	/* A child may have the file, so that this does not end it. */
	tell(kmod->fd, ONECOPY_GRAPH_CANCEL);
	if (kmod->words)
		munmap(kmod->words, kmod->words_bytes);
	close(kmod->fd);
	free(kmod);
	run->kmod = NULL;
}

static int map_words(struct oci_kmod *kmod, uint32_t lanes)
{
	const size_t page = 4096;
	void *words;

	kmod->words_bytes = ((LANES + (size_t)lanes) * sizeof(uint32_t) + page - 1) / page * page;
	if (kmod->words_bytes > ONECOPY_STATUS_BYTES_MOST)
		return -E2BIG;
	words = mmap(NULL, kmod->words_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kmod->fd, 0);
	if (words == MAP_FAILED)
		return -errno;
	kmod->words = words;
	return 0;
}

/* Of its links it gets those that it uses. */
static int make_graph(const struct oc_graph_run *run, const struct oci_kmod *kmod)
{
	const struct oc_graph_links *links = run->links;
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = links->owner_wake };
	int *sockets = malloc((links->peers + !links->peers) * sizeof(*sockets));
	struct onecopy_graph_create call = { .size = sizeof(call),
					     .packed = (uintptr_t)run->packed,
					     .packed_bytes = run->packed_bytes,
					     .sockets = (uintptr_t)sockets,
					     .buffers = (uintptr_t)run->buffers,
					     .socket_count = links->peers,
					     .buffer_count = run->buffer_count,
					     .word = STATUS,
					     .lanes = LANES };
	int err = 0;

	if (!sockets)
		return -ENOMEM;
	for (uint32_t p = 0; p < links->peers; p++)
		sockets[p] = -1;
	for (uint32_t i = 0; i < run->lane_count; i++)
		sockets[run->lanes[i] / 2] = links->sockets[run->lanes[i] / 2];
	if (ioctl(kmod->fd, ONECOPY_NOTIFY, &notify) ||
	    ioctl(kmod->fd, ONECOPY_GRAPH_CREATE, &call))
		err = -errno;
	free(sockets);
	return err;
}

static const char *reason(int err)
{
	switch (err) {
	case -EOPNOTSUPP:
		return "the kernel computes no floating point, no operations of the program and no "
		       "copies of bytes onto themselves";
	case -EPROTONOSUPPORT:
		return "its links are not TCP";
	case -ENOMEM:
		return "its buffers may not be pinned; raise ulimit -l";
	case -E2BIG:
		return "it has more nodes, edges, peers or buffers than the module takes";
	default:
		return strerror(-err);
	}
}

static int create(struct oc_graph_run *run)
{
	struct oci_kmod *kmod = calloc(1, sizeof(*kmod));
	int err;

	if (!kmod)
		return -ENOMEM;
	kmod->fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	if (kmod->fd < 0) {
		err = -errno;
		free(kmod);
		return err;
	}
	run->kmod = kmod;
	err = map_words(kmod, run->lane_count);
	if (!err)
		err = make_graph(run, kmod);
	if (err)
		oci_kmod_free(run);
	else
		kmod->gone = __atomic_load_n(&kmod->words[GONE], __ATOMIC_RELAXED);
	return err;
}

/* Does it say nothing of the next time? */
static bool passes(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ESTALE || err == -EINTR;
}

int oci_kmod_prepare(struct oc_graph_run *run)
{
	struct oci_kmod *kmod = run->kmod;
	int err = 0;

	/* What became of its memory is seen when it is pinned anew. */
	if (kmod && __atomic_load_n(&kmod->words[GONE], __ATOMIC_RELAXED) != kmod->gone)
		oci_kmod_free(run);
	if (!run->kmod && !run->kmod_refused) {
		err = create(run);
		if (err)
			oci_info("graph: io_uring runs one instead of the module: %s", reason(err));
		run->kmod_refused = passes(err) ? 0 : err;
	}
	if (err || run->kmod_refused)
		return err ?: run->kmod_refused;
	/* The kernel does not look at them before it is issued. */
	memset(run->kmod->words + STATUS, 0, (1 + (size_t)run->lane_count) * sizeof(uint32_t));
	run->kmod->issued = false;
	return 0;
}

/* ---- while it runs ----------------------------------------------------------------------------
 */

const uint32_t *oci_kmod_word(const struct oc_graph_run *run)
{
	return run->kmod->issued ? &run->kmod->words[STATUS] : NULL;
}

/* Grants what has become the run's, passes on what it is done with. Was a lane granted? */
static bool look_at_lanes(struct oc_graph_run *run)
{
	bool granted = false;

	for (uint32_t i = 0; i < run->lane_count; i++) {
		uint32_t *word = &run->kmod->words[LANES + i];
		/* Acquire: pairs with the kernel's release: the bytes came first. */
		uint32_t state = __atomic_load_n(word, __ATOMIC_ACQUIRE);

		if (state == ONECOPY_LANE_OVER && run->lane_at[i] != OCI_GRAPH_NONE) {
			oci_run_lane_over(run, i);
		} else if (!state && run->links->owner[run->lanes[i]] == run) {
			/* Release: what others did there came first. */
			__atomic_store_n(word, ONECOPY_LANE_GRANTED, __ATOMIC_RELEASE);
			granted = true;
		}
	}
	return granted;
}

static void fail(struct oc_graph_run *run, int err)
{
	for (uint32_t i = 0; i < run->lane_count; i++)
		if (run->kmod->words[LANES + i] & ONECOPY_STATUS_FAILED)
			oci_links_fail_peer(run->links, run->lanes[i] / 2, run->lanes[i] % 2, err);
	oci_links_fail(run->links, err, "the kernel module has ended a graph: %s", strerror(-err));
}

void oci_kmod_move(struct oc_graph_run *run)
{
	struct oci_kmod *kmod = run->kmod;
	/* Acquire: pairs with the kernel's release, as do the lanes' words, which came before. */
	uint32_t status = __atomic_load_n(&kmod->words[STATUS], __ATOMIC_ACQUIRE);
	bool granted = look_at_lanes(run);
	int err = 0;

	run->stale = false;
	if (status & ONECOPY_STATUS_FAILED)
		fail(run, -(int)(status & ~ONECOPY_STATUS_FAILED));
	else if (status == ONECOPY_STATUS_DONE)
		oci_run_end(run, OCI_GRAPH_IDLE);
	else if (!run->links->error && (granted || !kmod->issued))
		err = tell(kmod->fd, kmod->issued ? ONECOPY_GRAPH_LOOK : ONECOPY_GRAPH_ISSUE);
	if (status == ONECOPY_STATUS_DONE)
		return;
	kmod->issued = true;
	if (err)
		oci_links_fail(run->links, err, "the kernel module does not run a graph: %s",
			       strerror(-err));
	if (!run->links->error)
		return;
	/* No buffer is written any more when it is told. */
	tell(kmod->fd, ONECOPY_GRAPH_CANCEL);
	oci_run_end(run, run->links->error);
}
