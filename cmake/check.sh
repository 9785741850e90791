#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every gate and every test, ending with exactly one line "N passed, N failed".
#
# A gate, a build and a ctest test count as one each. What passes prints one line; what fails
# prints its output. CHECK_ONLY="lint release" limits it to some of: lint release asan tsan clang.
set -u
cd "$(dirname "$0")/.." || exit 1

only=${CHECK_ONLY:-lint release asan tsan clang}
jobs=$(nproc)
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

wanted() { [[ " $only " == *" $1 "* ]]; }

# one NAME COMMAND...: counts as one test.
one() {
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok      $name"
		return 0
	fi
	failed=$((failed + 1))
	echo "FAILED  $name"
	cat "$log"
	return 1
}

build() {
	local preset=$1
	shift
	cmake --preset "$preset" && cmake --build "build/$preset" -j "$jobs" "$@"
}

# run_tests NAME CTEST-ARGUMENTS...: adds ctest's counts.
run_tests() {
	local name=$1 total bad
	shift
	ctest --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log"
	read -r bad total < <(sed -nE \
		's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log")
	if [ -z "${total:-}" ]; then
		echo "FAILED  $name: ctest ran no test"
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + total - bad))
	failed=$((failed + bad))
}

if wanted lint; then
	for gate in tests/gates/*.sh; do
		case $gate in */run-all.sh | */lib.sh) continue ;; esac
		one "${gate#tests/}" "$gate"
	done
fi
if wanted release && one "build with gcc -Werror" build release; then
	# Tests of timing and of several ranks share the machine's cores, so one at a time.
	run_tests release --test-dir build/release -j 1
fi
if wanted asan && one "build with address and undefined-behaviour sanitizers" build asan; then
	run_tests asan --test-dir build/asan -L unit -j "$jobs"
fi
if wanted tsan && one "build with thread sanitizer" build tsan --target thread_tests; then
	run_tests tsan --test-dir build/tsan -L thread -j "$jobs"
fi
if wanted clang; then
	one "build with clang -Werror" build clang
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
