#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# needs-no-mpi.sh FILE: the preload library must load into programs of any MPI and of none. So
# neither it nor what it needs brings functions of an MPI. Launchers and shells load it, too, so it
# needs nothing that they lack.
set -eu
readelf -d "$1" | grep -q 'NEEDED.*\[libc\.so\.' || {
	echo "$1: readelf does not show that it needs libc: it cannot be told what else it needs" >&2
	exit 1
}
libraries=$(ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p')
for library in $libraries; do
	if nm -D --defined-only "$library" | grep -qE ' P?MPI_Init(@|$)'; then
		echo "$1: it needs $library, which is an MPI" >&2
		exit 1
	fi
done
more=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' |
	grep -vE '^(libc|libm|libdl|librt|libpthread|lib[a-z]*san|ld-linux.*)\.so' || true)
[ -z "$more" ] || {
	echo "$1: every process under onecopy run would load" $more >&2
	exit 1
}
echo "$1 needs no MPI, but $(echo "$libraries" | wc -l) libraries"
