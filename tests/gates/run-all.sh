#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every gate, one line each; what a failing one says follows it.
cd "$(dirname "$0")" || exit 1
failed=0
for gate in *.sh; do
	case $gate in run-all.sh | lib.sh) continue ;; esac
	if output=$("./$gate" 2>&1); then
		echo "ok      $gate"
	else
		failed=$((failed + 1))
		echo "FAILED  $gate"
		echo "$output"
	fi
done
[ "$failed" -eq 0 ]
