#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# surroundings.sh BUILD: `onecopy info` where little is there or allowed, and programs under
# `onecopy run` that it cannot reach. What cannot be set up here (name spaces, another user) is
# left out and counted.
set -u
build=$1
onecopy=$build/tools/onecopy/onecopy
deny=$build/tests/mpi/oc_mpi_deny
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
failed=0 rows=0
left_out=()
# What a test runner has left open would count against the limits below.
for fd in {3..20}; do eval "exec $fd>&-"; done

fail() {
	failed=1
	printf '%s\n' "$1; it said:" "$2"
}

# expect STATUS WORD WORD COMMAND [ARGUMENT...]: at once, and with no sign of a crash.
expect() {
	local status=$1 first=$2 second=$3 said got
	shift 3
	rows=$((rows + 1))
	said=$("$@" 2>&1 </dev/null)
	got=$?
	[ "$got" -eq "$status" ] && [[ $said == *"$first"*"$second"* && $said != *'(null)'* ]] && return
	fail "$*: expected status $status, '$first' and '$second'; status $got" "$said"
}

# shell SCRIPT: a command line with $0 for `onecopy`.
shell() { expect "$1" "$2" "$3" bash -c "$4" "$onecopy"; }

# mounted SCRIPT...: in a mount name space of its own.
spaces=(unshare -m)
[ "$(id -u)" -eq 0 ] || spaces=(unshare -rm)
mounted() {
	if "${spaces[@]}" mount -t tmpfs none /mnt 2>/dev/null; then
		expect "$1" "$2" "$3" "${spaces[@]}" bash -c "$4" "$onecopy"
	else
		left_out+=("no mount name space for: $4")
	fi
}

# other_user STATUS WORD WORD COMMAND...: as nobody, who must be able to reach the command.
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
other_user() {
	if "${nobody[@]}" test -x "$4" 2>/dev/null; then
		expect "$1" "$2" "$3" "${nobody[@]}" "${@:4}"
	else
		left_out+=("another user cannot run $4 (is this folder mode 700, or are you not root?)")
	fi
}

denied() {
	if [ -x "$deny" ]; then
		expect 0 "$2" "$3" "$deny" "$1" EPERM "$onecopy" info
	else
		left_out+=("$deny is missing, so nothing refuses $1")
	fi
}

empty() { printf 'mount -t tmpfs none %s; ' "$@"; }

expect 0 Mechanisms Topology "$onecopy" info
mounted 0 "$build/mpi/ompi" 'with its /proc' "$(empty /proc)"'$0 info'
mounted 0 "$build/mpi/pmpi" '"cma"' "$(empty /proc)"'cd ${0%/*} && ./onecopy info --json'
mounted 0 Topology 'unknown, as /sys/devices/system cannot be read' "$(empty /sys)"'$0 info'
mounted 0 'copy in, copy out' Topology "$(empty '-o ro /dev/shm')"'$0 info'
mounted 0 Mechanisms 'unknown, as /sys' "$(empty /proc /sys '-o ro /dev/shm')"'$0 info'
expect 0 Mechanisms Topology env -u HOME "$onecopy" info
expect 0 Mechanisms Topology env HOME=/proc "$onecopy" info
expect 0 Mechanisms Topology env -i "$onecopy" info
other_user 0 Mechanisms Topology "$onecopy" info

# A little room is enough, and of what there is too little the remedy is named.
for kib in 30000 60000 120000; do
	shell 0 'raise it' Topology "ulimit -v $kib; \$0 info"
done
shell 0 '--version' 'raise ulimit -n' 'ulimit -n 4; $0 info'
shell 0 '--version' Topology 'ulimit -n 5; $0 info'
shell 0 Mechanisms Topology 'ulimit -n 10; $0 info'
shell 0 'raise ulimit -f' Topology 'ulimit -f 0; $0 info'
denied process_vm_readv 'cma   refused' seccomp
denied memfd_create Mechanisms Topology
denied io_uring_setup 'a thread, while the program computes' 'io_uring is forbidden: by'
denied memfd_create,process_vm_readv,process_vm_writev,pidfd_open,fallocate,getrandom,madvise,prctl \
	refused Topology

# Streams that are closed, full or gone.
shell 0 Mechanisms Topology '$0 info <&-'
shell 0 Mechanisms Topology '$0 info 2>&-'
shell 1 'standard output: Bad file descriptor' '' '$0 info >&-'
shell 1 '' '' '$0 info <&- >&- 2>&-'
shell 1 'No space left' '' '$0 info >/dev/full'
shell 1 'No space left' '' '$0 info --json >/dev/full'
shell 0 141 '' '{ sleep 0.3; $0 info; echo $? >&2; } | true'
shell 0 'Broken pipe' 1 'trap "" PIPE; { sleep 0.3; $0 info; echo $? >&2; } | true'
# What is said goes to a closed stream, not into a file that got its number.
shell 0 '{"onecopy"' '' "\$0 run --stats-json $dir/stats true 2>&-; tr -d ' \\n' <$dir/stats"
grep -q 'onecopy:' "$dir/stats" && fail "a sentence is in the statistics' file" "$(cat "$dir/stats")"

# Tuning files that are none, or have no end.
mkfifo "$dir/pipe"
ln -s loop "$dir/loop"
truncate -s 5G "$dir/long" 2>/dev/null
: >"$dir/empty"
for file in pipe loop long empty .; do
	expect 2 "$dir/$file" '' "$onecopy" explain bcast --profile "$dir/$file"
done
expect 2 /dev/zero 'a regular file' "$onecopy" explain bcast --profile /dev/zero

# What the dynamic linker does not load our libraries into runs as ever, and the reason is told.
none='nothing was served: no process of the job left counters'
for heap in '' --shared-heap; do
	expect 7 'byte 1' "$none" "$onecopy" run $heap --stats "$build/tests/inputs/oc_plain"
	if [ -x "$build/tests/inputs/oc_plain_static" ]; then
		expect 7 'byte 1' 'linked statically' \
			"$onecopy" run $heap --stats "$build/tests/inputs/oc_plain_static"
	else
		left_out+=("there is no static C library")
	fi
	cp "$build/tests/inputs/oc_plain" "$dir/setuid" && chmod 4755 "$dir/setuid"
	other_user 7 'user 0, byte 1' 'is set-user-ID' "$onecopy" run $heap --stats "$dir/setuid"
done

[ ${#left_out[@]} -eq 0 ] || printf 'skipped: %s\n' "${left_out[@]}"
[ "$failed" -eq 0 ] && echo "$rows surroundings, each endured"
exit "$failed"
