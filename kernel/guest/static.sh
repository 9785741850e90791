#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. What can be said of the module without running it: "static.sh OUT SOURCE". SOURCE: the
# kernel's source, as debug-kernel.sh unpacks it. Builds it with W=1 and sparse, and has coccinelle's
# checks and checkpatch of the kernel look at it; none may have anything to say. Builds it by dkms,
# too. Needs the packages sparse, coccinelle and dkms. The last line reads "N passed, N failed".
set -eu
. "$(dirname "$0")/boot.sh"
usage="usage: static.sh OUT SOURCE"
mkdir -p "${1:?"$usage"}/static"
out=$(cd "$1/static" && pwd)
source=$(cd "${2:?"$usage"}" && pwd)
passed=0
failed=0

# tell NAME: what is on stdin is against it.
tell() {
	local said
	said=$(cat)
	if [ -z "$said" ]; then
		passed=$((passed + 1))
		echo "ok      $1"
	else
		failed=$((failed + 1))
		printf '%s\nFAILED  %s\n' "$said" "$1"
	fi
}

for headers in /usr/src/linux-headers-*-amd64; do
	version=${headers#/usr/src/linux-headers-}
	rm -rf "$out/module"
	W=1 C=1 "$here/../build.sh" "$out/module" "$headers" >"$out/build.log" 2>&1 ||
		echo "it could not be built, see $out/build.log" >>"$out/build.log"
	tell "gcc and sparse, $version" < <(grep -E 'warning|error|could not' "$out/build.log")
done

# As an administrator has it built for each kernel, but for the folders; and of this release.
by_dkms() {
	local release folders=(--dkmstree "$out/dkms/tree" --sourcetree "$out/dkms/source")
	release=$(sed -n 's/^project(onecopy VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")
	rm -rf "$out/dkms"
	mkdir -p "$out/dkms/tree" "$out/dkms/source"
	cp -r "$here/.." "$out/dkms/source/onecopy-$release"
	dkms add "onecopy/$release" "${folders[@]}" &&
		dkms build "onecopy/$release" "${folders[@]}" -k "$version" --kernelsourcedir "$headers" &&
		[ "$(find "$out/dkms/tree" -name 'onecopy.ko*' -exec modinfo -F version {} \;)" = "$release" ]
}
tell "dkms, $version" < <(by_dkms >"$out/dkms.log" 2>&1 || tail -n 15 "$out/dkms.log")

# Its rule names the device as main.c does, and gives it the same mode.
device=$(sed -n '/^static struct miscdevice/,/^}/s/.*\.name = "\(.*\)".*/\1/p' "$here/../main.c")
mode=$(sed -n '/^static struct miscdevice/,/^}/s/.*\.mode = \([0-7]*\).*/\1/p' "$here/../main.c")
tell "udev rule" < <(grep -qx "SUBSYSTEM==\"misc\", KERNEL==\"$device\", .*MODE=\"$mode\"" \
	"$here/../60-onecopy.rules" || echo "60-onecopy.rules has no rule for $device, $mode")

# How each of its checks is run says a line of its own, "Options:". Two are written in OCaml.
rm -rf "$out/tree"
mkdir "$out/tree"
cp -r "$here"/../*.[ch] "$here/../uapi" "$here/../compat" "$here/driver" "$out/tree/"
printf 'void seeded(void *p) { if (p) kfree(p); }\n' >"$out/tree/seeded.c"
checks=0
: >"$out/coccinelle.log"
while read -r check; do
	grep -q 'script:ocaml\|initialize:ocaml' "$check" && continue
	options=$(sed -n 's|^/*// *Options: *||p' "$check" | head -n 1)
	checks=$((checks + 1))
	# Its options are words.
	spatch -D report --no-show-diff --very-quiet --cocci-file "$check" $options --dir "$out/tree" \
		-I "$source/include" >>"$out/coccinelle.log" 2>"$out/coccinelle.err" ||
		{ echo "$check failed"; cat "$out/coccinelle.err"; } >>"$out/coccinelle.log"
done < <(grep -rl 'virtual report' "$source/scripts/coccinelle" | sort)
grep -q 'seeded.c.*kfree\|seeded.c.*NULL check' "$out/coccinelle.log" ||
	echo "a seeded NULL check was not found" >>"$out/coccinelle.log"
tell "coccinelle, $checks checks" < <(grep -v 'seeded\.c:' "$out/coccinelle.log")

# Not of the shape of comments, of version numbers (what compat/ is for) and of strings of two lines.
tell checkpatch < <(for file in "$here"/../{,uapi/linux/,compat/,guest/driver/}*.[ch]; do
	perl "$source/scripts/checkpatch.pl" --no-tree -f --terse --show-types --no-summary \
		--max-line-length=100 \
		--ignore BLOCK_COMMENT_STYLE,LINUX_VERSION_CODE,SPLIT_STRING,CONSTANT_COMPARISON "$file"
done 2>&1)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
