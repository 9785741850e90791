/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "copy/kmod.h"
#include "os/os.h"

const struct oci_copy *oci_copy_mechanism(unsigned int mechanism)
{
	static const struct oci_copy *const table[OCI_MECHANISMS] = {
		[OCI_MECH_CMA] = &oci_copy_cma,
		[OCI_MECH_KMOD] = &oci_copy_kmod,
		[OCI_MECH_SHM] = &oci_copy_shm,
		[OCI_MECH_MAP] = &oci_copy_map,
	};

	return mechanism < OCI_MECHANISMS ? table[mechanism] : NULL;
}

/* Why the kernel refused, and what the user can do about it. */
static void explain(int error, const char *call, char *why, size_t why_bytes)
{
	const char *cause = strerror(error), *remedy = "";
	int scope = oci_os_yama_scope();

	if (error == EPERM && scope >= 2) {
		cause = "EPERM: Yama ptrace_scope is 2 or 3";
		remedy = "; ask the administrator for kernel.yama.ptrace_scope=1";
	} else if (error == EPERM && scope == 1) {
		cause = "EPERM: Yama ptrace_scope is 1 and the peer has not declared us";
		remedy = "; start all ranks under one launcher, or set ONECOPY_PTRACER=any";
	} else if (error == EPERM && !oci_os_dumpable()) {
		cause = "EPERM: this process is not dumpable";
		remedy = "; make the program readable (chmod +r) and not set-uid";
	} else if (error == EPERM) {
		cause = "EPERM: a seccomp filter, another user namespace or a non-dumpable peer";
		remedy =
			"; in Docker use --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined,"
			" and one container for all ranks";
	} else if (error == ENOSYS) {
		cause = "ENOSYS: this kernel or its seccomp filter lacks the call";
		remedy = "; needs Linux 3.2 with CONFIG_CROSS_MEMORY_ATTACH";
	} else if (error == ESRCH || error == EPROTO) {
		cause = "another process has that number here";
		remedy = "; start all ranks in one PID namespace";
	}
	snprintf(why, why_bytes, "%s: %s%s", call, cause, remedy);
}

/* Of the module: what open(), or making a region, or a copy said. */
void oci_copy_explain_kmod(int error, char *why, size_t why_bytes)
{
	const char *text;

	switch (error) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		text = "there is no /dev/onecopy; build the module (make kmod), install it and run "
		       "modprobe onecopy, see kernel/README.md";
		break;
	case EPROTO:
	case ENOTTY:
		text = "/dev/onecopy is another version of the module; load the one of this "
		       "release";
		break;
	case ENOMEM:
		text = "ENOMEM: memory for regions may not be locked; raise ulimit -l";
		break;
	case EPERM:
	case EACCES:
		text = "this process may not open /dev/onecopy; give it to all users (chmod 666), "
		       "or let the container have it (docker run --device /dev/onecopy)";
		break;
	default:
		snprintf(why, why_bytes, "/dev/onecopy: %s", strerror(error));
		return;
	}
	snprintf(why, why_bytes, "%s", text);
}

int oci_copy_probe_one(const struct oci_copy *copy, const struct oci_end *end,
		       uint64_t nonce_address, const uint8_t nonce[16], uint64_t cell_address,
		       char *why, size_t why_bytes)
{
	uint8_t seen[16] = { 0 };
	struct iovec local = { .iov_base = seen, .iov_len = 16 };
	struct iovec sent = { .iov_base = (void *)(uintptr_t)nonce, .iov_len = 16 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)nonce_address, .iov_len = 16 };
	const char *call = "process_vm_readv";
	ssize_t moved = copy->pull(end, &local, 1, &remote, 1);
	int error;

	if (moved == 16 && !memcmp(seen, nonce, 16)) {
		call = "process_vm_writev";
		/* Others may be writing the same. */
		memset(seen, 0, sizeof(seen));
		remote.iov_base = (void *)(uintptr_t)cell_address;
		moved = copy->push(end, &sent, 1, &remote, 1);
		if (moved == 16)
			moved = copy->pull(end, &local, 1, &remote, 1);
		if (moved == 16 && !memcmp(seen, nonce, 16))
			return 0;
	}
	error = moved < 0 ? (int)-moved : EPROTO;
	if (copy == &oci_copy_kmod)
		oci_copy_explain_kmod(error, why, why_bytes);
	else
		explain(error, call, why, why_bytes);
	return -error;
}

static int probe(const struct oci_copy *copy, const struct oci_peer *peer, char *why,
		 size_t why_bytes)
{
	struct oci_end end = { peer->id.pid, oci_peer_registrations(peer), 16, 16 };

	return oci_copy_probe_one(
		copy, &end, (uintptr_t)oci_segment_nonce_at(peer->id.address), peer->id.nonce,
		(uintptr_t)oci_segment_touched_at(peer->id.address), why, why_bytes);
}

/* The device first: without it the peer's registrations say nothing. */
static int probe_kmod(const struct oci_peer *peer, char *why, size_t why_bytes)
{
	int device = oci_registrations_device();

	if (device >= 0)
		return probe(&oci_copy_kmod, peer, why, why_bytes);
	oci_copy_explain_kmod(-device, why, why_bytes);
	return device;
}

uint32_t oci_copy_probe(const struct oci_peer *peer, char *why, size_t why_bytes)
{
	enum oci_way way = oci_options()->mechanism;
	char why_kmod[256] = "";
	uint32_t can = 0;

	if (way == OCI_WAY_SHM || way == OCI_WAY_MAP)
		return 0;
	if (way != OCI_WAY_CMA && !probe_kmod(peer, why_kmod, sizeof(why_kmod)))
		can |= 1u << OCI_MECH_KMOD;
	if (!probe(&oci_copy_cma, peer, why, why_bytes))
		can |= 1u << OCI_MECH_CMA;
	/* What was asked for, and what one would expect, is missed; without the other one there is
	 * nothing to be said. */
	if (way == OCI_WAY_KMOD)
		snprintf(why, why_bytes, "%s", why_kmod);
	else if (can)
		*why = '\0';
	return can;
}
