#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# measure.sh BUILD MPI HOSTS RANKS ROUNDS CELL_MS FILE [COLLECTIVE... [BYTES...]]: these collectives, or
# all that go in two levels, of these sizes, or of those that timing.c has, over HOSTS hosts of RANKS
# ranks each, the MPI (openmpi, mpich) alone and with onecopy in turns, as rows of FILE (which gets the heading where it is new). "ibcast" and the like are
# nonblocking ones, waited for at once. Stock runs twice a round: the second is the control. A value is
# the median over rounds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 7 ] || {
	echo "usage: measure.sh BUILD openmpi|mpich HOSTS RANKS ROUNDS CELL_MS FILE [COLLECTIVE... [BYTES...]]" >&2
	exit 2
}
build=$(realpath "$1") mpi=$2 hosts=$3 each=$4 rounds=$5 cell_ms=$6 file=$7
programs=$build/tests/mpi onecopy=$build/tools/onecopy/onecopy
what="${*:8}"
[ -n "$what" ] || what="barrier bcast reduce allreduce scan exscan gather gatherv scatter scatterv
	allgather allgatherv alltoall reduce_scatter reduce_scatter_block"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm_rsh_agent=$here/agent.sh OMPI_MCA_oob_tcp_if_include=10.77.0.0/16
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/16 UCX_NET_DEVICES=eth0
list=$(for ((i = 1; i <= hosts; i++)); do printf '%snode%d:%d' "${list+,}" "$i" "$each"; list=; done)

openmpi()
{
	"$@" "$here/hosts.sh" "$hosts" mpirun --oversubscribe --bind-to none --host "$list" \
		-n $((hosts * each)) "$programs/oc_mpi_timing" "$cell_ms" $what
}

# behind.c ends the job where MPICH's own MPI_Finalize hangs between hosts.
mpich()
{
	OC_TEST_BEHIND=leaves "$@" "$here/hosts.sh" "$hosts" mpirun.mpich -launcher ssh -launcher-exec \
		"$here/agent.sh" -iface eth0 -hosts "$list" -n $((hosts * each)) \
		sh -c 'LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$0 exec "$@"' \
		"$programs/liboc_mpich_behind.so" "$programs/oc_mpich_timing" "$cell_ms" $what
}

variants=(stock control onecopy)
shopt -s extglob
# HAN has no nonblocking ones.
[ "$mpi" = mpich ] || [[ $what == *([0-9])i* ]] || variants+=(han)
for ((r = 0; r < rounds; r++)); do
	for ((v = 0; v < ${#variants[@]}; v++)); do
		variant=${variants[(v + r) % ${#variants[@]}]}
		case $variant in
		onecopy) with=("$onecopy" run --quiet) ;;
		han) with=(env OMPI_MCA_coll_han_priority=100) ;;
		*) with=(env) ;;
		esac
		"$mpi" "${with[@]}" 2>"$scratch/said" >"$scratch/rows" ||
			{ cat "$scratch/said" "$scratch/rows" >&2; exit 1; }
		sed "s/^/$mpi $variant /" "$scratch/rows" >>"$scratch/all"
	done
done

[ -s "$file" ] || {
	cat <<-HEAD
	# what: collectives over several hosts (tests/hosts), the MPIs alone and with onecopy in two levels
	# command: ${ONECOPY_LEVELS:+ONECOPY_LEVELS=$ONECOPY_LEVELS }tests/hosts/measure.sh build/release $mpi $hosts $each $rounds $cell_ms FILE, and so for the other rows
	# commit: $(git -C "$here" rev-parse --short HEAD)
	# machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) CPUs, shared by the hosts
	# date: $(date +%F)
	# note: bytes are of a message or of each rank's block; us the median of $rounds runs; ratio the quicker of stock and HAN by onecopy; control the same stock twice; tx what all hosts sent in a call
	mpi,hosts,ranks_each,collective,bytes,stock_us,han_us,onecopy_us,ratio,control,stock_tx,han_tx,onecopy_tx
	HEAD
} >"$file"
awk -v hosts="$hosts" -v each="$each" '
function median(key,   n, i, j, t, a) {
	n = split(values[key], a, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
	return n ? a[int((n + 1) / 2)] : ""
}
{
	cell = $1 SUBSEP $3 SUBSEP $4
	if (!(cell in seen)) { seen[cell] = 1; order[++cells] = cell }
	values[cell, $2, "us"] = values[cell, $2, "us"] " " $5
	values[cell, $2, "tx"] = values[cell, $2, "tx"] " " $6
}
END {
	for (i = 1; i <= cells; i++) {
		c = order[i]
		split(c, part, SUBSEP)
		s = median(c SUBSEP "stock" SUBSEP "us"); h = median(c SUBSEP "han" SUBSEP "us")
		k = median(c SUBSEP "control" SUBSEP "us"); o = median(c SUBSEP "onecopy" SUBSEP "us")
		best = h != "" && h + 0 < s + 0 ? h : s
		printf "%s,%d,%d,%s,%d,%s,%s,%s,%.2f,%.2f,%s,%s,%s\n", part[1], hosts, each, part[2],
			part[2] ~ /barrier/ ? 0 : part[3], s, h, o, best / o, s / k,
			median(c SUBSEP "stock" SUBSEP "tx"), median(c SUBSEP "han" SUBSEP "tx"),
			median(c SUBSEP "onecopy" SUBSEP "tx")
	}
}' "$scratch/all" >>"$file"
