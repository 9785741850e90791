/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor `thread`, as LibNBC has it (KACC, section 2): a thread of the links' that sleeps
 * while nothing can move. Not bound: the scheduler puts it where a CPU is idle.
 */
#include "graph/graph.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

void oci_wake(int eventfd)
{
	uint64_t one = 1;

	/* A full counter wakes as well. */
	if (write(eventfd, &one, sizeof(one)) < 0)
		return;
}

void oci_forget_wake(int eventfd)
{
	uint64_t count;

	if (read(eventfd, &count, sizeof(count)) < 0)
		return; /* it was not that which woke us */
}

static void *drive(void *argument)
{
	enum { MOST = 256, BOUND_MS = 100 };
	struct oc_graph_links *links = argument;
	struct pollfd wanted[MOST];

	oci_links_relock(links);
	while (!links->stop) {
		unsigned int count;
		bool asleep, more;

		/* Before the look, so that what is told during it wakes again. */
		oci_forget_wake(links->thread_wake);
		more = oci_links_move(links, true);
		count = oci_links_wanted(links, true, wanted, MOST);
		asleep = count == 1;
		pthread_mutex_unlock(&links->lock);
		/* With nothing to look for only a wake counts; else bounded, as MOST may hide one.
		 */
		if (!more)
			poll(wanted, count, asleep ? -1 : count == MOST ? 1 : BOUND_MS);
		oci_links_relock(links);
	}
	pthread_mutex_unlock(&links->lock);
	return NULL;
}

int oci_thread_start(struct oc_graph_links *links)
{
	/* A fault in an operation of the program is its handler's. */
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t others, before;
	int err;

	if (links->has_thread)
		return 0;
	/* Signals are the program's threads'. */
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	err = pthread_create(&links->thread, NULL, drive, links);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	links->has_thread = !err;
	return -err;
}

void oci_thread_stop(struct oc_graph_links *links)
{
	if (!links->has_thread)
		return;
	oci_links_lock(links);
	links->stop = true;
	oci_wake(links->thread_wake);
	pthread_mutex_unlock(&links->lock);
	pthread_join(links->thread, NULL);
	links->has_thread = false;
}
