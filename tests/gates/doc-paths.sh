#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A path that a document names in backquotes exists, from the tree's root or beside the document.
#
# What counts as a path: a word with a slash whose first part is in the tree, and a bare file name
# ending in .c, .h, .sh or .md (those of system headers excepted). Placeholders, absolute paths,
# build outputs and fenced blocks do not count.
. "$(dirname "$0")/lib.sh"

all_files=$(tracked_files .)

exists() {
	compgen -G "$1" >/dev/null || compgen -G "$2/$1" >/dev/null
}

# check FILE LINE WORD
check() {
	local folder=${1%/*} path=${3%/} first
	[ "$folder" = "$1" ] && folder=.
	path=${path%%:[0-9]*}
	path=${path#./}
	case $path in
	/* | build/* | -* | *[\<\>\$\{\}\=\(\)\|\~\;\,\ \"\']* | *://* | *...* | *NAME* | "") return ;;
	*/*)
		first=${path%%/*}
		exists "$first" "$folder" || return
		exists "$path" "$folder" && return
		;;
	*.c | *.h | *.sh | *.md)
		exists "$path" "$folder" && return
		grep -qE "(^|/)${path//./\\.}\$" <<<"$all_files" && return
		[ -e "/usr/include/$path" ] && return
		case $path in mpi.h | linux.h | \**) return ;; esac
		;;
	*) return ;;
	esac
	violation "$1" "$2" "\`$3\` does not exist"
}

while IFS= read -r document; do
	while IFS=: read -r line word; do
		check "$document" "$line" "$word"
	done < <(awk '
		/^[[:space:]]*```/ { fenced = !fenced; next }
		fenced { next }
		{
			n = split($0, piece, "`")
			for (i = 2; i < n; i += 2)
				print NR ":" piece[i]
		}' "$document")
done < <(tracked_files '\.md$')
finish
