#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh ONECOPY: shells, Python and a compiler run under the shared heap as without it, and
# what they start has it too.
set -eu
onecopy=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/script" <<'END'
set -e
grep -q libonecopy-heap.so /proc/self/maps # of grep
for i in 1 2 3; do (echo "$i" | cat); done
[ "$(printf 'b\na\n' | sort | head -n 1)" = a ]
END
cat >"$dir/hello.c" <<'END'
#include <stdio.h>
int main(void) { return puts("compiled") < 0; }
END
run() {
	"$onecopy" run --quiet --shared-heap "$@"
}
[ "$(run bash "$dir/script" | tr -d '\n')" = 123 ]
run cc -O2 -o "$dir/hello" "$dir/hello.c"
[ "$(run "$dir/hello")" = compiled ]
[ "$(run python3 -c '
import os, subprocess
data = [bytearray(1 << 20) for i in range(20)]
pid = os.fork()
if pid == 0:
    os._exit(sum(len(d) for d in data) >> 20)
data[0][0] = 1
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]),
      subprocess.run(["echo", "spawned"], capture_output=True, text=True).stdout.strip())
')" = "20 spawned" ]
run sh -c 'exit 7' && exit 1
[ $? = 7 ]
# A shell that finds the command on PATH gives it a name without a folder.
PATH=${onecopy%/*}:$PATH
cd /
! onecopy info | grep -F "libonecopy-heap.so cannot be loaded"
