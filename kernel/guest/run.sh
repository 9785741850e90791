#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Loads the module in a guest and runs device_test; "run.sh OUT [SECONDS [KDIR
# [TEST...]]]": so long it throws random calls at the device, only these tests. KDIR: as boot.sh has
# it. The last line reads "N passed, N failed". "run.sh OUT fetch" only fetches the kernel.
set -eu
. "$(dirname "$0")/boot.sh"
: "${1:?"usage: run.sh OUT [SECONDS [KDIR [TEST...]]], or run.sh OUT fetch"}"
seconds=${2:-5}
case $seconds in
fetch)
	choose_kernel "$1"
	exit
	;;
'' | *[!0-9]*)
	echo "kmod-check: KMOD_SECONDS takes a whole number of seconds, not '$seconds'" >&2
	exit 2
	;;
esac
choose_kernel "$1" "${3:-}"
echo "kmod-check: building"
build_module
build_driver "$here/driver/fake_engine.c"
build_program device_test "$here"/*_test.c
begin_root
cp "$out/device_test" "$driver/fake_engine.ko" "$root/"
[ -z "$image" ] || add_modules loop crc16 crc32c_generic mbcache jbd2 ext4
cat >>"$root/init" <<'INIT'
# Files that a thread of the kernel's was the last to have are closed a little later.
unload() {
	for try in $(busybox seq 100); do
		busybox rmmod onecopy && break
		busybox sleep 0.1
	done
	[ ! -e /sys/module/onecopy ] && busybox rmmod fake_engine
}
# A file system on a disk. A kernel that was built for the guest may have none.
for module in /modules/*.ko; do
	[ ! -e $module ] || busybox insmod $module
done
busybox mkdir /disk
busybox dd if=/dev/zero of=/tmp/disk bs=1M count=8 2>/dev/null
busybox mke2fs -F /tmp/disk >/dev/null && busybox mount -o loop -t ext2 /tmp/disk /disk
busybox insmod /fake_engine.ko channels=40
busybox insmod /onecopy.ko && /device_test WORDS
# Loaded anew, as nothing of it is in use any more; with an engine that takes places of 64 bytes alone,
# and one that cannot be stopped.
unload &&
	busybox insmod /fake_engine.ko align=6 && busybox insmod /onecopy.ko &&
	/device_test 1 engine_parts engine_vectors engine_between_regions &&
	unload &&
	busybox insmod /fake_engine.ko stops=0 && busybox insmod /onecopy.ko &&
	/device_test 1 engine_that_cannot_be_stopped &&
	unload &&
	echo "ok      unloaded and loaded" || echo "FAILED  unloaded and loaded"
# Where the kernel looks for them; what was freed just now is no leak.
if [ -e /sys/kernel/debug/kmemleak ]; then
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox grep -A 12 '^unreferenced' /sys/kernel/debug/kmemleak &&
		echo "FAILED  memory leaked" || echo "ok      no memory leaked"
fi
INIT
complaints >>"$root/init"
sed -i "s/WORDS/$seconds ${*:4}/" "$root/init"
# With KASAN and all, beside other guests on two CPUs, an hour was too short.
boot "$out/guest.log" $((seconds * 4 + (${#image} ? 1200 : 4800))) 4 2 2048
count "$out/guest.log"
