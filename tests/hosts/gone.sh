#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Hosts have what they should have for themselves, and of hosts whose script is killed nothing is left.
set -euo pipefail
cd "$(dirname "$0")"

# What the machine itself sees of hosts.
seen()
{
	grep -E '\.host|/etc/hosts' /proc/self/mountinfo || true
	grep -oE '^ *(switch|port[0-9]+):' /proc/net/dev || true
	ls /run/netns 2>/dev/null || true
}

fail()
{
	echo "FAILED: $1"
	exit 1
}

before=$(seen)
said=$(./hosts.sh 2 sh -c 'hostname; ./agent.sh node2 hostname; ./agent.sh -x node2 "ls /dev/shm; echo sees \$(grep -c node /etc/hosts)"') || {
	status=$?
	echo "$said"
	exit $status
}
[ "$said" = $'node1\nnode2\nsees 2' ] || fail "two hosts said '$said'"

number=86400.$$
coproc { exec ./hosts.sh 2 sh -c "./agent.sh node2 sleep $number & echo ready; exec sleep $number"; }
read -r -u "${COPROC[0]}" line
[ "$line" = ready ] || fail "the hosts did not begin: $line"
kill -KILL "$COPROC_PID"
for ((i = 0; i < 100; i++)); do
	pgrep -f "sleep $number" >/dev/null || break
	sleep 0.1
done
[ "$i" -lt 100 ] || fail "processes of the hosts are left after 10 s"
[ "$(seen)" = "$before" ] || fail "the machine's mounts, devices or namespaces have changed"
echo "hosts: two of them, and nothing left of those that were killed"
