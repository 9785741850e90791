#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every gate can fail: each gets a small tree that is right, and the same tree with one fault in it,
# which it must name by file and line.
gates=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/tree
export GATE_ROOT=$tree
failed=0
spdx='/* SPDX-License-Identifier: BSD-3-Clause */'

# put FILE LINES...
put() {
	local folder=$tree/$1
	folder=${folder%/*}
	[ -d "$folder" ] || mkdir -p "$folder"
	printf '%s\n' "${@:2}" >"$tree/$1"
}

make_good_tree() {
	mkdir "$tree"
	cp "$gates/../../.clang-format" "$tree"
	put include/onecopy/onecopy.h "$spdx" 'int oc_version(void);'
	put lab/inspect/inspect.h "$spdx" 'int oc_inspect(void);'
	put kernel/good.c "$spdx" 'int good(void);'
	put kernel/guest/faults.sh '#!/bin/bash' '# SPDX-License-Identifier: BSD-3-Clause' \
		"fault named together good.c a_test says <<'PERL'" 's{good}{bad}' 'PERL'
	put src/base/log.h "$spdx" '#include <stdio.h>'
	put src/os/os.h "$spdx" '#include "base/log.h"'
	put src/team/team.h "$spdx" '#include "os/os.h"' '#include "peer.h"'
	put src/team/peer.h "$spdx"
	put src/plan/plan.h "$spdx" '#include "pattern/ring.h"'
	put src/pattern/ring.h "$spdx"
	put src/model/model.h "$spdx" '#include "base/log.h"'
	put src/copy/memcpy.h "$spdx"
	put lab/tune/tune.h "$spdx" '#include "copy/memcpy.h"'
	put src/base/log_test.c "$spdx" '#include "team/team.h"'
	put mpi/ompi/component.c "$spdx" '#include <onecopy/onecopy.h>' '' \
		'#include "base/log.h"' '#include "ompi/mca/coll/coll.h"'
	put tools/onecopy/main.c "$spdx" '#include "lab/inspect/inspect.h"'
	put doc.md 'See `src/base/log.h`, `src/*/plan.h`, `team.h`, `src/base/`, `stdio.h`, `/proc/PID/fd`,' \
		'`on/off`, `src/<coll>/x.c`, `build/release/x.c` and `src/os/os.h:2`.' \
		'```' '`src/gone.c`' '```'
}

good_tree() {
	rm -rf "$tree"
	cp -r "$scratch/good" "$tree"
}

# passes GATE: on the tree as it is
passes() {
	local output
	output=$("$gates/$1" 2>&1) && return
	echo "self-test.sh:1: $1 fails on a tree that is right:"
	echo "$output"
	failed=1
}

# catches GATE FILE:LINE: a fault, and names its place
catches() {
	local output
	if output=$("$gates/$1" 2>&1); then
		echo "self-test.sh:1: $1 does not fail on a fault in $2"
		failed=1
	elif ! grep -q "^$2:" <<<"$output"; then
		echo "self-test.sh:1: $1 fails, but does not name $2:"
		echo "$output"
		failed=1
	fi
	good_tree
}

# refuses GATE: a tree whose files git does not list
refuses() {
	local output
	if output=$("$gates/$1" 2>&1); then
		echo "self-test.sh:1: $1 passes although git lists no file"
		failed=1
	elif ! grep -q "no files are known" <<<"$output"; then
		echo "self-test.sh:1: $1 fails, but does not say that git lists no file:"
		echo "$output"
		failed=1
	fi
}

make_good_tree
cp -r "$tree" "$scratch/good"
for gate in format.sh include-order.sh doc-paths.sh seeds.sh spdx.sh words.sh; do
	passes "$gate"
	put .git 'gitdir: /nowhere'
	refuses "$gate"
	rm "$tree/.git"
done

put src/base/bad.c "$spdx" '' 'int  f( void );'
catches format.sh src/base/bad.c:3
put src/base/bad.c "$spdx" '#include "os/os.h"'
catches include-order.sh src/base/bad.c:2
put src/topo/bad.c "$spdx" '' '#include "team/team.h"'
catches include-order.sh src/topo/bad.c:3
put src/pattern/bad.c "$spdx" '#include "os/os.h"'
catches include-order.sh src/pattern/bad.c:2
put lab/tune/bad.c "$spdx" '#include "copy/copy.h"'
put src/copy/copy.h "$spdx"
catches include-order.sh lab/tune/bad.c:2
put src/os/bad.c "$spdx" '#include <onecopy/onecopy.h>'
catches include-order.sh src/os/bad.c:2
put src/unknown/bad.c "$spdx" '#include "base/log.h"'
catches include-order.sh src/unknown/bad.c:2
put mpi/ompi/bad.c "$spdx" '#  include "team/team.h"'
catches include-order.sh mpi/ompi/bad.c:2
put mpi/ompi/bad.c "$spdx" '#include "lab/inspect/inspect.h"'
catches include-order.sh mpi/ompi/bad.c:2
put src/plan/bad.c "$spdx" '#include "lab/inspect/inspect.h"'
catches include-order.sh src/plan/bad.c:2
put lab/unknown/bad.c "$spdx" '#include "plan/plan.h"'
catches include-order.sh lab/unknown/bad.c:2
put lab/tune/bad.c "$spdx" '#include "lab/check/check.h"'
put lab/check/check.h "$spdx"
catches include-order.sh lab/tune/bad.c:2
put tools/onecopy/bad.c "$spdx" '#include "../../src/base/log.h"'
catches include-order.sh tools/onecopy/bad.c:2
put docs/bad.md '' 'Look at `src/base/gone.c`.'
catches doc-paths.sh docs/bad.md:2
put bad.md 'Look at `gone.c`.'
catches doc-paths.sh bad.md:1
put src/base/bad.c '' '' '' "$spdx"
catches spdx.sh src/base/bad.c:1
put cmake/bad.sh '#!/bin/bash'
catches spdx.sh cmake/bad.sh:1
put src/base/bad.c "$spdx" '' "/* TO""DO: later */"
catches words.sh src/base/bad.c:3
put bad.md "FIX""ME"
catches words.sh bad.md:1
put kernel/good.c "$spdx" 'int better(void);'
catches seeds.sh kernel/guest/faults.sh:3

exit "$failed"
