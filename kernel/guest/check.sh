#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. All tests of the module, `make kmod-check`: "check.sh OUT [PART...]", else all parts:
#
#   guest   its tests in a guest with Debian's kernel                          2 minutes
#   mpi     MPI programs over it, in a guest of 8 CPUs and 4 nodes            25 minutes
#   arm64   its tests over real DMA engines, on arm64                          5 minutes
#   static  sparse, coccinelle, checkpatch, dkms                               1 minute
#   debug   its tests where KASAN, lockdep and kmemleak look on; random calls for 10 minutes of them
#           (KMOD_DEBUG_SECONDS)                                              35 minutes
#   faults  one seeded fault after the other, each of which they must find    30 minutes
#
# Installs what it needs. The kernel of the last two is built in KMOD_CACHE once (debug-kernel.sh, 12
# minutes; else in ~/.cache/onecopy/kernel). KMOD_SECONDS: of random calls in guest; KDIR: a kernel
# that was built, for guest and mpi; KMOD_TESTS: those of mpi, as mpi.sh has them, separated by ";".
# The last line reads "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
out=${1:?"usage: check.sh OUT [PART...]"}
shift
[ $# -gt 0 ] || set -- guest mpi arm64 static debug faults
cache=${KMOD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onecopy/kernel}
guest=kernel/guest
passed=0
failed=0
parts=()

# The ranks are as many as the guest's CPUs, or fewer; "! ": regions and copies are refused at random.
default_tests="src/kmod_test;lab/tune_test;bytes 8 kmod;--mpich bytes 4 kmod;table 4 kmod;--mpich table 8 kmod;\
! bytes 3 kmod+cma;! --mpich bytes 4 kmod+cma;! table 4 kmod+cma;! --mpich table 3 kmod+cma;\
program requests 3 kmod;--mpich program requests 3 kmod;denied 4 kmod;--mpich denied 2 kmod;\
soak 4 60 3 kmod;--mpich soak 3 60 4 kmod;! soak 4 60 5 kmod"

packages() {
	cmake/setup-debian.sh linux-headers-amd64 qemu-system-x86 busybox-static xz-utils "$@"
}

debug_kernel() {
	packages flex bison bc libelf-dev libssl-dev && $guest/debug-kernel.sh "$cache"
}

mpi() {
	local tests
	packages && { cmake --preset check && cmake --build build/check; } >"$out/check.log" 2>&1 ||
		{ tail -n 20 "$out/check.log" >&2; return 1; }
	IFS=';' read -r -a tests <<<"${KMOD_TESTS:-$default_tests}"
	KDIR=${KDIR:-} $guest/mpi.sh "$out" build/check 3 "${tests[@]}"
}

run_part() {
	case $1 in
	guest) packages && $guest/run.sh "$out" "${KMOD_SECONDS:-5}" ${KDIR:+"$KDIR"} ;;
	mpi) mpi ;;
	arm64)
		packages qemu-system-arm gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross &&
			$guest/arm64.sh "$out"
		;;
	static) packages sparse coccinelle dkms kmod && debug_kernel && $guest/static.sh "$out" "$cache/source" ;;
	debug) debug_kernel && $guest/run.sh "$out" "${KMOD_DEBUG_SECONDS:-600}" "$cache/build" ;;
	faults) debug_kernel && $guest/faults.sh "$out" "$cache/build" ;;
	*)
		echo "kmod-check: there is no part '$1', but guest, mpi, arm64, static, debug, faults" >&2
		return 2
		;;
	esac
}

mkdir -p "$out"
for part in "$@"; do
	begin=$(date +%s)
	echo "kmod-check: == $part =="
	run_part "$part" 2>&1 | tee "$out/part.log"
	status=${PIPESTATUS[0]}
	took=$((($(date +%s) - begin + 30) / 60))
	read -r good _ bad _ < <(tail -n 1 "$out/part.log" | grep -E '^[0-9]+ passed, [0-9]+ failed$' ||
		echo "0 passed, 0 failed")
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	passed=$((passed + good))
	failed=$((failed + bad))
	parts+=("$(printf '%-7s %4d passed, %d failed, %d minutes' "$part" "$good" "$bad" "$took")")
done
printf '%s\n' "${parts[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
