#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each source file says its licence in its first three lines.
. "$(dirname "$0")/lib.sh"

pattern='\.(c|h|sh|py|cmake|map|f90|F90)$|(^|/)(CMakeLists\.txt|Makefile|\.clang-format)$|^\.ci/run$'
while IFS= read -r file; do
	case $file in
	kernel/*) wanted='Dual BSD/GPL|BSD-3-Clause' ;;
	*) wanted='BSD-3-Clause' ;;
	esac
	head -n 3 "$file" | grep -qE "SPDX-License-Identifier: .*($wanted)" ||
		violation "$file" 1 "no 'SPDX-License-Identifier: ${wanted%%|*}' in the first three lines"
done < <(tracked_files "$pattern")
finish
