#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# COMMAND [ARGUMENT...]: an experiment that is interrupted once it is at 10 % or more.
# Prints what it said; 1: it ended otherwise than with status 1, or was gone before.
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.out"' EXIT
"$@" >"$log.out" 2>"$log" &
pid=$!
until grep -q ' [1-9][0-9]% ' "$log"; do
	kill -0 "$pid" || exit 1
	sleep 0.05
done
kill -TERM "$pid"
wait "$pid"
status=$?
cat "$log" "$log.out"
[ "$status" -eq 1 ]
