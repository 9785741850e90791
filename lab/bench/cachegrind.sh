#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Cache misses of a message of the C API, by simulation: for machines that keep their counters to
# themselves, as most virtual ones do. valgrind's cachegrind counts what the two ranks read and write
# by themselves, each with caches of its own (as ranks that share none). It does not see what the
# kernel does for them: for cma, vmsplice and writev that is the copy, so what is counted there is
# what is left for the library. Counted is the difference between runs of more and fewer messages, so
# that neither start nor end is in it, but the verification of each size is: a 256th of a miss a byte.
#
#   lab/bench/cachegrind.sh [BUILD] [BYTES...]     (default: build/release, 65536 4194304)
set -eu

build=${1:-build/release}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 65536 4194304
program=$build/tools/onecopy/onecopy-pingpong
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if ! command -v valgrind >/dev/null; then
	echo "cachegrind.sh: valgrind is not installed (Debian: valgrind)" >&2
	exit 1
fi
if [ ! -x "$program" ]; then
	echo "cachegrind.sh: $program is not there; build onecopy, or name the build folder" >&2
	exit 1
fi

# $1: as the method is asked for, $2: options and sizes; prints "refs D1-misses LL-misses", summed over both ranks
count() {
	env "$1" timeout 100 valgrind --tool=cachegrind --cache-sim=yes --trace-children=yes \
		--cachegrind-out-file="$scratch/out.%p" --log-file="$scratch/log.%p" \
		"$program" --seconds 1e-6 $2 >"$scratch/said" 2>&1 || {
		cat "$scratch/said" >&2
		return 1
	}
	cat "$scratch"/log.* | awk -F: '
		function number(text) { gsub(/[ ,]|\(.*/, "", text); return text }
		/D refs/ { refs += number($2) }
		/D1  misses/ { d1 += number($2) }
		/LLd misses/ { ll += number($2) }
		END { printf "%.0f %.0f %.0f\n", refs, d1, ll }'
	rm -f "$scratch"/log.* "$scratch"/out.*
}

echo "bytes method D1-misses LL-misses (of a message, both ranks; simulated)"
for bytes; do
	for method in shm writev vmsplice cma map; do
		case $method in
		writev | vmsplice) asked=ONECOPY_P2P=$method ;;
		*) asked=ONECOPY_MECHANISM=$method ;;
		esac
		[ $method = map ] && memory=--shared || memory=
		once=$(count "$asked" "$memory --bytes $bytes")
		thrice=$(count "$asked" "$memory --bytes $bytes,$bytes,$bytes")
		# A size takes 1 round trip to verify, 6 to warm up, 5 that are timed: 24 messages.
		echo "$bytes $method $once $thrice" | awk '{
			printf "%d %s %.0f %.0f\n", $1, $2, ($7 - $4) / 48, ($8 - $5) / 48 }'
	done
done
