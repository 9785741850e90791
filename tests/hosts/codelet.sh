#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# codelet.sh BUILD ROUNDS NAME: the benchmark of KACC's paper (examples/graph_codelet.c) between hosts with
# a network card of 1 Gbit/s each, between hosts whose network is memory, and inside a node: NAME.csv, and,
# as Figures 4 to 6 of the paper, NAME.svg and NAME.png where gnuplot is there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 3 ] || {
	echo "usage: codelet.sh BUILD ROUNDS NAME" >&2
	exit 2
}
program=$(realpath "$1")/examples/graph_codelet rounds=$2 name=$3

hosts()
{
	OC_TEST_HOSTS_RATE=$2 "$here/hosts.sh" "$1" "$here/ranks.sh" "$program" --rounds "$rounds" "${@:3}"
}

{
	cat <<-HEAD
	# what: a panel is broadcast while matrices are multiplied (KACC, section 5), over graphs by each executor and by the blocking tree
	# command: tests/hosts/codelet.sh build/release $rounds $name
	# commit: $(git -C "$here" rev-parse --short HEAD)
	# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, shared by the hosts
	# date: $(date +%F)
	# note: examples/graph_codelet.c says what the columns are; us and total_us of the slowest rank, lost the mean of all; medians of $rounds rounds. 1gbit: hosts that send and are sent that much; memory: hosts without a limit; node: socketpairs
	where,ranks,tree,bytes,segment,matrix,executor,us,lost,root_lost,total_us,ratio
	HEAD
	hosts 2 1gbit --name 1gbit --trees chain --bytes 12500,125000,1250000,8000000 --segments 65536
	hosts 2 1gbit --name 1gbit --trees chain --bytes 1250000 --segments 16384,250000
	hosts 4 1gbit --name 1gbit --trees chain,binary --bytes 1250000 --segments 16384,65536
	hosts 2 "" --name memory --trees chain --bytes 12500,1250000
	"$program" --rounds "$rounds" --name node --trees chain --bytes 12500,125000,1250000
} >"$name.csv"

command -v gnuplot >/dev/null || {
	echo "codelet.sh: there are no plots, because gnuplot is not installed (Debian: gnuplot-nox)" >&2
	exit 0
}
# Of two hosts with a network card, over bytes: column 9 is what is lost, 12 the ratio.
for kind in svg png; do
	case $kind in
	svg) terminal='svg size 1200,420 dynamic background "white"' ;;
	png) terminal='pngcairo size 1200,420' ;;
	esac
	gnuplot <<-PLOT
	set terminal $terminal noenhanced
	set output "$name.$kind"
	set datafile separator ","
	set multiplot layout 1,3 title "A panel is broadcast between two hosts of 1 Gbit/s while matrices are multiplied, segments of 64 KiB"
	set xlabel "bytes"
	set logscale x
	set grid ytics
	set key outside bottom horizontal
	do for [panel in "9,40 9,4 12,40"] {
		column = int(panel[1:strstrt(panel, ",") - 1])
		matrix = panel[strstrt(panel, ",") + 1:*]
		set title (column == 9 ? "CPU time lost, %, matrices of " : "total time by blocking's, matrices of ").matrix
		set yrange [0:(column == 9 ? 100 : 2)]
		plot for [e in "caller thread uring"] "< grep -E '^1gbit,2,chain,[0-9]+,65536,".matrix.",".e.",' '$name.csv'" using 4:column with linespoints title e
	}
	unset multiplot
	PLOT
done
