#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# agent.sh [OPTION...] HOST COMMAND...: as ssh, for launchers: runs the words, put together and read
# by a shell, on a host of hosts.sh; with --words each is a word of the command.
words=
while [ "${1#-}" != "$1" ]; do
	[ "$1" = --words ] && words=1
	shift
done
host=$1
shift
[ -n "$words" ] || set -- sh -c "$*"
while read -r name pid cpus; do
	[ "$name" = "$host" ] || continue
	# --root: that of the host, where this one is not that of its namespace either.
	exec taskset -c "$cpus" nsenter --net --uts --ipc --mount --root --wdns="$PWD" \
		--target "$pid" "$@"
done <<<"${OC_TEST_HOSTS-}"
echo "agent.sh: there is no host $host" >&2
exit 255
