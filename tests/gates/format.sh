#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# C sources are as .clang-format says. With --fix they (or the files named after it) are made so.
. "$(dirname "$0")/lib.sh"

# Another version formats differently, and would blame sources that are right.
tool=$(command -v clang-format-14 || command -v clang-format)
if ! "${tool:-false}" --version 2>/dev/null | grep -q 'version 14\.'; then
	echo ".clang-format:1: needs clang-format 14 (Debian 12's; cmake/setup-debian.sh installs it)"
	exit 1
fi

mapfile -t sources < <(tracked_files '\.[ch]$')
if [ ${#sources[@]} -eq 0 ]; then
	echo "format.sh: no C source was found in $PWD"
	exit 1
fi
if [ "${1:-}" = --fix ]; then
	shift
	[ $# -gt 0 ] && sources=("$@")
	exec "$tool" -i "${sources[@]}"
fi
if ! output=$("$tool" --dry-run --Werror "${sources[@]}" 2>&1); then
	# The first place of each file: `make fmt` puts all of them right at once.
	awk -F: '/^[^ ]+:[0-9]+:[0-9]+: / { if (!seen[$1]++) print; found = 1; next }
		!found { print }' <<<"$output"
	echo "format.sh: run 'make fmt'"
	exit 1
fi
