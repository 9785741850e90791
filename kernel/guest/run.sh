#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Boots Debian's kernel in QEMU (no KVM, no root), loads the module there and runs
# device_test; "run.sh OUT [SECONDS [KDIR]]": so long it throws random calls at the device. KDIR:
# where another kernel was built, one with KASAN, lockdep and kmemleak, say, which is booted instead.
# The last line reads "N passed, N failed".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
seconds=${2:-5}
case $seconds in
'' | *[!0-9]*)
	echo "kmod-check: KMOD_SECONDS takes a whole number of seconds, not '$seconds'" >&2
	exit 2
	;;
esac
kdir=${3:-}

if [ -n "$kdir" ]; then
	version=$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' "$kdir/include/generated/utsrelease.h")
	kernel=$kdir/arch/x86/boot/bzImage
else
	kdir=$(printf '%s\n' /usr/src/linux-headers-*-amd64 | sort -V | tail -n 1)
	version=${kdir#/usr/src/linux-headers-}
	image=$out/image-$version
	kernel=$image/boot/vmlinuz-$version
fi
if [ ! -e "$kernel" ] && [ -n "${3:-}" ]; then
	echo "kmod-check: there is no $kernel: build the kernel there first" >&2
	exit 1
elif [ ! -e "$kernel" ]; then
	echo "kmod-check: fetching linux-image-$version (70 MB)"
	if ! (cd "$out" && apt-get -qq download "linux-image-$version") 2>"$out/download.log"; then
		tail -n 5 "$out/download.log" >&2
		echo "kmod-check: apt-get could not fetch linux-image-$version (its last lines are" \
			"above): is the network reachable, and 'apt-get update' recent?" >&2
		exit 1
	fi
	dpkg -x "$out"/linux-image-"$version"_*.deb "$image"
	rm -f "$out"/linux-image-"$version"_*.deb
fi

echo "kmod-check: building"
module=$out/module-$version
W=1 "$here/../build.sh" "$module" "$kdir" >"$out/build.log" 2>&1 ||
	{ cat "$out/build.log" >&2; exit 1; }
${CC:-cc} -O1 -g -Wall -Wextra -Werror -std=gnu17 -D_GNU_SOURCE -static \
	"$here/device_test.c" -o "$out/device_test"

root=$(mktemp -d "$out/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/bin "$root"/dev "$root"/proc "$root"/sys "$root"/tmp
cp "$(command -v busybox)" "$root/bin/"
cp "$out/device_test" "$root/"
cp "$module/onecopy.ko" "$root/"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox insmod /onecopy.ko && /device_test SECONDS
# Loaded anew, as nothing of it is in use any more.
busybox rmmod onecopy && busybox insmod /onecopy.ko && busybox rmmod onecopy &&
	echo "ok      unloaded and loaded" || echo "FAILED  unloaded and loaded"
# Where the kernel looks for them; what was freed just now is no leak.
if busybox mount -t debugfs debug /sys/kernel/debug && [ -e /sys/kernel/debug/kmemleak ]; then
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	busybox grep -A 12 '^unreferenced' /sys/kernel/debug/kmemleak &&
		echo "FAILED  memory leaked" || echo "ok      no memory leaked"
fi
busybox dmesg | busybox grep -E 'BUG|WARNING|Oops|protection fault|Call Trace|hung' &&
	echo "FAILED  the kernel complained" || echo "ok      no complaint of the kernel's"
busybox poweroff -f
INIT
sed -i "s/SECONDS/$seconds/" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$out/initramfs.gz"

echo "kmod-check: booting Linux $version"
timeout $((seconds * 4 + 1200)) qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -m 2G \
	-smp 4,sockets=2 -object memory-backend-ram,id=a,size=1G \
	-object memory-backend-ram,id=b,size=1G \
	-numa node,cpus=0-1,memdev=a -numa node,cpus=2-3,memdev=b \
	-kernel "$kernel" -initrd "$out/initramfs.gz" \
	-append "console=ttyS0 quiet panic=-1 oops=panic" \
	-display none -serial stdio -monitor none -no-reboot -nic none </dev/null |
	tr -d '\r' | tee "$out/guest.log"
passed=$(grep -c '^ok ' "$out/guest.log" || true)
failed=$(grep -c '^FAILED ' "$out/guest.log" || true)
# A guest that ended early has failed.
grep -q "the kernel" "$out/guest.log" || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
