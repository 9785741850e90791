#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and tests in Debian 13, on a machine with Debian 12: check-debian13.sh [COMMAND...].
#
# The system is a folder, build/debian13/root, made by mmdebstrap at the first time and kept; the
# builds of this tree in it are in build/debian13/build. Without a COMMAND it is
# `CHECK_ONLY=release cmake/check.sh`, whose last line is "N passed, N failed"; `bash` looks around,
# and `ctest --test-dir build/check -R NAME` runs a test.
#
# Mounts and processes are in namespaces of their own, which the kernel ends with the first process
# in them: nothing of them is left, however this script ends. The tree is mounted read-only.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
place=$tree/build/debian13
root=$place/root

fail() {
	echo "check-debian13.sh: $*" >&2
	exit 1
}

# ---- in the namespaces: process 1, root -----------------------------------------------------

inside() {
	# Process 1 hears only of signals that it asks for.
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	# What is "/" there has to be a mount: `unshare --mount` in it needs that.
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc" 2>/dev/null ||
		fail "/proc cannot be mounted in a PID namespace of its own, as in some containers;" \
			"run this on the machine itself"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	# Each time empty: what a launcher leaves there is named by its process's number.
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mkdir -p "$root$tree" "$place/build"
	mount --bind "$tree" "$root$tree"
	mount -o remount,bind,ro "$root$tree"
	mount --bind "$place/build" "$root$tree/build"
	# The host's answers, which may be others than when the root was made.
	cp --remove-destination -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
	# In the background: a signal is answered while it runs.
	env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
		CHECK_ONLY="${CHECK_ONLY:-release}" \
		chroot "$root" /bin/bash -c \
		'cd "$1" && shift && cmake/setup-debian.sh && exec "$@"' bash "$tree" "$@" <&0 &
	wait $!
}

if [ "${1:-}" = --inside ]; then
	shift
	inside "$@"
	exit
fi

# ---- the root -------------------------------------------------------------------------------

if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; } &&
		exec sudo --preserve-env=CHECK_ONLY,MIRROR "$tree/cmake/check-debian13.sh" "$@"
	fail "a folder becomes a system for root alone; run as root: make check-debian13"
fi

# The mirror of this machine, so what it can reach.
find_mirror() {
	local found
	found=$(apt-get indextargets --format '$(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
	echo "${MIRROR:-${found:-http://deb.debian.org/debian}}"
}

make_root() {
	local mirror options=()
	mirror=$(find_mirror)
	cmake/setup-debian.sh mmdebstrap
	echo "check-debian13.sh: making a Debian 13 from $mirror in $root (a minute or two)"
	# No answer is an answer after 20 s; these stay in the root, for what it installs later.
	options=(--aptopt='Acquire::http::Timeout "20"' --aptopt='Acquire::https::Timeout "20"'
		--aptopt='Acquire::Retries "1"'
		--aptopt='DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; }')
	while read -r proxy; do
		options+=(--aptopt="$proxy")
	done < <(apt-config dump | grep -iE '^Acquire::https?::Proxy ')
	rm -rf "$root" "$root.new"
	mkdir -p "$place"
	# Its mounts in a namespace, too: what is left of a root is removed. Tests mount.
	if ! timeout --foreground 1800 unshare --mount --propagation private \
		mmdebstrap --quiet --variant=apt --include=ca-certificates,mount "${options[@]}" \
		trixie "$root.new" "$mirror" >"$place/root.log" 2>&1; then
		rm -rf "$root.new"
		tail -n 5 "$place/root.log" >&2
		fail "mmdebstrap failed (its last lines are above); is $mirror reachable, and are" \
			"debian-archive-keyring's keys those of Debian 13? MIRROR=URL names another one"
	fi
	mv "$root.new" "$root"
}

trap 'rm -rf "$root.new"; exit 130' INT TERM HUP
[ -d "$root" ] || make_root
trap - INT TERM HUP
[ $# -gt 0 ] || set -- cmake/check.sh
# What is installed into the root says so, with the network's error, and ends.
exec unshare --mount --propagation private --pid --fork --kill-child \
	"$tree/cmake/check-debian13.sh" --inside "$@"
