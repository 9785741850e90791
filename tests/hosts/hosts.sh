#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh N COMMAND...: runs COMMAND on the first of N hosts that are made of this machine, node1 to
# nodeN, and takes them away. README.md says what a host is. OC_TEST_HOSTS_RATE (1gbit, as tc(8) has it):
# what each host can send, and be sent. OC_TEST_HOSTS_BUFFERS: bytes that a TCP socket's buffers hold.
#
# Everything hangs on processes: a namespace without a name is gone with its last process, and a
# device with its namespace. All processes of the hosts are in one PID namespace, whose first one
# ends with this script, however that ends: so nothing is left, also after a SIGKILL.
set -euo pipefail

skip()
{
	echo "skipped: hosts of network namespaces: $1"
	exit 77
}

# The inner part, in a network namespace that is the switch between the hosts.
if [ "${1-}" = --inside ]; then
	here=$2 hosts=$3
	shift 3
	ip link set lo up
	ip link add switch type bridge forward_delay 0 mcast_snooping 0
	ip link set switch up
	# The switch, too, is there as long as a process is in it.
	sleep infinity &
	cpus=($(taskset -cp $$ | sed 's/.*: //; s/,/\n/g' |
		awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }'))
	names=
	for ((i = 1; i <= hosts; i++)); do
		names+="10.77.0.$i node$i"$'\n'
	done
	# Jobs of several runs at a time have the same hosts and process numbers.
	export OC_TEST_HOSTS= TMPDIR=/dev/shm
	for ((i = 1; i <= hosts; i++)); do
		exec {held}< <(exec unshare --net --uts --ipc --mount \
			"$here/hold.sh" "node$i" "$names")
		read -r -u "$held" pid
		ip link add "port$i" type veth peer name eth0 netns "$pid"
		ip link set "port$i" master switch up
		nsenter --net --target "$pid" sh -c "ip link set lo up && ip link set eth0 up &&
			ip address add 10.77.0.$i/16 dev eth0"
		if [ -n "${OC_TEST_HOSTS_RATE-}" ]; then
			limit="root tbf rate $OC_TEST_HOSTS_RATE burst 128k limit 4m"
			tc qdisc add dev "port$i" $limit
			nsenter --net --target "$pid" tc qdisc add dev eth0 $limit
		fi
		if [ -n "${OC_TEST_HOSTS_BUFFERS-}" ]; then
			nsenter --net --target "$pid" sh -c "for which in rmem wmem; do
				echo 4096 $OC_TEST_HOSTS_BUFFERS $OC_TEST_HOSTS_BUFFERS \
					>/proc/sys/net/ipv4/tcp_\$which; done"
		fi
		# A host has its share of the CPUs.
		set_of=
		for ((c = (i - 1) % ${#cpus[@]}; c < ${#cpus[@]}; c += hosts)); do
			set_of+=${set_of:+,}${cpus[c]}
		done
		OC_TEST_HOSTS+="node$i $pid $set_of"$'\n'
	done
	# This shell stays: it is the first process, and takes in the others' orphans.
	status=0
	"$here/agent.sh" --words node1 "$@" || status=$?
	exit $status
fi

here=$(cd "$(dirname "$0")" && pwd)
hosts=${1-}
[[ $# -gt 1 && $hosts =~ ^([1-9]|1[0-6])$ ]] ||
	{ echo "usage: hosts.sh N COMMAND..., N from 1 to 16" >&2; exit 2; }
shift
for tool in ip unshare nsenter taskset ${OC_TEST_HOSTS_RATE:+tc}; do
	[ -n "$(PATH=$PATH:/usr/sbin:/sbin type -p $tool)" ] || skip "no command $tool"
done
PATH=$PATH:/usr/sbin:/sbin
why=$(unshare --net --uts --ipc --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm &&
	ip link add switch type bridge' 2>&1) || skip "it needs root, and a kernel with bridges (${why%%$'\n'*})"
if [ -n "${OC_TEST_HOSTS_RATE-}" ]; then
	why=$(unshare --net sh -c "ip link add one type veth peer name two &&
		tc qdisc add dev one root tbf rate $OC_TEST_HOSTS_RATE burst 128k limit 4m" 2>&1) ||
		skip "it needs tc and a kernel with its queue tbf (${why%%$'\n'*})"
fi
exec unshare --net --pid --fork --kill-child --mount-proc "$here/hosts.sh" --inside "$here" "$hosts" "$@"
