/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "copy/copy.h"
#include "os/os.h"

const struct oci_copy *oci_copy_mechanism(unsigned int mechanism)
{
	static const struct oci_copy *const table[OCI_MECHANISMS] = {
		[OCI_MECH_CMA] = &oci_copy_cma,
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

int oci_copy_probe_one(const struct oci_copy *copy, pid_t pid, uint64_t nonce_address,
		       const uint8_t nonce[16], uint64_t cell_address, char *why, size_t why_bytes)
{
	uint8_t seen[16] = { 0 };
	struct iovec local = { .iov_base = seen, .iov_len = 16 };
	struct iovec sent = { .iov_base = (void *)(uintptr_t)nonce, .iov_len = 16 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)nonce_address, .iov_len = 16 };
	const char *call = "process_vm_readv";
	ssize_t moved = copy->pull(pid, &local, 1, &remote, 1);

	if (moved == 16 && !memcmp(seen, nonce, 16)) {
		call = "process_vm_writev";
		/* Others may be writing the same. */
		memset(seen, 0, sizeof(seen));
		remote.iov_base = (void *)(uintptr_t)cell_address;
		moved = copy->push(pid, &sent, 1, &remote, 1);
		if (moved == 16)
			moved = copy->pull(pid, &local, 1, &remote, 1);
		if (moved == 16 && !memcmp(seen, nonce, 16))
			return 0;
	}
	explain(moved < 0 ? (int)-moved : EPROTO, call, why, why_bytes);
	return moved < 0 ? (int)moved : -EPROTO;
}

uint32_t oci_copy_probe(pid_t pid, uint64_t nonce_address, const uint8_t nonce[16],
			uint64_t cell_address, char *why, size_t why_bytes)
{
	if (oci_options()->mechanism == OCI_WAY_SHM || oci_options()->mechanism == OCI_WAY_MAP)
		return 0;
	if (oci_copy_probe_one(&oci_copy_cma, pid, nonce_address, nonce, cell_address, why,
			       why_bytes))
		return 0;
	return 1u << OCI_MECH_CMA;
}
