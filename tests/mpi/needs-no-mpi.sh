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

# Stubs of an MPI, as serial programs have them in a library, are called as if it were not there; so
# are MPICH's library of the standard's own ABI and an MPI that names none.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/stub.c" <<-'C'
	#include <string.h>
	int MPI_Init(int *c, char ***v) { (void)c; (void)v; return 0; }
	int MPI_Allreduce(const void *in, void *out, int count, int type, int op, int comm)
	{ (void)type; (void)op; (void)comm; memcpy(out, in, 4 * count); return 0; }
	#ifdef TEXT
	#define ALSO(name) __attribute__((weak, alias("MPI_" #name)))
	ALSO(Init) int PMPI_Init(int *, char ***);
	ALSO(Allreduce) int PMPI_Allreduce(const void *, void *, int, int, int, int);
	int PMPI_Get_library_version(char *text, int *length)
	{ strcpy(text, TEXT "\n"); *length = strlen(text); return 0; }
	#endif
C
cat >"$scratch/main.c" <<-'C'
	int MPI_Init(int *, char ***);
	int MPI_Allreduce(const void *, void *, int, int, int, int);
	int main(int c, char **v)
	{
		int in[2] = { 3, 4 }, out[2] = { 0 };
		return MPI_Init(&c, &v) || MPI_Allreduce(in, out, 2, 0, 0, 0) || out[0] != 3 || out[1] != 4;
	}
C
case $1 in *asan* | *tsan*) preload= ;; *) preload=$1 ;; esac
for name in stub mpi_abi vendor; do
	case $name in
	stub) text= ;;
	mpi_abi) text='-DTEXT="MPICH Version: 5.0.0\nMPICH ABI: 17:0:5"' ;;
	vendor) text='-DTEXT="Vendor MPI 1.0"' ;;
	esac
	cc ${text:+"$text"} -shared -fPIC -o "$scratch/lib$name.so" "$scratch/stub.c"
	cc -o "$scratch/$name" "$scratch/main.c" "$scratch/lib$name.so"
	said=$(ONECOPY_LOG=info LD_PRELOAD=$preload "$scratch/$name" 2>&1) || {
		echo "$1: a program with $name is not as without it: $said" >&2
		exit 1
	}
	case $name-$said in
	stub- | mpi_abi-*"the standard's ABI"* | vendor-*"does not say"*"Vendor MPI 1.0"*) ;;
	*)
		[ -n "$preload" ] || continue
		echo "$1: of a program with $name it says '$said'" >&2
		exit 1
		;;
	esac
done
echo "$1 needs no MPI, but $(echo "$libraries" | wc -l) libraries"
