#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Counts in a guest of 8 CPUs and 4 nodes how often locks of an address space are taken
# while others read its memory: "contention.sh OUT KDIR [NAME]" writes NAME.csv, and NAME.svg and
# NAME.png where gnuplot is there (NAME: OUT/kmod-locks). KDIR: a kernel with CONFIG_LOCK_STAT, and
# without CONFIG_DEBUG_ATOMIC_SLEEP, with which each access to a process's memory counts as one of
# mmap_lock.
set -eu
. "$(dirname "$0")/boot.sh"
usage="usage: contention.sh OUT KDIR [NAME]"
choose_kernel "${1:?"$usage"}" "${2:?"$usage"}"
name=${3:-$out/kmod-locks}
build_module
build_program contention "$here/contention.c"
begin_root
cp "$out/contention" "$root/"
cat >>"$root/init" <<'INIT'
busybox insmod /onecopy.ko && /contention && echo "ok      contention" || echo "FAILED  contention"
INIT
complaints >>"$root/init"
boot "$out/contention.log" 600 8 4 2048
count "$out/contention.log"
{
	echo "# what: how often locks of address spaces are taken while 1 to 8 processes read 1 MiB of one process, 20 times each:" \
		"by process_vm_readv (cma), by the module's copies (kmod) and mappings (map); its registration is counted, too"
	echo "# command: kernel/guest/contention.sh build/kmod KDIR docs/results/kmod-locks"
	echo "# machine: a guest of QEMU without KVM, 8 CPUs, 4 nodes, Linux $version with CONFIG_LOCK_STAT"
	echo "# commit: $(git -C "$here" rev-parse --short HEAD)"
	echo "# date: $(date -u +%F)"
	echo "# note: counts of /proc/lock_stat, of all processes; contended ones depend on how the guest's CPUs are scheduled; no times, as there is no KVM"
	echo "way,readers,copies,bytes_each,mmap_lock,mmap_lock_contended,page_table_lock,page_table_lock_contended"
	sed -n 's/^row //p' "$out/contention.log"
} >"$name.csv"
command -v gnuplot >/dev/null || { echo "there is no plot, as gnuplot is not installed"; exit 0; }
for kind in svg png; do
	case $kind in
	svg) terminal='svg size 900,420 dynamic background "white"' ;;
	png) terminal='pngcairo size 900,420' ;;
	esac
	gnuplot <<PLOT
set terminal $terminal noenhanced
set output "$name.$kind"
set datafile separator ","
set multiplot layout 1,2 title "Locks taken while processes read 1 MiB of one, 20 times each (counts plus one, in a guest)"
set xlabel "readers"
set logscale y
set grid ytics
set key outside bottom horizontal
set xtics 1
do for [panel in "5 7"] {
	set ylabel panel eq "5" ? "mmap_lock, times taken" : "page-table locks, times taken"
	plot for [way in "cma kmod map"] "< grep ^".way.", '$name.csv'" using 2:(column(int(panel)) + 1) \\
		with linespoints title way
}
unset multiplot
PLOT
done
