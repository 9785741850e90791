#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
# Dual BSD/GPL. Counts in a guest of 8 CPUs and 4 nodes how often locks of an address space are taken
# while others read its memory: "contention.sh OUT KDIR [NAME]" writes NAME.csv, and NAME.svg and
# NAME.png where gnuplot is there (NAME: OUT/kmod-locks). KDIR: a kernel of "debug-kernel.sh FOLDER lockstat".
# Papers 000 and 002: the page table's lock is taken for each page of each copy by cma, by the module
# when the region is made. The last line reads "N passed, N failed".
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
# Pages of 4 KiB of 1 MiB, 20 times for each reader.
awk -F, '
	$1 == "cma" && $7 < 256 * $3 { print "  cma, " $2 " readers: a lock was taken " $7 " times only"; bad = 1 }
	$1 == "kmod" && $7 > 256 { print "  kmod, " $2 " readers: a lock was taken " $7 " times"; bad = 1 }
	$1 == "cma" || $1 == "kmod" { rows++ }
	END { exit bad || rows != 8 }' "$name.csv" &&
	echo "ok      locks_are_taken_once" >>"$out/contention.log" ||
	echo "FAILED  locks_are_taken_once" >>"$out/contention.log"
command -v gnuplot >/dev/null || echo "there is no plot, as gnuplot is not installed"
for kind in $(command -v gnuplot >/dev/null && echo svg png); do
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
grep -E '^(ok|FAILED) ' "$out/contention.log"
count "$out/contention.log"
