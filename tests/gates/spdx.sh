#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each source file says its licence in its first three lines.
. "$(dirname "$0")/lib.sh"

pattern='\.(c|h|sh|py|cmake|map|f90|F90)$|(^|/)(CMakeLists\.txt|Makefile|\.clang-format)$|^\.ci/run$'
while IFS= read -r file; do
	wanted='BSD-3-Clause'
	case $file in kernel/*) wanted='Dual BSD/GPL' ;; esac
	violation "$file" 1 "no 'SPDX-License-Identifier: $wanted' in the first three lines"
done < <(tracked_files "$pattern" | xargs -r -d '\n' awk '
	function judge() { if (file != "" && !said) print file }
	FNR == 1 { judge(); file = FILENAME; said = 0 }
	FNR <= 3 && /SPDX-License-Identifier: .*BSD-3-Clause/ { said = 1 }
	FNR <= 3 && /SPDX-License-Identifier: .*Dual BSD\/GPL/ && file ~ /^kernel\// { said = 1 }
	FNR == 3 { nextfile }
	END { judge() }')
finish
