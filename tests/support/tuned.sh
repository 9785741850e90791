#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# COMMAND DIR: `COMMAND tune` writes a file, puts aside one that nobody can read or that jobs refuse for
# a cell, and keeps what somebody has added; names in it are text to whoever shows or draws them.
set -eu
command=$1
mkdir -p "$2"
cd "$2"
rm -rf tuned.json* plots made

echo "mine" >tuned.json
"$command" tune --quick --seconds 0.01 --output tuned.json
[ "$(cat tuned.json.before)" = mine ]
# shellcheck disable=SC2016
python3 - <<'EDIT'
import json
with open("tuned.json") as file:
    model = json.load(file)
model["name"] = "node`touch made`'s \"own\"/$(touch made)"
model["cells"] = [{"collective": "scatter", "algorithm": "mpi"}]
model["terms"]["net.latency"] = {"value": 1e-6, "unit": "s", "source": "by hand"}
with open("tuned.json", "w") as file:
    json.dump(model, file)
EDIT
if command -v gnuplot >/dev/null; then
	"$command" model bcast --bytes 4K,64K --profile ./tuned.json --plot plots >/dev/null
	ls plots/*.svg plots/*.png
	[ -z "$(find . -name made)" ] || { echo "a name was run" >&2; exit 1; }
fi
"$command" tune --quick --seconds 0.001 --output tuned.json --json >/dev/null
python3 - <<'LOOK'
import json
with open("tuned.json") as file:
    model = json.load(file)
assert model["cells"] == [{"collective": "scatter", "algorithm": "mpi"}], model["cells"]
assert model["terms"]["net.latency"]["source"] == "by hand"
LOOK
sed -i 's/"mpi"/"gone"/' tuned.json
"$command" tune --quick --seconds 0.001 --output tuned.json 2>&1 | grep 'found "scatter" with "gone"'
grep -q '"gone"' tuned.json.before
if grep -q '"gone"' tuned.json; then exit 1; fi
echo "kept"
