#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. The module over real DMA engines: QEMU's model of a Xilinx Versal (arm64) has eight,
# and Linux the driver for them, zynqmp_dma. "arm64.sh OUT [SECONDS [TEST...]]": as run.sh has them.
# Debian's kernel has the driver not built: it is built from Debian's source, with a parameter more,
# by which it loses its interrupts, as engines that fail do. Needs the packages qemu-system-arm,
# gcc-12-aarch64-linux-gnu, libc6-dev-arm64-cross and linux-headers-amd64. The last line reads "N
# passed, N failed".
set -eu
. "$(dirname "$0")/boot.sh"
seconds=${2:-5}
mkdir -p "$1"
out=$(cd "$1" && pwd)
common=$(printf '%s\n' /usr/src/linux-headers-*-common | sort -V | tail -n 1)
version=${common#/usr/src/linux-headers-}
version=${version%-common}-arm64
series=$(echo "$version" | cut -d. -f1,2)
shared=${KMOD_SHARED:-$out}
image=$shared/image-$version
compiler=$(printf '%s\n' /usr/bin/aarch64-linux-gnu-gcc-[0-9]* | sort -V | tail -n 1)
export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-

# What apt knows of arm64 is kept apart from what it knows of this machine.
fetch() {
	local apt=(apt-get -qq -oAPT::Architecture=arm64 -oAPT::Architectures=arm64
		-oDir::State::Lists="$out/apt/lists" -oDir::Cache="$out/apt/cache"
		-oDir::State::status=/dev/null)

	mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial"
	(cd "$out/apt" && "${apt[@]}" update && "${apt[@]}" download "linux-image-$version" \
		"linux-headers-$version" busybox-static && apt-get -qq download "linux-source-$series")
}

if [ ! -e "$image/ready" ]; then
	echo "kmod-check: fetching linux-image-$version and its source (200 MB)"
	fetch >"$out/download.log" 2>&1 || {
		tail -n 5 "$out/download.log" >&2
		echo "kmod-check: apt-get could not fetch the kernel for arm64 (its last lines are" \
			"above): is the network reachable?" >&2
		exit 1
	}
	rm -rf "$image"
	for package in "$out"/apt/*.deb; do dpkg -x "$package" "$image"; done
	mkdir -p "$image/driver"
	tar -xJf "$image/usr/src/linux-source-$series.tar.xz" -C "$image/driver" --strip-components=1 \
		"linux-source-$series/drivers/dma/dmaengine.h" \
		"linux-source-$series/drivers/dma/xilinx/zynqmp_dma.c"
	# The tools of the build are this machine's.
	ln -sfn "/usr/lib/linux-kbuild-$series" "$image/usr/lib/linux-kbuild-$series"
	rm -rf "$out/apt" "$image/usr/src/linux-source-$series.tar.xz"
	touch "$image/ready"
fi
kernel=$image/boot/vmlinuz-$version
kdir=$image/usr/src/linux-headers-$version
busybox=$image/bin/busybox
sources=$image/driver/drivers/dma
perl -0pe 's{"\.\./dmaengine\.h"}{"dmaengine.h"};
	s{(static irqreturn_t zynqmp_dma_irq_handler.*?writel\(isr,.*?;\n)}
	 {static bool loses_interrupts;\nmodule_param(loses_interrupts, bool, 0644);\n\n$1\tif (loses_interrupts)\n\t\treturn IRQ_HANDLED;\n}s' \
	"$sources/xilinx/zynqmp_dma.c" >"$sources/zynqmp_dma.c"
grep -q 'if (loses_interrupts)' "$sources/zynqmp_dma.c" ||
	{ echo "kmod-check: zynqmp_dma.c of Linux $version has no place for a fault" >&2; exit 1; }
echo "kmod-check: building"
build_module
build_driver "$sources/zynqmp_dma.c" "$sources/dmaengine.h"
build_program device_test-arm64 "$here"/*_test.c
begin_root
cp "$out/device_test-arm64" "$driver/zynqmp_dma.ko" "$root/"
cat >>"$root/init" <<'INIT'
busybox insmod /zynqmp_dma.ko
busybox insmod /onecopy.ko && /device_test-arm64 WORDS
# The engine's, which the kernel counts: none was left out.
busybox grep dma /proc/interrupts
busybox rmmod onecopy && busybox rmmod zynqmp_dma &&
	echo "ok      unloaded" || echo "FAILED  unloaded"
INIT
complaints >>"$root/init"
sed -i "s/WORDS/$seconds ${*:3}/" "$root/init"
pack_root
echo "kmod-check: booting Linux $version on a Versal, 2 CPUs"
timeout 1800 qemu-system-aarch64 -M xlnx-versal-virt -m 2G -smp 4 -accel tcg,thread=multi \
	-kernel "$kernel" -initrd "$out/initramfs.gz" -append "console=ttyAMA0 quiet panic=-1 oops=panic $patient" \
	-display none -serial stdio -monitor none -no-reboot </dev/null |
	sed -u 's|\r||' | tee "$out/arm64.log"
count "$out/arm64.log"
