/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy mechanisms: how bytes get from a peer's buffer into mine, or the other way.
 *
 * A mechanism is a file here and one struct oci_copy. Single-copy mechanisms (cma, kmod) move bytes
 * by themselves; shm is two-sided: the owner of the buffer helps, from inside its own wait.
 * Callers use struct oci_transfer, which takes the mechanism that the pair agreed on and finishes
 * by shm what that one cannot: page not readable, permission lost, a short copy.
 */
#ifndef OC_COPY_COPY_H
#define OC_COPY_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "team/team.h"

/* The process at the other end of a copy. */
struct oci_end {
	pid_t pid;
	const struct oci_registration *registrations; /* that it has told; NULL: none */
	size_t whole;  /* bytes that this copy is a part of: decides how they move */
	size_t by_cpu; /* that the CPU copied in all, were they its: whether an engine does */
};

struct oci_copy {
	const char *name;
	const char *what; /* one line for `onecopy info` */
	/*
	 * Copies between the pieces of `local` and those of `remote`, which lie in the other
	 * process. Called by the thread that runs the operation; does not wait for the peer, may
	 * block in the kernel for a page. Any alignment. Returns the bytes moved, from the front
	 * on, which may be fewer than asked for; or -errno when none were (-EPERM, -EFAULT, -ESRCH,
	 * ...). The buffers stay their owners'. Ordered: everything it wrote is visible to whoever
	 * sees a flag that this thread raises afterwards (a streaming copy fences itself). NULL: it
	 * has no copies of one end.
	 */
	ssize_t (*pull)(const struct oci_end *end, const struct iovec *local, unsigned int locals,
			const struct iovec *remote, unsigned int remotes);
	ssize_t (*push)(const struct oci_end *end, const struct iovec *local, unsigned int locals,
			const struct iovec *remote, unsigned int remotes);
};

extern const struct oci_copy oci_copy_cma, oci_copy_kmod, oci_copy_shm, oci_copy_map;

/* By enum oci_mechanism. */
const struct oci_copy *oci_copy_mechanism(unsigned int mechanism);

/*
 * The oci_probe_fn of teams: tries what ONECOPY_MECHANISM allows on a peer by moving bytes. The
 * peer is who it says when its nonce is read at the address that it published.
 */
uint32_t oci_copy_probe(const struct oci_peer *peer, char *why, size_t why_bytes);
/* One mechanism alone, with a nonce that lies there and a cell of 16 bytes for it: 0, or -errno and
 * a sentence with the cause and its remedy. */
int oci_copy_probe_one(const struct oci_copy *copy, const struct oci_end *end,
		       uint64_t nonce_address, const uint8_t nonce[16], uint64_t cell_address,
		       char *why, size_t why_bytes);
/* The same of a device that could not be opened, or whose regions were refused. */
void oci_copy_explain_kmod(int error, char *why, size_t why_bytes);

enum oci_direction { OCI_PULL, OCI_PUSH };

/* ---- transfer ---------------------------------------------------------------------------------
 *
 * Bytes between my buffer and a posted buffer of rank `peer`, in operation `seq`.
 */
struct oci_foreign;

struct oci_transfer {
	uint64_t seq; /* 0: no operation, so the caller sees to buffers of failed teams */
	uint32_t peer;
	enum oci_direction direction;
	uint64_t local;		     /* place of mine, see copy/layout.h */
	uint64_t remote;	     /* place in the peer */
	size_t bytes;		     /* that remain */
	size_t whole;		     /* that this is a part of: decides how they move */
	size_t by_cpu;		     /* see struct oci_end */
	uint32_t moved_by;	     /* bits by enum oci_mechanism: how some of them moved so far */
	struct oci_foreign *foreign; /* layouts of peers fetched in this operation */
	/* Layouts that no operation has: `local` or `remote` is then an offset. NULL: none. */
	const struct oc_layout *mine, *theirs;
	bool alone; /* the peer cannot be asked to help: what cannot be copied is an error */
	/* Ways that are not to be gone; that of the pair is, where no slot is to be had. */
	bool never_mapped, never_by_pair;
	/*
	 * Looks in a row at a peer that is not in the MPI, before what it was to help with is
	 * copied without it; 0: its help is asked for at once, and waited for. And its count of
	 * looks, when last seen.
	 */
	uint32_t patience, missed;
	uint64_t seen;
	bool recovered;	      /* the agreed mechanism failed in mid-operation, and shm took over */
	bool by_shm;	      /* the peer is helping */
	uint64_t turns, turn; /* of the helped copy: in all, and done on my side */
	uint64_t request;     /* number of the request in this operation */
};

/* What a transfer did, for the statistics and the caller. */
enum oci_transfer_result {
	OCI_TRANSFER_DONE = 1,
	OCI_TRANSFER_BLOCKED = 0, /* polled, or waits for the peer: oci_transfer_awaited() */
};

/* Bytes per system call of a single copy: bounds how long a peer's request for help, or the MPI's
 * progress, waits for this thread. */
#define OCI_COPY_PIECE_BYTES ((size_t)4 << 20)

/*
 * Moves as much as it can without waiting: by mapped memory where the peer's buffer lies in its
 * shared heap, else by the mechanism that the pair agreed on, to or from the process that joined
 * the team, never another that has its number now; else by shm. `polled`: one copy at a time.
 *
 * DONE, BLOCKED, or -errno: -EAGAIN is not an error but "no slot to spare for the helped copy, try
 * again"; -ECANCELED: the peer's team has failed, its buffer is not the operation's any more.
 * Others: our team has failed; or, alone, the copy has (-EOPNOTSUPP: the pair has no single copies
 * and this is not mapped), and what remains is still to be copied.
 */
int oci_transfer_run(struct oci_team *team, struct oci_transfer *transfer, bool polled);
/* What a blocked transfer waits for. */
void oci_transfer_awaited(struct oci_team *team, const struct oci_transfer *transfer,
			  struct oci_awaited *awaited);
/*
 * Does the peers' requests of operation `seq` that name this rank; true when any moved. Called by
 * an executor whenever it waits.
 */
bool oci_shm_serve(struct oci_team *team, uint64_t seq);

#endif
