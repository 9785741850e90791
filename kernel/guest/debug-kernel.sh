#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Builds a kernel that finds what a module does wrong (debug.config: KASAN, lockdep,
# kmemleak and others), once: "debug-kernel.sh FOLDER [lockstat]". FOLDER/build is then what run.sh, mpi.sh
# and faults.sh take for KDIR; with lockstat FOLDER/build-lockstat, with lockstat.config behind
# debug.config, what contention.sh does; FOLDER/source is Debian's source of the kernel whose headers are
# installed. 2 GB, 12 minutes of two CPUs; nothing where it is there already and its configuration is the
# same. Who finds another at it waits. Needs the packages flex, bison, bc, libelf-dev, libssl-dev, xz-utils.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?"usage: debug-kernel.sh FOLDER [lockstat]"}"
folder=$(cd "$1" && pwd)
build=$folder/build${2:+-$2}
configs=("$here/debug.config" ${2:+"$here/$2.config"})
[ -e "${configs[-1]}" ] || { echo "kmod-check: there is no ${configs[-1]}" >&2; exit 2; }
headers=$(printf '%s\n' /usr/src/linux-headers-*-common | sort -V | tail -n 1)
series=$(basename "$headers" | cut -d- -f3 | cut -d. -f1,2)

say() {
	echo "kmod-check: $*"
}

# One at a time: who comes second finds it built.
exec 9>"$folder/lock"
flock -n 9 || { say "it is being built by another: waiting"; flock 9; }

# run LOG COMMAND...: its last lines, if it fails.
run() {
	local log=$folder/$1
	shift
	"$@" >"$log" 2>&1 && return
	tail -n 15 "$log" >&2
	echo "kmod-check: '${*:0:4} ...' failed (its last lines are above; all of it is in $log)" >&2
	exit 1
}

if [ ! -e "$folder/source/Makefile" ]; then
	say "fetching linux-source-$series (140 MB)"
	(cd "$folder" && run fetch.log apt-get -qq download "linux-source-$series")
	say "unpacking it (1.4 GB)"
	dpkg -x "$folder"/linux-source-"$series"_*.deb "$folder/package"
	rm -rf "$folder/unpacked"
	mkdir "$folder/unpacked"
	tar -xJf "$folder/package/usr/src/linux-source-$series.tar.xz" -C "$folder/unpacked" \
		--strip-components=1
	mv "$folder/unpacked" "$folder/source"
	rm -rf "$folder/package" "$folder"/linux-source-"$series"_*.deb
fi
if cat "${configs[@]}" | cmp -s - "$build.config" && [ -e "$build/Module.symvers" ]; then
	exit 0
fi
rm -rf "$build"
mkdir "$build"
cd "$build"
run config.log make -C "$folder/source" O="$build" tinyconfig
run config.log "$folder/source/scripts/kconfig/merge_config.sh" -m .config "${configs[@]}"
run config.log make olddefconfig
missing=$(grep '^CONFIG_' "${configs[-1]}" | grep -vxFf .config || true)
if [ -n "$missing" ]; then
	echo "kmod-check: Linux $series does not take from ${configs[-1]##*/}:" $missing >&2
	exit 1
fi
begin=$(date +%s)
say "building it: 12 minutes of two CPUs"
run build.log make -j"$(nproc)" bzImage modules
cat "${configs[@]}" >"$build.config"
say "built in $((($(date +%s) - begin) / 60)) minutes"
