#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who may include whom: base < os < topo < team < copy < plan < coll < api. `pattern` and `model`
# stay pure; `tune`, which measures, is linked into the command alone (docs/adr/0009). mpi/ and tools/
# see the installed headers only, the command also tune's and topo's. Tests may include anything. The
# installed header includes nothing of ours, so the layers whose types it names may use it.
. "$(dirname "$0")/lib.sh"

# Folders of src/ that a folder may include from. A name with a slash is one header.
declare -A may=(
	[base]="base"
	[os]="base os"
	[heap]="base heap"
	[topo]="base os topo"
	[team]="base os topo team onecopy/onecopy.h"
	[copy]="base os heap topo team copy onecopy/onecopy.h"
	[pattern]="base pattern"
	[model]="base model plan/plan.h"
	[plan]="base os topo team copy pattern plan onecopy/onecopy.h"
	[p2p]="base os heap topo team copy p2p onecopy/onecopy.h"
	[coll]="base os topo team copy pattern model plan coll onecopy/onecopy.h"
	[tune]="base os topo model tune copy/move.h onecopy/onecopy.h"
	[api]="base os heap topo team copy pattern model plan p2p coll api onecopy/onecopy.h onecopy/inspect.h"
)

# in_library FILE LINE INCLUDED
in_library() {
	local part=${1#src/} top=${3%%/*}
	part=${part%%/*}
	if [ -z "${may[$part]:-}" ]; then
		violation "$1" "$2" "src/$part is not in the table of tests/gates/include-order.sh"
		return
	fi
	[ "$top" = "$3" ] && [ -f "src/$part/$3" ] && return # beside the file
	[ "$top" = onecopy ] || [ -e "src/$top" ] || return # a system header
	[[ " ${may[$part]} " == *" $top "* || " ${may[$part]} " == *" $3 "* ]] && return
	violation "$1" "$2" "src/$part may not include \"$3\", only from: ${may[$part]}"
}

# outside_library FILE LINE INCLUDED
outside_library() {
	local allowed=onecopy/onecopy.h
	case $1 in tools/onecopy/*) allowed+=" or onecopy/inspect.h, tune/tune.h, tune/measure.h, tune/steady.h or topo/topo.h" ;; esac
	case $3 in
	onecopy/onecopy.h) return ;;
	tune/tune.h | tune/measure.h | tune/steady.h | topo/topo.h) [[ $allowed == *tune* ]] && return ;;
	onecopy/inspect.h) [[ $allowed == *inspect.h* ]] && return ;;
	onecopy/*) ;;
	*) [[ $3 == *../* ]] || [ -e "src/$3" ] || return ;;
	esac
	violation "$1" "$2" "may not include \"$3\": of onecopy only $allowed"
}

while IFS=: read -r file line text; do
	included=$(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">].*/\1/p' \
		<<<"$text")
	case $file in
	*_test.c | tests/*) ;;
	src/*/*) in_library "$file" "$line" "$included" ;;
	mpi/* | tools/*) outside_library "$file" "$line" "$included" ;;
	esac
done < <(tracked_files '^(src|mpi|tools)/.*\.[ch]$' |
	xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include')
finish
