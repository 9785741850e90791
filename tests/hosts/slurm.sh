#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slurm.sh COMMAND...: on the first host of hosts.sh: COMMAND with a Slurm over all hosts, which ends
# with it. Each host has 8 CPUs for it, whatever the machine has. Needs Debian's slurmctld, slurmd,
# slurm-client and munge.
set -eu
PATH=$PATH:/usr/sbin

[ -n "${OC_TEST_HOSTS-}" ] && [ $# -gt 0 ] ||
	{ echo "usage: hosts.sh N slurm.sh COMMAND..." >&2; exit 2; }
for tool in slurmctld slurmd srun munged; do
	[ -n "$(type -p $tool)" ] || { echo "skipped: Slurm over hosts: no command $tool"; exit 77; }
done
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d /tmp/onecopy-slurm.XXXXXX)
# Processes end with the hosts; files do not.
trap 'rm -rf "$place"' EXIT
trap 'exit 143' INT TERM HUP
mkdir "$place/state"
head -c 1024 /dev/urandom >"$place/key"
chmod 600 "$place/key"
names=$(awk 'NF { print $1 }' <<<"$OC_TEST_HOSTS" | paste -s -d ,)
export SLURM_CONF=$place/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=hosts
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$place/munge
StateSaveLocation=$place/state
SlurmctldPidFile=$place/slurmctld.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdSpoolDir=$place/%n
SlurmdPidFile=$place/%n.pid
SlurmdLogFile=$place/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# What a host has for itself.
TmpFS=/dev/shm
SlurmdParameters=config_overrides
NodeName=$names CPUs=8 State=UNKNOWN
PartitionName=all Nodes=$names Default=YES State=UP
END
# One for all hosts, which have their files in common.
munged --force --key-file="$place/key" --socket="$place/munge" --pid-file="$place/munged.pid" \
	--log-file="$place/munged.log" --seed-file="$place/munged.seed"
slurmctld -D >/dev/null 2>&1 &
while read -r name _; do
	[ -z "$name" ] || "$here/agent.sh" --words "$name" slurmd -D -N "$name" >/dev/null 2>&1 &
done <<<"$OC_TEST_HOSTS"
nodes=$(tr ',' '\n' <<<"$names" | wc -l)
for ((i = 0; i < 300; i++)); do
	ready=$(sinfo -h -N -t idle 2>/dev/null | wc -l)
	[ "$ready" -eq "$nodes" ] && break
	sleep 0.1
done
[ "$ready" -eq "$nodes" ] || {
	tail -n 20 "$place"/*.log >&2
	echo "slurm.sh: only $ready of $nodes nodes came up in 30 s; their logs are above" >&2
	exit 1
}
"$@"
