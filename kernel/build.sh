#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Builds the module in a folder of its own: "build.sh OUT [KDIR]". KDIR: the build tree
# or headers of the kernel that it is for; else those of the running one, else the newest installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
kdir=${2:-}

if [ -z "$kdir" ]; then
	kdir=/lib/modules/$(uname -r)/build
	[ -e "$kdir/Makefile" ] ||
		kdir=$(printf '%s\n' /usr/src/linux-headers-*-"$(dpkg --print-architecture)" |
			sort -V | tail -n 1)
fi
if [ ! -e "$kdir/Makefile" ]; then
	echo "onecopy: there are no kernel headers in $kdir; install linux-headers-$(uname -r)," \
		"or name the kernel's build folder: make kmod KDIR=..." >&2
	exit 1
fi
mkdir -p "$out/uapi/linux" "$out/compat"
out=$(cd "$out" && pwd)
kdir=$(cd "$kdir" && pwd)
cd "$here"
for file in Kbuild *.c *.h uapi/linux/*.h compat/*.h; do
	# Kept where it is the same, so that only what has changed is built again.
	cmp -s "$file" "$out/$file" || cp "$file" "$out/$file"
done
make --no-print-directory -j"$(nproc)" -C "$kdir" M="$out" ${W:+W=$W} ${C:+C=$C} modules
echo "$out/onecopy.ko is built for $(modinfo -F vermagic "$out/onecopy.ko" 2>/dev/null ||
	sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' "$kdir/include/generated/utsrelease.h")"
