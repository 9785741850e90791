# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the gates. A gate prints "file:line: what is wrong" for each violation and exits 1 if
# there was one. GATE_ROOT names another tree to look at (self-test.sh does).
set -u
export LC_ALL=C
gate_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${GATE_ROOT:-$gate_dir/../..}" || exit 1
violations=0

# A gate that sees no file would pass whatever is in the tree. Git refuses a tree of another owner,
# such as one mounted into a container, unless told that it is meant.
tree_files() {
	if [ -e .git ]; then
		git -c safe.directory="$(pwd -P)" ls-files -co --exclude-standard
	else
		find . -type f -not -path './build/*' -printf '%P\n'
	fi
}
if ! all_tree_files=$(tree_files) || [ -z "$all_tree_files" ]; then
	echo "$(basename "$0"): no files are known in $PWD, so nothing was looked at (git's reason, if any, is above)"
	exit 1
fi

# tracked_files PATTERN: what belongs to the tree and whose path matches the extended regex. New
# files count before they are added; what git ignores does not.
tracked_files() {
	sort -u <<<"$all_tree_files" | grep -E "$1" | while IFS= read -r file; do
		[ -f "$file" ] && printf '%s\n' "$file"
	done
}

# violation FILE LINE TEXT
violation() {
	echo "$1:$2: $3"
	violations=$((violations + 1))
}

finish() {
	[ "$violations" -eq 0 ] && exit 0
	echo "$(basename "$0"): $violations to put right"
	exit 1
}
