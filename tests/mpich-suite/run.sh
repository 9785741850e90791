#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a built MPICH test suite by its own runner, without and with onecopy, and compares: see
# README.md. What fails with onecopy only is run again under both, so that a test which fails now
# and then under the MPI alone is told from one that we break.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
onecopy=${SUITE_ONECOPY:-$here/../../build/release/tools/onecopy/onecopy}
lists=testlist,testlist.dtp
out=mpich-suite-results
reruns=3
sides='stock onecopy'
options=
yields=
hosts=
arguments=("$@")

fail() {
	echo "run.sh: $*" >&2
	exit 2
}

usage() {
	fail "usage: run.sh [-H RANKS:RANKS...] [-l LIST,...] [-n RERUNS] [-o RESULTS] [-s stock|onecopy|compare] [-x OPTION]... [-y] BUILD [FOLDER...]"
}

while getopts H:l:n:o:s:x:y option; do
	case $option in
	H) hosts=$OPTARG ;;
	l) lists=$OPTARG ;;
	n) reruns=$OPTARG ;;
	o) out=$OPTARG ;;
	s) case $OPTARG in
		stock | onecopy) sides=$OPTARG ;;
		compare) sides= ;;
		*) usage ;;
		esac ;;
	x) options="$options $OPTARG" ;;
	y) yields=yes ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
[[ -z $hosts || $hosts =~ ^[1-9][0-9]*(:[1-9][0-9]*)+$ ]] || usage
if [ -n "$hosts" ] && [ -z "${OC_TEST_HOSTS-}" ]; then
	count=${hosts//[^:]/}
	exec "$here/../hosts/hosts.sh" $((${#count} + 1)) "$(realpath "$0")" "${arguments[@]}"
fi
[ -x "$1/runtests" ] || fail "$1 has no runtests: give the directory where the suite was configured and built"
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- attr errhan threads/coll comm datatype rma coll
mkdir -p "$out" || fail "no results can be written to $out"
out=$(cd "$out" && pwd)
[ -x "$onecopy" ] || fail "$onecopy is missing: build onecopy first (make)"

# make_variable FOLDER NAME: what the suite's configure found.
make_variable() {
	sed -n "s|^$2 = *||p" "$build/$1/Makefile" | head -1
}

mpiexec=$(make_variable . MPIEXEC)
[ -n "$mpiexec" ] || fail "$build/Makefile names no MPIEXEC"

# Programs stay built, so that both sides run the same ones; Open MPI is to start more ranks than
# there are cores, and as root in a container. Nothing of a surrounding `onecopy run` may be left.
export MPITEST_CLEANUP=0 MPITEST_TIMEOUT_MULTIPLIER=${MPITEST_TIMEOUT_MULTIPLIER:-1}
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset LD_PRELOAD OMPI_MCA_mca_base_component_path ONECOPY_STATS_DIR

# The launcher starts ranks through a script that adds to what is preloaded.
yield_when_idle() {
	"${CC:-cc}" -D_GNU_SOURCE -O2 -shared -fPIC -o "$out/yield.so" "$here/yield.c" ||
		fail "$here/yield.c does not compile: CC names no C compiler"
	cat >"$out/yielding" <<-EOF
		#!/bin/sh
		export LD_PRELOAD="$out/yield.so\${LD_PRELOAD:+:\$LD_PRELOAD}"
		exec "\$@"
	EOF
	chmod +x "$out/yielding"
	export MPITEST_PROGRAM_WRAPPER=$out/yielding
}
[ -z "$yields" ] || yield_when_idle

# Ranks are on hosts of tests/hosts, where this script runs on the first one: the launchers' variables.
reach_hosts() {
	local host=0 ranks behind
	: >"$out/hosts.openmpi" && : >"$out/hosts.mpich"
	for ranks in ${hosts//:/ }; do
		host=$((host + 1))
		echo "node$host slots=$ranks" >>"$out/hosts.openmpi"
		echo "node$host:$ranks" >>"$out/hosts.mpich"
	done
	export OMPI_MCA_plm_rsh_agent=$here/../hosts/agent.sh OMPI_MCA_orte_default_hostfile=$out/hosts.openmpi
	export OMPI_MCA_oob_tcp_if_include=10.77.0.0/16 OMPI_MCA_btl_tcp_if_include=10.77.0.0/16
	export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
	export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$here/../hosts/agent.sh HYDRA_IFACE=eth0
	export HYDRA_HOST_FILE=$out/hosts.mpich UCX_NET_DEVICES=eth0
	behind=$(dirname "$onecopy")/../../tests/mpi/liboc_mpich_behind.so
	"$mpiexec" --version 2>&1 | grep -q HYDRA || return 0
	# MPICH's own MPI_Finalize often hangs there.
	[ -e "$behind" ] || fail "$behind is missing: build onecopy with MPICH"
	printf '#!/bin/sh\nexport OC_TEST_BEHIND=leaves LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}%s"\nexec "$@"\n' \
		"$(realpath "$behind")" >"$out/leaving"
	chmod +x "$out/leaving"
	export MPITEST_PROGRAM_WRAPPER=$out/leaving
}
[ -z "$hosts" ] || reach_hosts

# run_lists SIDE FOLDER LISTS PREFIX: leaves PREFIX.tap and PREFIX.out.
run_lists() {
	local command=$mpiexec
	if [ "$1" = onecopy ]; then
		command="$onecopy run -q$options $mpiexec"
		export ONECOPY_STATS_DIR=$4.stats
		rm -rf "$ONECOPY_STATS_DIR" && mkdir -p "$ONECOPY_STATS_DIR"
	fi
	mkdir -p "$(dirname "$4")"
	(cd "$build/$2" && "$build/runtests" -srcdir="$(make_variable "$2" abs_srcdir)" \
		-tests="$3" -mpiexec="$command" -tapfile="$4.tap" </dev/null >"$4.out" 2>&1)
	unset ONECOPY_STATS_DIR
}

# verdicts PREFIX: a line "PROGRAM RANKS K VERDICT" for each test, K counting lines that are alike
# (they differ in arguments, which the runner does not print). Verdicts: pass, skip, fail, timeout,
# unbuilt. A timeout is known by what the two launchers print.
verdicts() {
	{
		sed -n 's/^Failed to build \([^;]*\);.*/unbuilt \1/p' "$1.out"
		cat "$1.tap"
	} | awk '
		function flush() { if (name != "") print name, verdict; name = "" }
		/^unbuilt / { flush(); print $2, "-", ++unbuilt[$2], "unbuilt"; next }
		/^(not )?ok +- / {
			flush()
			verdict = /# SKIP/ ? "skip" : /^ok/ ? "pass" : "fail"
			sub(/^(not )?ok +- (\.\/)?/, "")
			if ($2 == "#") next # not built: counted above
			name = $1 " " $2 " " ++seen[$1 " " $2]
		}
		/APPLICATION TIMED OUT|time limit for job execution has been reached/ {
			if (verdict == "fail") verdict = "timeout"
		}
		END { flush() }'
}

# list_line FOLDER PROGRAM RANKS K: the line of the lists that this test came from.
list_line() {
	local list file source
	source=$(make_variable "$1" abs_srcdir)
	for list in ${lists//,/ }; do
		file=$build/$1/$list
		[ -s "$file" ] || file=$source/$list
		[ ! -f "$file" ] || sed 's/#.*//; s/^[ \t]*//' "$file"
	done | awk -v program="$2" -v ranks="$3" -v k="$4" '
		$1 == program && ($2 == "" ? 2 : $2) == ranks && ++seen == k { print; exit }'
}

# served SIDE_DIRECTORY: "SERVED HANDED_BACK" calls of all ranks.
served() {
	find "$1" -name 'onecopy.*.json' -print0 2>/dev/null | xargs -0r cat | awk '
		/"collectives": \[/ { section = "served" }
		/"handed_back": \[/ { section = "handed" }
		/"calls":/ { gsub(/[^0-9]/, ""); calls[section] += $0 }
		END { print calls["served"] + 0, calls["handed"] + 0 }'
}

# repeat_tests FOLDER NAME: those in NAME.suspects again, under both; says which is our fault.
repeat_tests() {
	local i side program ranks k verdict list=$out/$2.rerun bad stock_bad
	: >"$list"
	while read -r program ranks k verdict; do
		list_line "$1" "$program" "$ranks" "$k" >>"$list"
	done <"$out/$2.suspects"
	for ((i = 1; i <= reruns; i++)); do
		for side in stock onecopy; do
			run_lists "$side" "$1" "$list" "$out/$side/$2.rerun$i"
			verdicts "$out/$side/$2.rerun$i" >"$out/$side/$2.rerun$i.verdicts"
		done
	done
	# The K-th line of the list may be another of the same name than in the whole run: count anew.
	awk '{ print $1, $2, ++seen[$1 " " $2], $3, $4 }' "$out/$2.suspects" |
	while read -r program ranks k first verdict; do
		bad=$(cat "$out/onecopy/$2".rerun*.verdicts | grep -c "^$program $ranks $k [ftu]")
		stock_bad=$(cat "$out/stock/$2".rerun*.verdicts | grep -c "^$program $ranks $k [ftu]")
		echo "$1/$program $ranks #$first: $verdict with onecopy; repeated $reruns times:" \
			"$bad failed with onecopy, $stock_bad without"
		[ "$bad" -eq 0 ] || [ "$stock_bad" -gt 0 ] || echo "$1/$program $ranks #$first" >>"$out/regressions"
	done | tee -a "$out/repeated"
}

count() {
	awk -v words="$2" 'BEGIN { split(words, w); for (i in w) want[w[i]] = 1 } $4 in want { n++ }
		END { print n + 0 }' "$1"
}

rm -f "$out/repeated" "$out/regressions"
: >"$out/regressions"
printf '%-14s %-8s %6s %6s %6s %6s %8s %12s %12s\n' folder side pass fail timeout skip unbuilt served 'handed back'
total_served=0 total_tests=0
for folder; do
	[ -f "$build/$folder/Makefile" ] || fail "$build/$folder has no Makefile"
	name=${folder//\//-}
	for side in $sides; do
		run_lists "$side" "$folder" "$lists" "$out/$side/$name"
	done
	for side in stock onecopy; do
		[ -f "$out/$side/$name.tap" ] || continue
		verdicts "$out/$side/$name" >"$out/$side/$name.verdicts"
		read -r calls handed < <(served "$out/$side/$name.stats")
		printf '%-14s %-8s %6d %6d %6d %6d %8d %12s %12s\n' "$folder" "$side" \
			"$(count "$out/$side/$name.verdicts" pass)" "$(count "$out/$side/$name.verdicts" fail)" \
			"$(count "$out/$side/$name.verdicts" timeout)" "$(count "$out/$side/$name.verdicts" skip)" \
			"$(count "$out/$side/$name.verdicts" unbuilt)" "$calls" "$handed"
	done
	[ -f "$out/stock/$name.verdicts" ] || continue
	[ -f "$out/onecopy/$name.verdicts" ] || continue
	total_served=$((total_served + calls))
	total_tests=$((total_tests + $(count "$out/stock/$name.verdicts" 'pass fail timeout')))
	# Passed without; with onecopy it failed, or was not run at all because the runner gave up.
	awk 'NR == FNR { got[$1 " " $2 " " $3] = $4; next }
		$4 == "pass" && got[$1 " " $2 " " $3] != "pass" {
			g = got[$1 " " $2 " " $3]; print $1, $2, $3, g == "" ? "unrun" : g
		}' "$out/onecopy/$name.verdicts" "$out/stock/$name.verdicts" >"$out/$name.suspects"
	[ ! -s "$out/$name.suspects" ] || repeat_tests "$folder" "$name"
done
case $sides in stock | onecopy) exit 0 ;; esac

regressions=$(wc -l <"$out/regressions")
[ "$total_tests" -gt 0 ] || fail "no test was run: see $out/stock"
if [ "$total_served" -eq 0 ]; then
	fail "onecopy served no call, so nothing was tested: see $out/onecopy"
fi
echo "$total_tests tests by $mpiexec: $regressions fail with onecopy that pass without;" \
	"onecopy served $total_served calls of ranks."
[ "$regressions" -eq 0 ]
