#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Line coverage of src/ and mpi/ by the unit tests and those under the MPIs: coverage.sh
# [CTEST-ARGUMENT...], `-L unit` for example. Lists the files, least covered last; the last line is
# the figure of all. Tests that fail are named, and counted as far as they came.
set -eu
cd "$(dirname "$0")/.."
command -v gcovr >/dev/null || {
	echo "coverage.sh: gcovr is needed; apt-get install gcovr installs it" >&2
	exit 1
}
build=build/coverage
cmake --preset coverage >/dev/null
cmake --build "$build" -j "$(nproc)"
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" -LE '^time$' -j "$(nproc)" --output-on-failure "$@" || true
gcovr --root . --object-directory "$build" --filter src/ --filter mpi/ --exclude '.*_test\.[ch]' \
	--sort-uncovered --txt "$build/coverage.txt" --print-summary | grep '^lines:' >"$build/lines.txt"
cat "$build/coverage.txt" "$build/lines.txt"
