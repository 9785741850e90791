/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/access.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "os/os.h"

/* Asking may take so much of each OCI_ACCESS_NS. */
#define ASK_NS (OCI_ACCESS_NS / 32)
#define RANGES 8

/*
 * What the kernel's copy answers with EFAULT would end the process here, so that is left to the
 * kernel. So is what was not found yet once asking has taken too long, as the text of /proc takes
 * up to 0.4 ms for each mapping of a program that has hundreds.
 */
static struct {
	pthread_mutex_t lock;
	uint64_t since_ns, asked_ns; /* when all was forgotten, and how long was asked since then */
	struct accessible {
		uint64_t from, to;
		bool write;
	} found[RANGES];
	unsigned int next;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* With the lock held, as are those below. */
static void forget(uint64_t now)
{
	memset(memory.found, 0, sizeof(memory.found));
	memory.since_ns = now;
	memory.asked_ns = 0;
}

static bool is_found(uint64_t address, size_t bytes, bool write)
{
	for (unsigned int i = 0; i < RANGES; i++) {
		const struct accessible *a = &memory.found[i];

		if (a->from <= address && address + bytes <= a->to && a->write >= write)
			return true;
	}
	return false;
}

static bool ask(uint64_t address, size_t bytes, bool write)
{
	uint64_t start = oci_clock_ns();
	struct oci_os_range range;
	int error;

	if (memory.asked_ns >= ASK_NS)
		return false;
	error = oci_os_range((void *)(uintptr_t)address, bytes, write, &range);
	memory.asked_ns += oci_clock_ns() - start;
	if (error)
		return false;
	memory.found[memory.next++ % RANGES] = (struct accessible){ range.from, range.to, write };
	return true;
}

bool oci_may_access(uint64_t address, size_t bytes, bool write)
{
	uint64_t now = oci_clock_tick_ns();
	bool found;

	pthread_mutex_lock(&memory.lock);
	if (now - memory.since_ns >= OCI_ACCESS_NS)
		forget(now);
	found = is_found(address, bytes, write) || ask(address, bytes, write);
	pthread_mutex_unlock(&memory.lock);
	return found;
}

void oci_access_fork_child(void)
{
	pthread_mutex_init(&memory.lock, NULL);
	forget(0);
}
