#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ranks.sh PROGRAM [ARGUMENT...]: on the first of the hosts of hosts.sh: PROGRAM with the arguments and
# then "RANK ADDRESS:PORT..." on each of them, rank 0 on the first. Ends with the worst of their statuses.
here=$(cd "$(dirname "$0")" && pwd)
addresses=() names=() ranks=()
while read -r name pid cpus; do
	[ -n "$name" ] || continue
	names+=("$name")
	addresses+=("10.77.0.${name#node}:7000")
done <<<"${OC_TEST_HOSTS-}"
for ((r = 0; r < ${#names[@]}; r++)); do
	"$here/agent.sh" --words "${names[r]}" "$@" "$r" "${addresses[@]}" &
	ranks+=($!)
done
status=0
for rank in "${ranks[@]}"; do
	wait "$rank" || status=$?
done
exit $status
