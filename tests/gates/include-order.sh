#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who may include whom: base < os < topo < team < copy < plan < coll < api. `pattern` and `model`
# stay pure. The laboratory, which no job runs, looks into the library, never the other way
# (docs/adr/0009). mpi/ and tools/ see the installed headers and collectives.h only, mpi/ the log
# and the shelf, tools/ the laboratory, too. Tests may include anything. The installed header
# includes nothing of ours, and collectives.h only that one, so the layers whose types they name may
# use them.
. "$(dirname "$0")/lib.sh"

# Folders that a folder of src/ or lab/ may include from, those of src/ without their `src/`. A name
# that ends in .h is one header.
declare -A may=(
	[base]="base onecopy/collectives.h"
	[os]="base os"
	[heap]="base heap os/cgroup.h os/object.h os/os.h"
	[topo]="base os topo"
	[team]="base os topo team onecopy/onecopy.h"
	[copy]="base os heap topo team copy onecopy/onecopy.h"
	[pattern]="base pattern"
	[model]="base model"
	[plan]="base os topo team copy pattern plan onecopy/onecopy.h onecopy/collectives.h"
	[p2p]="base os heap topo team copy model p2p onecopy/onecopy.h"
	[graph]="base graph onecopy/graph.h onecopy/onecopy.h"
	[coll]="base os topo team copy pattern model plan coll onecopy/onecopy.h"
	[api]="base os heap topo team copy pattern model plan p2p coll api onecopy/onecopy.h"
	[lab/experiment]="lab/experiment lab/harness"
	[lab/harness]="lab/harness onecopy/onecopy.h"
	[lab/check]="topo plan coll graph/packed.h lab/check onecopy/graph.h"
	[lab/inspect]="base os heap copy model plan coll api lab/check/op_text.h lab/inspect lab/topo lab/virtual onecopy/onecopy.h"
	[lab/mock]="copy lab/mock"
	[lab/topo]="base topo lab/topo"
	[lab/tune]="base os model lab/harness lab/topo lab/tune copy/memcpy.h onecopy/onecopy.h"
	[lab/virtual]="model plan coll lab/check/walk.h lab/virtual"
)

# by_table FILE LINE INCLUDED
by_table() {
	local part folder=${1#*/} top=${3%%/*}
	folder=${1%%/*}/${folder%%/*}
	part=${folder#src/}
	if [ -z "${may[$part]:-}" ]; then
		violation "$1" "$2" "$folder is not in the table of tests/gates/include-order.sh"
		return
	fi
	[ "$top" = "$3" ] && [ -f "$folder/$3" ] && return # beside the file
	if [ "$top" = lab ]; then
		top=${3%/*}
	else
		[ "$top" = onecopy ] || [ -e "src/$top" ] || return # a system header
	fi
	[[ " ${may[$part]} " == *" $top "* || " ${may[$part]} " == *" $3 "* ]] && return
	violation "$1" "$2" "$folder may not include \"$3\", only from: ${may[$part]}"
}

# outside_library FILE LINE INCLUDED
outside_library() {
	local allowed="onecopy/onecopy.h, onecopy/collectives.h, onecopy/graph.h"
	case $1 in
	mpi/*) allowed+=", base/log.h, base/shelf.h" ;;
	tools/*) allowed+=" or of the laboratory" ;;
	esac
	case $3 in
	onecopy/onecopy.h | onecopy/collectives.h | onecopy/graph.h) return ;;
	lab/*) [[ $allowed == *laboratory* ]] && return ;;
	base/log.h | base/shelf.h) [[ $allowed == *base* ]] && return ;;
	onecopy/*) ;;
	*) [[ $3 == *../* ]] || [ -e "src/$3" ] || return ;;
	esac
	violation "$1" "$2" "may not include \"$3\": of onecopy only $allowed"
}

while IFS=: read -r file line included; do
	case $file in
	*_test.[ch] | lab/bench/*) ;;
	src/*/* | lab/*/*) by_table "$file" "$line" "$included" ;;
	mpi/* | tools/*) outside_library "$file" "$line" "$included" ;;
	esac
done < <(tracked_files '^(src|lab|mpi|tools)/.*\.[ch]$' |
	xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*include' |
	sed -nE 's/^([^:]*:[0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">].*/\1:\2/p')
finish
