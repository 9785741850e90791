#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# model.sh BUILD TUNING ROWS: how far `onecopy model --nodes` is off, by a tuning file with a network
# (onecopy tune, then onecopy tune --network between two of the hosts), from the rows that measure.sh wrote
# of the same machine: rows of both times, and of how much the model's gain is off. Then the medians.
set -euo pipefail
[ $# -eq 3 ] || {
	echo "usage: model.sh BUILD TUNING ROWS" >&2
	exit 2
}
onecopy=$1/tools/onecopy/onecopy tuning=$(realpath "$2") rows=$3
export ONECOPY_LEVELS=on

# "MPI HOSTS RANKS COLLECTIVE BYTES STOCK HAN ONECOPY" of each row.
measured()
{
	awk -F, '/^[a-z]*,[0-9]/ { print $1, $2, $3, $4, $5, $6, ($7 == "" ? "-" : $7), $8 }' "$rows"
}

# Of one collective the bytes, both times in us, and the algorithm of the MPI. A Reduce_scatter's bytes are
# each rank's here, and all ranks' there.
predicted()
{
	local factor=1
	[ "$3" = reduce_scatter ] && factor=$(($1 * $2))
	# The others in two levels, whatever they gain; these go so, and otherwise where they must.
	case $3 in gatherv | scatterv) local -x ONECOPY_LEVELS=auto ;; esac
	"$onecopy" model "$3" --nodes "$1" --ranks "$2" --profile "$tuning" --json \
		--bytes "$(awk -v f="$factor" '{ printf "%s%d", (NR > 1 ? "," : ""), $1 * f }' <<<"$4")" |
		awk -v f="$factor" '
			/"bytes":/ { bytes = $2 + 0 }
			/"two_levels_s":/ { at = bytes; levels = $2 * 1e6 }
			/"mpi_s":/ { mpi = $2 * 1e6 }
			/"mpi_algorithm":/ && levels > 0 { gsub(/[",]/, "", $2); print at / f, levels, mpi, $2 }'
}

trap 'rm -f "${TMPDIR:-/tmp}/model.$$"' EXIT
echo "mpi,hosts,ranks_each,collective,bytes,onecopy_us,onecopy_model_us,mpi_us,mpi_model_us,mpi_model_algorithm,gain,gain_model"
while read -r mpi hosts each collective; do
	cells=$(measured | awk -v key="$mpi $hosts $each $collective" '
		$1 " " $2 " " $3 " " $4 == key { print $5, $6, $7, $8 }')
	join -j 1 <(sort -k1,1 <<<"$cells") \
		<(predicted "$hosts" "$each" "$collective" "$cells" | sort -k1,1) | sort -n |
		awk -v head="$mpi,$hosts,$each,$collective" '{
			best = $3 != "-" && $3 + 0 < $2 + 0 ? $3 : $2
			printf "%s,%d,%.1f,%.1f,%.1f,%.1f,%s,%.2f,%.2f\n", head, $1, $4, $5, best, $6, $7,
				best / $4, $6 / $5
		}'
done < <(measured | awk '!seen[$1 $2 $3 $4]++ { print $1, $2, $3, $4 }') | tee "${TMPDIR:-/tmp}/model.$$"
awk -F, '
function off(a, b) { return a > b ? a / b : b / a }
function median(list, n,   i, j, t) {
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
	return list[int((n + 1) / 2)]
}
{ n++; levels[n] = off($6, $7); mpi[n] = off($8, $9); gain[n] = off($11, $12); right += ($11 >= 1) == ($12 >= 1) }
END {
	printf "# %d cells; medians of how much predictions are off: two levels %.2f times, the MPI alone %.2f, " \
		"the gain %.2f; who is quicker is right in %d\n", n, median(levels, n), median(mpi, n), median(gain, n), right
}' "${TMPDIR:-/tmp}/model.$$"
