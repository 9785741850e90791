#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each fault that kernel/guest/faults.sh puts into the module finds something there to replace: it
# is tried in guests by `make kmod-check` alone, which takes long.
. "$(dirname "$0")/lib.sh"

seeds=kernel/guest/faults.sh
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
line=0
while IFS= read -r text; do
	line=$((line + 1))
	case $text in
	fault\ *)
		read -r _ name _ file _ <<<"$text"
		begin=$line
		;;&
	*"<<'PERL'")
		substitution=
		reading=true
		;;
	PERL)
		reading=false
		if ! perl -0pe "$substitution" "kernel/$file" >"$scratch" 2>/dev/null ||
			cmp -s "kernel/$file" "$scratch"; then
			violation "$seeds" "$begin" "$name finds nothing in kernel/$file to replace"
		fi
		;;
	*) [ "${reading:-false}" = false ] || substitution+=$text$'\n' ;;
	esac
done < <(cat "$seeds" 2>/dev/null)
[ "$line" -gt 0 ] || violation "$seeds" 1 "there is no such file"

finish
