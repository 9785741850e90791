#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that onecopy's build, tests and demo use and that are missing: or,
# with arguments, those. With nothing missing it touches neither the network nor the package
# database.
set -u

packages=(build-essential cmake ninja-build pkg-config git clang clang-format
	libhwloc-dev libjansson-dev liburing-dev libcmocka-dev libdw-dev libseccomp-dev
	libmimalloc-dev libjemalloc2 libgoogle-perftools4
	libopenmpi-dev openmpi-bin libmpich-dev mpich gfortran python3-mpi4py hpcc gnuplot-nox
	iproute2)
# Both MPIs: Debian's alternatives give mpirun, mpicc and pkg-config's ompi to Open MPI (priority 50
# against 40); MPICH's are mpirun.mpich and mpicc.mpich. An administrator may have turned that
# round, so what must be a certain one is called by its full name, mpirun.openmpi.

[ $# -eq 0 ] || packages=("$@")

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	for tool in cmake ninja pkg-config mpicc; do
		if ! command -v "$tool" >/dev/null; then
			echo "onecopy: $tool is missing and this is not Debian, so it cannot be" \
				"installed from here; install the equivalents of: ${packages[*]}" >&2
			exit 1
		fi
	done
	echo "onecopy: not Debian; going on with the tools that are installed" >&2
	exit 0
fi

# Also what another package provides: libgoogle-perftools4 is libgoogle-perftools4t64 in Debian 13.
installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' |
	sed -n 's/^installed //p' | sed 's/ ([^)]*)//g; s/,//g' | tr '\n' ' ')"
missing=()
for package in "${packages[@]}"; do
	[[ $installed == *" $package "* ]] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		can=no
	elif sudo -n true 2>/dev/null; then
		can=yes
		as_root=(sudo -n)
	elif [ -t 0 ] && [ -t 2 ]; then
		can=yes # sudo asks for the password on the terminal
		as_root=(sudo)
	else
		can=no
	fi
	if [ "$can" = no ]; then
		echo "onecopy: packages are missing and installing them needs root; run as root:" \
			"$by_hand" >&2
		exit 1
	fi
fi

echo "onecopy: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>"$log" 2>&1
}
if ! apt update || ! apt install -y --no-install-recommends "${missing[@]}"; then
	tail -n 20 "$log" >&2
	echo "onecopy: apt-get failed (its last lines are above); is the network reachable?" \
		"By hand, as root: $by_hand" >&2
	exit 1
fi
