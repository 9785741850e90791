#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Tests in a guest of KMOD_CPUS (8) CPUs, two a node, with this machine's files,
# read-only: "mpi.sh OUT BUILD REFUSE TEST...". BUILD: a build of the tree with its tests. A TEST is what
# tests/mpi/oc_mpi_driver of BUILD takes, "bytes 8 kmod", or a program of BUILD, "src/kmod_test". The
# module may use four channels of driver/fake_engine.c; the guest's caches are said to be so small
# that more than 256 KiB are asked of them. "+ TEST": more than a page is, and some must have been
# copied by them. "! TEST": they may not be used, and REFUSE of 100 regions and copies are refused, at
# random. Behind each no page may stay pinned. In the environment: KDIR, as boot.sh has it; KMOD_BYTES,
# buffers of "bytes" that are larger are left out. The last line reads "N passed, N failed".
set -eu
. "$(dirname "$0")/boot.sh"
build=$(cd "$2" && pwd)
refuse=$3
cpus=${KMOD_CPUS:-8}
choose_kernel "$1" "${KDIR:-}"
shift 3
build_module
build_driver "$here/driver/fake_engine.c"
begin_root
cp "$driver/fake_engine.ko" "$root/"
add_modules virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci netfs fscache \
	9pnet 9pnet_virtio 9p
mkdir "$root/build"
printf '%s\n' "$@" >"$root/tests"
cat >>"$root/init" <<'INIT'
for module in /modules/*.ko; do busybox insmod $module; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 host /host
busybox insmod /fake_engine.ko channels=4
busybox insmod /onecopy.ko
busybox mount -t proc proc /host/proc
busybox mount -t sysfs sys /host/sys
busybox mount --bind /dev /host/dev
busybox mkdir -p /dev/shm /dev/pts
busybox mount -t tmpfs -o mode=1777 tmp /dev/shm
busybox mount -t devpts pts /dev/pts
busybox mount --bind /hostBUILD /build
busybox mount -t tmpfs -o mode=1777 tmp /host/tmp
# Where it lies below /tmp.
[ -d /hostBUILD ] || { busybox mkdir -p /hostBUILD; busybox mount --bind /build /hostBUILD; }
busybox mount -t tmpfs run /host/run
# Launchers ask for the address of their own name.
busybox hostname guest
(busybox cat /host/etc/hosts; echo "127.0.1.1 guest") >/hosts
busybox mount --bind /hosts /host/etc/hosts
ulimit -l unlimited
# Of two cores: DMAmin is a quarter of it.
echo 1024K >/cache
for size in /host/sys/devices/system/cpu/cpu*/cache/index3/size; do
	busybox mount --bind /cache $size
done
# The guest's CPUs are threads of this machine, which has fewer CPUs: what spins takes one from those
# that work. So ranks sleep where they wait, as they do by a limit of their group.
busybox mount -t tmpfs group /host/sys/fs/cgroup
echo 100000 100000 >/host/sys/fs/cgroup/cpu.max
in_host() {
	busybox chroot /host /usr/bin/env -i HOME=/tmp LANG=C LIMIT_OF_BYTES \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
# count NAME: of the module's counters.
count() {
	in_host BUILD/tools/onecopy/onecopy info --json | busybox sed -n 's/.*"'$1'": *\([0-9]*\).*/\1/p'
}
# Of processes that have ended none stay.
are_unpinned() {
	for try in $(busybox seq 20); do
		[ "$(count pages_pinned_now)" = 0 ] && return
		busybox sleep 0.5
	done
	return 1
}
# As `onecopy tune` would write it, but for the terms that it would measure; of this user and host.
tuning=/host/tmp/.config/onecopy/guest.json
busybox mkdir -p /host/tmp/.config/onecopy
cat >/engines.json <<TUNING
{ "onecopy": "tuning", "version": 1, "name": "engines", "calibrated": false,
  "machine": { "host": "*", "cpu": "$(busybox sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | busybox head -n 1)",
    "cpus": CPUS, "page_bytes": 4096 },
  "terms": { "kmod.dma_min": { "value": 4096, "unit": "B", "source": "for tests" } } }
TUNING
while read -r test; do
	words=${test#[+!] } refuse=0 channels=4 name=$test expected=0
	busybox rm -f $tuning
	case $test in
	'! '*) refuse=REFUSE channels=0 name="$words, REFUSE % refused" ;;
	'+ '*)
		expected=1 name="$words, by engines"
		busybox cp /engines.json $tuning
		;;
	esac
	echo $refuse >/sys/module/onecopy/parameters/refuse
	echo $channels >/sys/module/onecopy/parameters/dma_channels
	case $words in
	*/*) ;;
	*) words="tests/mpi/oc_mpi_driver $words" ;;
	esac
	begin=$(busybox date +%s)
	before=$(count copies_by_engine)
	in_host BUILD/$words >/said 2>&1 </dev/null
	status=$?
	# Here nothing has to be left out.
	busybox grep -qi skipped /said && status=skipped
	engines=$(($(count copies_by_engine) - before))
	[ $status != 0 ] || [ $engines -ge $expected ] || status="no engine was used"
	[ "$status" != 0 ] || are_unpinned || status="pages stay pinned"
	took="$(($(busybox date +%s) - begin)) s, $engines copies by engines"
	if [ "$status" = 0 ]; then
		busybox tail -n 1 /said
		echo "ok      $name: $took"
	else
		busybox cat /said
		echo "FAILED  $name ($status): $took"
	fi
done </tests
in_host BUILD/tools/onecopy/onecopy info | busybox sed -n '/^Kernel module/,/^$/p' | busybox tee /said
busybox grep -q 'DMA engines .* channels allowed; [1-9]' /said &&
	echo "ok      engines were used" || echo "FAILED  engines were used"
INIT
complaints >>"$root/init"
sed -i "s|LIMIT_OF_BYTES|${KMOD_BYTES:+OC_TEST_BYTES=$KMOD_BYTES}|g; s|REFUSE|$refuse|g; s|CPUS|$cpus|g; s|BUILD|$build|g" "$root/init"
# A processor that says it is none of a virtual machine is believed who shares a cache.
boot "$out/mpi.log" "${KMOD_LIMIT:-18000}" "$cpus" $((cpus / 2)) 4096 -cpu "$cpu,-hypervisor" \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap
count "$out/mpi.log"
