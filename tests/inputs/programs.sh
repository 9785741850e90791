#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh BUILD: what users type wrong to the benchmarks and examples in BUILD. Each is answered
# by its exit status and a sentence that has both words, at once. `onecopy` itself has
# tests/mpi/driver/input.c.
set -u
build=$1
failed=0
rows=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# expect STATUS WORD WORD PROGRAM [ARGUMENT...]: a program that this build does not have is passed over.
expect() {
	local status=$1 first=$2 second=$3 program=$build/$4 said got
	shift 4
	[ -x "$program" ] || return 0
	rows=$((rows + 1))
	said=$("$program" "$@" 2>&1 </dev/null)
	got=$?
	[ "$got" -eq "$status" ] && [[ $said == *"$first"*"$second"* ]] && return
	failed=1
	printf '%s\n' "${program##*/} $*: expected status $status, '$first' and '$second';" \
		"status $got, it said:" "$said"
}

expect 2 "usage" "LD_PRELOAD" bench/oc_bench_heap
expect 2 "usage" "touch" bench/oc_bench_heap "" "" 1 no-such-work
expect 2 "usage" "rounds" bench/oc_bench_heap "" "" 0
expect 1 "/no/such.so was not preloaded" "path" bench/oc_bench_heap /no/such.so "" 1
expect 2 "'0' is not a number of bytes" "1 to 1024G" tools/onecopy/onecopy-collectives-openmpi --sizes 0
expect 2 "--tolerate and --overlap" "exclude each other" tools/onecopy/onecopy-collectives-openmpi --overlap --tolerate osu
expect 2 "'slow' is not a way to measure" "first-1000, or all" tools/onecopy/onecopy-collectives-openmpi --ways osu,slow
expect 2 "WAY/COLLECTIVE/BYTES" "osu/bcast/1024" tools/onecopy/onecopy-collectives-openmpi --cells osu/bcast
expect 2 "'--slow'" "--quick" bench/oc_bench_engine --slow
expect 2 "--bytes says" "8,64,4096" tools/onecopy/onecopy-pingpong
expect 2 "'8q' is not a number of bytes for --bytes" "0 to 1024G" tools/onecopy/onecopy-pingpong --bytes 8q
expect 2 "--bytes says" "up to 1G" tools/onecopy/onecopy-pingpong --bytes 2G
expect 2 "--seconds takes a number from" "not '0'" tools/onecopy/onecopy-pingpong --bytes 8 --seconds 0
expect 2 "'--ranks' is not an option" "valid: --bytes LIST" tools/onecopy/onecopy-pingpong --bytes 8 --ranks 1
expect 1 "cannot be bound to CPU 1023" "" tools/onecopy/onecopy-pingpong --bytes 8 --cpus 1023
# One source, built for each MPI.
[ -x "$build/examples/cg" ] && folder=examples || folder=examples/mpich
expect 2 "'X' is not S, W, A, B or C" "usage" $folder/intsort --class X
expect 2 "'0' is not a number from 1 to 10000" "usage" $folder/intsort --iterations 0
expect 2 "'many' is not a number from 1 to" "usage" $folder/asp --size many
expect 2 "at most --size" "usage" $folder/asp --size 8 --rows 9
expect 2 "'0' is not a number from 1 to" "usage" $folder/cg --solves 0
expect 2 "unexpected argument 'extra'" "usage" $folder/cg extra
expect 2 "unexpected argument 'extra'" "it takes none" examples/messages extra

[ "$rows" -gt 0 ] || { echo "$build has none of the programs"; exit 1; }
[ "$failed" -eq 0 ] && echo "$rows command lines, answered as they should be"
exit "$failed"
