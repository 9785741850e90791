#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# watch.sh OC_WATCH OC_HANG: a test that hangs is ended, and every rank's stack and state are told;
# one that goes on, or that waits for a CPU, is not.
set -u
watch=$1 hang=$2
failed=0

# says COUNT WORDS: they are so often in what was said.
says() {
	local count
	count=$(grep -cF -- "$2" <<<"$said")
	[ "$count" -eq "$1" ] && return
	echo "watch.sh: '$2' was said $count times, not $1"
	failed=1
}

for kind in ranks threads; do
	said=$("$watch" --silence 1 "$hang" "$kind" 2>&1) &&
		{ echo "watch.sh: $kind that hang have status 0"; failed=1; }
	says 1 "oc_watch: $hang hangs and is ended"
	says 1 "    stays_out (hang.c:"
	says 2 "    comes_alone (hang.c:"
	for rank in 0 1 2; do
		says 1 "  rank $rank of a team of 3, ready: operations below 1"
	done
	says 2 ": bcast of 64 bytes, root 1,"
	says 2 "has not come to it: rank 1"
	[ "$failed" -eq 0 ] || { echo "$said"; exit 1; }
done

# Four times as long as the silence, but it goes on.
if ! said=$("$watch" --silence 1 "$hang" slow 2>&1); then
	echo "watch.sh: ranks that go on were ended:"
	echo "$said"
	exit 1
fi

# Some 10 ms of work, for which it gets no more than a CPU's leavings, on the CPU of one that never
# waits. Without the search for leaks: there the program waits for a process of the sanitizer's to be
# given a CPU, after itself.
cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
taskset -c "$cpu" sh -c 'while :; do :; done' &
other=$!
trap 'kill "$other"' EXIT
if ! said=$(ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 "$watch" --silence 1 \
	taskset -c "$cpu" "$hang" work 2>&1); then
	echo "watch.sh: a process that waits for a CPU was ended:"
	echo "$said"
	exit 1
fi
echo "watch: hanging ranks and threads are told and ended; slow and starved ones are not"
