#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh SOURCE: a user's build stops at errors only, as a compiler that is newer than ours warns of
# more; that of `make check` stops at warnings too.
cd "$1" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# strict PRESET: does each compilation of that preset stop at a warning?
strict() {
	cmake --preset "$1" -B "$scratch/$1" -D BUILD_TESTING=OFF -D OC_NEED_MPI_TESTS=OFF \
		>"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
	ninja -C "$scratch/$1" -t commands | grep -q -- '-Werror'
}

# The first one, by which `make` builds.
preset=$(sed -nE 's/.*cmake --preset ([a-z]+) .*/\1/p' Makefile | head -n 1)
if [ -z "$preset" ]; then
	echo "build.sh: the Makefile names no preset"
	exit 1
fi
if strict "$preset"; then
	echo "build.sh: \`make\` (preset $preset) takes warnings for errors"
	exit 1
fi
if ! strict check; then
	echo "build.sh: \`make check\` lets warnings pass"
	exit 1
fi
echo "build: \`make\` stops at errors only, \`make check\` at warnings too"
