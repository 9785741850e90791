#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# codelet.sh BUILD ROUNDS NAME [PART...]: the benchmark of KACC's paper: a panel is broadcast while matrices
# are multiplied, by graphs (examples/graph_codelet.c) and by the MPIs alone (examples/hpl_codelet.c), between
# hosts with a network card of 1 Gbit/s each, between hosts whose network is memory, and inside a node.
# NAME.csv, and, as Figures 4 to 6 of the paper, NAME.svg and NAME.png where gnuplot is there.
#
# Parts are graphs, openmpi, mpich, onecopy (the MPIs' calls with it, inside a node) and plots: all,
# unless some are given; rows are added to NAME.csv.
# The ranks go before all other processes, also where the kernel groups these by session, so that what else
# runs takes little: nothing else should be measured meanwhile.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || {
	echo "usage: codelet.sh BUILD ROUNDS NAME [graphs|openmpi|mpich|onecopy|plots]..." >&2
	exit 2
}
# Launchers begin sessions of their own, so each rank does this.
first='echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -20 "$@"'
[ -w /proc/self/autogroup ] || first='exec "$@"'
build=$(realpath "$1") rounds=$2 name=$3
programs=$build/examples parts=${*:4}
parts=${parts:-graphs openmpi mpich onecopy plots}
matrices=(--bytes 12500,125000,1250000,8000000)

hosts()
{
	OC_TEST_HOSTS_RATE=$2 "$here/hosts.sh" "$1" "$here/ranks.sh" setsid -w sh -c "$first" sh \
		"$programs/graph_codelet" --rounds "$rounds" --trees chain "${@:3}"
}

graphs()
{
	hosts 2 1gbit --name 1gbit "${matrices[@]}"
	OC_TEST_HOSTS_BUFFERS=16777216 hosts 2 1gbit --name 1gbit --bytes 1250000,8000000 --ways floor
	hosts 2 1gbit --name 1gbit --bytes 1250000 --segments 16384,250000
	hosts 4 1gbit --name 1gbit --bytes 1250000 --trees chain,binary
	hosts 2 "" --name memory --gbit 20 --bytes 12500,1250000
	setsid -w sh -c "$first" sh "$programs/graph_codelet" --rounds "$rounds" --name node --gbit 20 --trees chain
}

# Rows of an MPI: its ways have its name, and what is under it.
rows_of()
{
	sed -n "/,/{ s/,\(bcast\|tree\|ibcast\),/,$* \1,/; p; }"
}

openmpi()
{
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	OMPI_MCA_plm_rsh_agent=$here/agent.sh OMPI_MCA_oob_tcp_if_include=10.77.0.0/16 \
		OMPI_MCA_btl_tcp_if_include=10.77.0.0/16 UCX_NET_DEVICES=eth0 OC_TEST_HOSTS_RATE=1gbit \
		"$here/hosts.sh" 2 mpirun.openmpi --bind-to none --host node1,node2 -n 2 setsid -w sh -c "$first" sh \
		"$programs/hpl_codelet" --rounds "$rounds" --name 1gbit "${matrices[@]}" | rows_of openmpi
	mpirun.openmpi --bind-to core -n 2 setsid -w sh -c "$first" sh "$programs/hpl_codelet" --rounds "$rounds" \
		--name node --gbit 20 | rows_of openmpi
}

# behind.c ends the job where MPICH's own MPI_Finalize hangs between hosts.
mpich()
{
	OC_TEST_BEHIND=leaves OC_TEST_HOSTS_RATE=1gbit UCX_NET_DEVICES=eth0 \
		"$here/hosts.sh" 2 mpirun.mpich -launcher ssh -launcher-exec "$here/agent.sh" \
		-iface eth0 -hosts node1,node2 -n 2 env "LD_PRELOAD=$build/tests/mpi/liboc_mpich_behind.so" \
		setsid -w sh -c "$first" sh "$programs/mpich/hpl_codelet" --rounds "$rounds" --name 1gbit "${matrices[@]}" |
		rows_of mpich
	mpirun.mpich -bind-to core -n 2 setsid -w sh -c "$first" sh "$programs/mpich/hpl_codelet" --rounds "$rounds" \
		--name node --gbit 20 | rows_of mpich
}

# With the caller and the thread as executors.
onecopy()
{
	local run=$build/tools/onecopy/onecopy async

	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	for async in caller thread; do
		ONECOPY_ASYNC=$async "$run" run -q mpirun.openmpi --bind-to core -n 2 setsid -w sh -c "$first" sh \
			"$programs/hpl_codelet" --rounds "$rounds" --name node --gbit 20 | rows_of openmpi onecopy "$async"
		ONECOPY_ASYNC=$async "$run" run -q mpirun.mpich -bind-to core -n 2 setsid -w sh -c "$first" sh \
			"$programs/mpich/hpl_codelet" --rounds "$rounds" --name node --gbit 20 | rows_of mpich onecopy "$async"
	done
}

[ -s "$name.csv" ] || cat >"$name.csv" <<-HEAD
	# what: a panel is broadcast while matrices are multiplied (KACC, section 5): graphs by each executor, the MPIs alone and with onecopy
	# command: tests/hosts/codelet.sh build/release $rounds $name
	# commit: $(git -C "$here" rev-parse --short HEAD)
	# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, shared by the hosts
	# date: $(date +%F)
	# note: examples/codelet.h says what the columns are; $rounds rounds. 1gbit: hosts that send and are sent that much; memory: hosts without a limit; node: one host, graphs over socketpairs. total_us has the work of 1 Gbit/s, of 20 in memory and node
	where,ranks,tree,bytes,segment,matrix,way,us,lost,lost_low,lost_high,root_lost,cpu_us,total_us,total_low,total_high
HEAD
for part in $parts; do
	case $part in
	graphs | openmpi | mpich | onecopy) "$part" >>"$name.csv" ;;
	plots) plots=1 ;;
	*) echo "codelet.sh: there is no part $part" >&2; exit 2 ;;
	esac
done
[ -n "${plots-}" ] || exit 0
command -v gnuplot >/dev/null || {
	echo "codelet.sh: there are no plots, because gnuplot is not installed (Debian: gnuplot-nox)" >&2
	exit 0
}

# Of two hosts with a network card, over bytes: what is lost with its interval, and the total time by that
# of Open MPI's MPI_Bcast.
rows()
{
	awk -F, -v matrix="$1" -v way="$2" '
	$1 == "1gbit" && $2 == 2 && ($5 == 65536 || $5 == 0) && $6 == matrix {
		if ($7 == "openmpi bcast")
			by[$4] = $14
		if ($7 == way)
			row[$4] = $4 " " $9 " " $10 " " $11 " " $14
	}
	END { for (b in row) print row[b], (b in by) ? by[b] : "nan" }' "$name.csv" | sort -n
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ways=(caller thread uring "openmpi ibcast" "mpich ibcast" "openmpi tree")
for matrix in 40 4; do
	for way in "${ways[@]}"; do
		rows "$matrix" "$way" >"$scratch/$matrix-$way"
	done
done
for kind in svg png; do
	case $kind in
	svg) terminal='svg size 1200,800 dynamic background "white"' ;;
	png) terminal='pngcairo size 1200,800' ;;
	esac
	gnuplot <<-PLOT
	set terminal $terminal noenhanced
	set output "$name.$kind"
	set multiplot layout 2,2 title "A panel is broadcast between two hosts of 1 Gbit/s while matrices are multiplied"
	set xlabel "bytes of the panel"
	set logscale x
	set xrange [9000:11000000]
	set grid ytics
	set key outside right
	ways = "$(printf '"%s" ' "${ways[@]}" | sed 's/"/\\"/g')"
	do for [matrix in "40 4"] {
		set title "CPU time lost, %, matrices of ".matrix." x ".matrix
		set yrange [0:100]
		plot for [w in ways] "$scratch/".matrix."-".w using 1:2:3:4 with yerrorlines title w
	}
	do for [matrix in "40 4"] {
		set title "total time: Open MPI's MPI_Bcast is 1, matrices of ".matrix." x ".matrix
		set yrange [0:1.5]
		plot for [w in ways] "$scratch/".matrix."-".w using 1:(\$5/\$6) with linespoints title w
	}
	unset multiplot
	PLOT
done
