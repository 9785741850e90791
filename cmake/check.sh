#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every gate and every test, ending with exactly one line "N passed, N failed", to which
# ", N skipped" is added when there are such. Above that line stand those that were skipped, with
# their reasons, and those that failed.
#
# A gate, a build and a ctest test count as one each. What passes prints one line; what fails
# prints its output. CHECK_ONLY="lint release" limits it to some of: lint release asan tsan clang kmod.
set -u
cd "$(dirname "$0")/.." || exit 1

only=${CHECK_ONLY:-lint release asan tsan clang kmod}
jobs=$(nproc)
# Two more than there are CPUs: some tests mostly wait.
slots=$((jobs + 2))
passed=0
failed=0
skipped=0
skips=
parts=
failures=
scratch=$(mktemp -d)
log=$scratch/log
trap 'rm -rf "$scratch"' EXIT

for part in $only; do
	case $part in
	lint | release | asan | tsan | clang | kmod) ;;
	*)
		echo "check.sh: '$part' in CHECK_ONLY is none of: lint release asan tsan clang kmod" >&2
		exit 2
		;;
	esac
done

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
	failures+="FAILED  $name"$'\n'
	# Of many tests those that failed, each with what it said last.
	failures+=$(grep -B 2 '^FAILED ' "$log" | sed 's/^/        /'; echo .)
	failures=${failures%.}
	echo "FAILED  $name"
	cat "$log"
	return 1
}

# What was said by what ran in the background, and whether it passed.
show() {
	cat "$1"
	[ -e "$1.ok" ]
}

# skip NAME REASON
skip() {
	skipped=$((skipped + 1))
	skips+="skipped $1: $2"$'\n'
}

# build PRESET [BUILD-ARGUMENT...]: what configure_all has configured.
build() {
	local preset=$1
	shift
	cat "$scratch/configured-$preset"
	[ -e "$scratch/configured-$preset.ok" ] &&
		cmake --build "build/$preset" -j "$jobs" "$@"
}

# In the background, as each takes one CPU and mostly waits for compilers that try one line.
configure_all() {
	local part preset
	for part in $only; do
		preset=$part
		case $part in
		lint | kmod) continue ;;
		release) preset=check ;;
		esac
		{ cmake --preset "$preset" -D OC_WERROR=ON >"$scratch/configured-$preset" 2>&1 &&
			touch "$scratch/configured-$preset.ok"; } &
	done
}

ctest=(ctest --output-on-failure --no-tests=error --test-dir)

# run_tests NAME CTEST-ARGUMENTS...
run_tests() {
	"${ctest[@]}" "build/$1" "${@:2}" 2>&1 | tee "$log"
	count_tests "$1"
}

# count_tests NAME: what ctest said of that build is in the log. Ctest takes a skipped test for a
# passed one, and keeps what such a test said for its own log.
count_tests() {
	local name=$1 total bad test before=$skipped
	read -r bad total < <(sed -nE \
		's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' "$log")
	if [ -z "${total:-}" ]; then
		echo "FAILED  $name: ctest ran no test"
		failed=$((failed + 1))
		return
	fi
	while read -r test; do
		failures+="FAILED  $name/$test"$'\n'
	done < <(sed -n '/^The following tests FAILED:/,$ s|^[[:space:]]*[0-9]* - ||p' "$log")
	while read -r test; do
		skip "$test" "$(awk -v test="$test" '
			/^[0-9]+\/[0-9]+ Testing: / { here = $3 == test }
			here && sub(/^skipped: /, "") { print; found = 1; exit }
			END { if (!found) print "it does not say why" }' \
			"build/$name/Testing/Temporary/LastTest.log")"
	done < <(sed -nE 's/^[[:space:]]*[0-9]+ - ([^ ]+) \(Skipped\).*/\1/p' "$log")
	# Parts of what passed, each reason once; whole ones are above.
	parts+=$(whole=$skips awk -v build="$name" '
		/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
		sub(/^skipped: /, "") && !index(ENVIRON["whole"], "skipped " test ": ") && !seen[test, $0]++ {
			print "skipped in part " build "/" test ": " $0
		}
		END { print "." }' "build/$name/Testing/Temporary/LastTest.log")
	parts=${parts%.} # $() would take the last newline
	passed=$((passed + total - bad - (skipped - before)))
	failed=$((failed + bad))
}

# A tree without libopenmpi-dev has no such tests, and would pass without having run under an MPI.
has_mpi_tests() {
	ctest --test-dir build/check -N -L mpi | grep -qE '^Total Tests: [1-9]' ||
		{ echo "build/check has no test with the label mpi"; false; }
}

# ThreadSanitizer cannot place its shadow memory where the kernel randomizes many address bits
# (vm.mmap_rnd_bits above 28 or so, depending on the compiler's version). Sets `run` to what it
# needs in front.
find_tsan() {
	run=
	echo 'int main(void) { return 0; }' |
		cc -fsanitize=thread -x c - -o "$scratch/probe" || return 1
	"$scratch/probe" && return
	run="setarch -R"
	$run "$scratch/probe"
}

# All gates at once, beside the configuring; what each says is shown in its turn.
configure_all
if wanted lint; then
	gates=()
	for gate in tests/gates/*.sh; do
		case $gate in */run-all.sh | */lib.sh) continue ;; esac
		name=${gate#tests/}
		{ "$gate" >"$scratch/${name##*/}" 2>&1 && touch "$scratch/${name##*/}.ok"; } &
		gates+=("$name")
	done
fi
wait
if wanted lint; then
	for name in "${gates[@]}"; do
		one "$name" show "$scratch/${name##*/}"
	done
fi

# The kernel of the module's guests comes from the network meanwhile.
if wanted kmod && [ "$(uname -m)" = x86_64 ]; then
	{ cmake/setup-debian.sh linux-headers-amd64 qemu-system-x86 busybox-static xz-utils &&
		kernel/guest/run.sh build/kmod fetch; } >"$scratch/kmod" 2>&1 &
	fetching=$!
fi

# build_beside PRESET [BUILD-ARGUMENT...]: by what guests leave of the CPUs, to be called in the
# background; for `show`.
build_beside() {
	chrt --idle -p 0 "$BASHPID"
	build "$@" >"$scratch/built-$1" 2>&1 && touch "$scratch/built-$1.ok"
}

released=false
if wanted release && one "build with gcc -Werror" build check; then
	released=true
	one "tests under an MPI are there" has_mpi_tests
fi
{
	! wanted tsan || build_beside tsan --target thread_tests
	! wanted asan || build_beside asan
} &
! wanted clang || build_beside clang &
# The short part of `make kmod-check`, beside builds, which yield to it: beside tests, or beside each
# other, the CPUs of guests spin for long while they wait for each other.
if ! wanted kmod; then
	:
elif [ "$(uname -m)" != x86_64 ]; then
	skip "the kernel module" "its guest is one of x86-64"
elif ! wait "$fetching"; then
	skip "the kernel module" "$(tail -n 1 "$scratch/kmod")"
else
	tests="src/kmod_test;src/message_limits_test;src/graph_module_test"
	tests+=";bytes 2 kmod;! --mpich bytes 2 kmod+cma"
	KMOD_JOBS=1 KMOD_SECONDS=2 KMOD_CPUS=4 KMOD_BYTES=655360 KMOD_TESTS=$tests \
		one "the kernel module, in guests" kernel/guest/check.sh build/kmod guest mpi
fi
# The rest of the builds: a rank of the tests that yields would give its CPU to a compiler for a tick.
wait
if $released; then
	# Of tests of one thread that say the same in every build, that with sanitizers has more to say.
	left_out="^time$"
	! wanted asan || left_out="^(time|alike)$"
	# Those of several ranks that are heavy run alone, by their property RUN_SERIAL, and first, by COST:
	# between others each would wait until those end. Then those that wait long or take two CPUs; the
	# others fill what they leave. Large pages for what they allocate: where the first touch of a page
	# takes 15 us, big_2 takes 14 s of CPU instead of 39. The sanitizers' tests have small ones.
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 run_tests check -LE "$left_out" -j "$slots"
	# What they are about is time: with nothing beside.
	run_tests check -L "^time$" -j 1
fi
# Those of threads wait most of the time: they run beside the others.
if wanted tsan && one "build with thread sanitizer" show "$scratch/built-tsan"; then
	if find_tsan >"$log" 2>&1; then
		$run "${ctest[@]}" build/tsan -L thread -j 1 >"$scratch/tsan" 2>&1 &
	else
		skip "tests with thread sanitizer" \
			"an empty program does not run with it: $(tail -n 1 "$log")"
	fi
fi
if wanted asan &&
	one "build with address and undefined-behaviour sanitizers" show "$scratch/built-asan"; then
	# Those of ranks count as two, and mostly wait.
	run_tests asan -L unit -j $((2 * jobs))
	# The front ends, in programs of both MPIs. Ranks share the cores, so one at a time.
	run_tests asan -L mpi -j 1
fi
wait
if [ -e "$scratch/tsan" ]; then
	tee "$log" <"$scratch/tsan"
	count_tests tsan
fi
if wanted clang; then
	one "warnings of clang, as errors" show "$scratch/built-clang"
fi

printf '%s' "$skips$parts$failures"
if [ $((passed + failed)) -eq 0 ]; then
	echo "check.sh: nothing ran" >&2
	failed=1
fi
counts="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || counts+=", $skipped skipped"
echo "$counts"
[ "$failed" -eq 0 ]
