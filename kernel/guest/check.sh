#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. All tests of the module, `make kmod-check`: "check.sh OUT [PART...]", else all parts:
#
#   kernel  builds the kernel of debug, kasan, faults and static (debug-kernel.sh), once
#   debug   the module's tests where KASAN, lockdep and kmemleak look on; random calls for 10 minutes
#           of them (KMOD_DEBUG_SECONDS)
#   mpi     MPI programs over it, in a guest of KMOD_CPUS (8) CPUs, two a node
#   kasan   some of these on the kernel of debug
#   faults  one seeded fault after the other, each of which the tests must find
#   arm64   its tests over real DMA engines, on arm64
#   guest   its tests in a guest with Debian's kernel
#   static  sparse, coccinelle, checkpatch, dkms, the rule for udev
#   locks   how often locks are taken while others read, on a kernel of its own (debug-kernel.sh)
#
# Installs what it needs. Behind the first one KMOD_JOBS parts run at a time (2, as a guest that
# waits leaves a CPU idle), each in OUT/PART, with its output in OUT/PART.log; what they say is shown
# behind their names, and each minute what is under way. The kernel is built in KMOD_CACHE (else
# ~/.cache/onecopy/kernel). KMOD_SECONDS: of random calls in guest; KDIR: a kernel that was built, for
# guest and mpi; KMOD_TESTS: those of mpi and kasan, as mpi.sh has them, separated by ";";
# KMOD_BYTES: as mpi.sh has it. The last line reads "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
mkdir -p "${1:?"usage: check.sh OUT [PART...]"}"
out=$(cd "$1" && pwd)
shift
all=(kernel debug mpi faults kasan arm64 guest static locks)
[ $# -gt 0 ] || set -- "${all[@]}"
cache=${KMOD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onecopy/kernel}
jobs=${KMOD_JOBS:-2}
guest=kernel/guest
# Debian's kernel, and what is built for it, is there once for all.
export KMOD_SHARED=$out

for part in "$@"; do
	[[ " ${all[*]} " == *" $part "* ]] ||
		{ echo "kmod-check: there is no part '$part', but ${all[*]}" >&2; exit 2; }
done

# Every algorithm through every layout and form, with 2, 4 and 8 ranks by both MPIs: by the CPU, by
# engines, and with refusals; and more, mpi.sh has what the marks mean.
mpi_tests() {
	local mark mpi by ranks

	printf 'src/%s\n' kmod_test message_limits_test graph_module_test graph_test reduce_test \
		failure_test
	printf 'lab/%s\n' graph_check_test tune_test module_test
	for mark in "" "+ " "! "; do
		by=kmod
		[ "$mark" != "! " ] || by=kmod+cma
		for ranks in 2 4 8; do
			printf '%s\n' "${mark}table $ranks $by" "$mark--mpich table $ranks $by"
		done
	done
	for mpi in "" "--mpich "; do
		echo "${mpi}bytes 4 kmod"
		echo "! ${mpi}bytes 3 kmod+cma"
		echo "${mpi}program requests 3 kmod"
		echo "${mpi}denied 2 kmod"
		echo "${mpi}soak 4 60 3 kmod"
		echo "${mpi}kill_random 40 1 kmod"
	done
	echo "! soak 4 60 5 kmod"
}

mpi_targets=({tests/mpi,mpi/ompi,mpi/pmpi,src/heap/dso,tools/onecopy}/all kmod_test message_limits_test
	{tune,module}_test {graph_module,graph,reduce,failure,graph_check}_test)

# Only those that take seconds above: what takes longer there takes minutes with KASAN.
kasan_tests() {
	printf 'src/%s\n' kmod_test message_limits_test graph_module_test
	printf 'lab/%s\n' graph_check_test module_test
	printf '%s\n' "bytes 2 kmod" "--mpich bytes 2 kmod" "! bytes 3 kmod+cma"
}

# programs PART KDIR: with what KMOD_TESTS says, else PART_tests.
programs() {
	local tests

	# Of two parts that begin at once the second one finds it built.
	flock "$out/programs.lock" sh -c 'cmake --preset check && cmake --build build/check --target "$@"' \
		sh "${mpi_targets[@]}" >"$out/$1/programs.log" 2>&1 ||
		{ tail -n 20 "$out/$1/programs.log" >&2; return 1; }
	IFS=';' read -r -a tests <<<"${KMOD_TESTS:-$("$1_tests" | paste -sd ';')}"
	KDIR=$2 $guest/mpi.sh "$out/$1" build/check 3 "${tests[@]}"
}

packages_of() {
	case $1 in
	kernel) echo flex bison bc libelf-dev libssl-dev xz-utils ;;
	arm64) echo qemu-system-arm gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross ;;
	static) echo sparse coccinelle dkms kmod ;;
	esac
}

run_part() {
	case $1 in
	kernel) $guest/debug-kernel.sh "$cache" ;;
	guest) $guest/run.sh "$out/guest" "${KMOD_SECONDS:-5}" ${KDIR:+"$KDIR"} ;;
	mpi) programs mpi "${KDIR:-}" ;;
	# With buffers of 128 KiB no engine is asked, whose copies take minutes there; kmod_test asks them.
	kasan) KMOD_BYTES=${KMOD_BYTES:-131072} programs kasan "$cache/build" ;;
	arm64) $guest/arm64.sh "$out/arm64" ;;
	static) $guest/static.sh "$out/static" "$cache/source" ;;
	locks) $guest/debug-kernel.sh "$cache" lockstat && $guest/contention.sh "$out/locks" "$cache/build-lockstat" ;;
	debug) $guest/run.sh "$out/debug" "${KMOD_DEBUG_SECONDS:-600}" "$cache/build" ;;
	faults) $guest/faults.sh "$out/faults" "$cache/build" ;;
	esac
}

begin=$(date +%s)
minutes() {
	echo $((($(date +%s) - ${1:-$begin} + 30) / 60))
}

# How a part ended: OUT/PART.end, its row, which begins with its counts.
run_and_tell() {
	local since good bad status

	since=$(date +%s)
	mkdir -p "$out/$1"
	run_part "$1" 2>&1 | tee "$out/$1.log" | sed -u "s/^/$(printf '%-6s' "$1") | /"
	status=${PIPESTATUS[0]}
	read -r good _ bad _ < <(tail -n 1 "$out/$1.log" | grep -E '^[0-9]+ passed, [0-9]+ failed$' ||
		echo "0 passed, 0 failed")
	[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	printf '%4d passed, %d failed: %s, %d minutes\n' "$good" "$bad" "$1" "$(minutes "$since")" \
		>"$out/$1.end"
}

# What is under way.
tell_progress() {
	local part said=

	for part in "$@"; do
		said+=", $part ($(grep -c '^ok ' "$out/$part.log") ok so far)"
	done
	echo "kmod-check: $(minutes) minutes$said"
}

for part in "$@"; do
	# What is built by debug-kernel.sh.
	[[ " debug kasan faults static locks " != *" $part "* || " $* " == *" kernel "* ]] || set -- kernel "$@"
done
parts=()
packages=(linux-headers-amd64 qemu-system-x86 busybox-static xz-utils)
for part in "${all[@]}"; do
	rm -f "$out/$part.end" "$out/$part.log"
	[[ " $* " == *" $part "* ]] || continue
	parts+=("$part")
	read -r -a more <<<"$(packages_of "$part")"
	packages+=("${more[@]}")
done
cmake/setup-debian.sh "${packages[@]}" && $guest/run.sh "$out" fetch || { echo "0 passed, 1 failed"; exit 1; }

# Only the kernel's build has use for all CPUs: it is alone, as several parts wait for it.
may_begin() {
	[ "$1" = kernel ] || [[ " ${parts[*]} " != *" kernel "* ]] || [ -e "$out/kernel.end" ]
}

begun=" "
for ((turn = 1; ; turn++)); do
	running=() waiting=0
	for part in "${parts[@]}"; do
		if [[ $begun == *" $part "* ]]; then
			[ -e "$out/$part.end" ] || running+=("$part")
		elif [ ${#running[@]} -lt "$jobs" ] && may_begin "$part"; then
			begun+="$part "
			running+=("$part")
			echo "kmod-check: == $part =="
			run_and_tell "$part" </dev/null &
		else
			waiting=$((waiting + 1))
		fi
	done
	[ $((${#running[@]} + waiting)) -gt 0 ] || break
	[ $((turn % 60)) -gt 0 ] || tell_progress "${running[@]}"
	sleep 1
done
# Once more, as others have said much since, with what stood before.
for part in "${parts[@]}"; do
	grep -B 3 '^FAILED ' "$out/$part.log" | sed "s/^FAILED /FAILED  $part:/"
done
passed=0
failed=0
for part in "${parts[@]}"; do
	cat "$out/$part.end"
	read -r good _ bad _ <"$out/$part.end"
	passed=$((passed + good))
	failed=$((failed + bad))
done
echo "kmod-check: $(minutes) minutes in all"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
