#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# installed.sh BUILD SCRATCH: an installation of the build, with components for two versions of Open MPI:
# programs get the one for the launcher that starts them. 77: the build has no component.
unset DESTDIR
build=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch/other"
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/log" || { tail "$scratch/log"; exit 1; }
onecopy=$scratch/prefix/bin/onecopy
own=$(dirname "$(find "$scratch/prefix" -name mca_coll_onecopy.so)")
[ "$own" != . ] || { echo "skipped: the build has no component for Open MPI"; exit 77; }
if [ "${own##*-}" = 5.0 ]; then version=4.1.6; else version=5.0.7; fi
# The launcher of this build's version comes first, whatever else there is.
mkdir "$scratch/first"
printf '#!/bin/sh\necho "mpirun (Open MPI) %s.4"\n' "${own##*-}" >"$scratch/first/mpirun"
chmod +x "$scratch/first/mpirun"
PATH=$scratch/first:$PATH
other=${own%-*}-${version%.*}
# A launcher of the other version, which starts env.
cat >"$scratch/other/mpirun" <<EOF
#!/bin/sh
if [ "\$1" = --version ]; then echo "mpirun (Open MPI) $version"; else env; fi
EOF
chmod +x "$scratch/other/mpirun"

# expect WHAT FOLDER COMMAND...: where programs that COMMAND starts find the component.
expect() {
	local what=$1 folder=$2 found
	shift 2
	found=$("$onecopy" run -q "$@" | sed -n 's/^OMPI_MCA_mca_base_component_path=\([^:]*\):.*/\1/p')
	[ "$found" = "$folder" ] || { echo "FAILED $what: $found, not $folder"; exit 1; }
}

served() {
	PATH=$scratch/other:$PATH "$onecopy" info --json |
		grep -A 6 "\"version\": \"$version\"" | grep -q '"served": true'
}

expect "with one component" "$own" env
expect "with one component, for another launcher" "$own" "$scratch/other/mpirun"
served && { echo "FAILED: info says that $version is served"; exit 1; }
cp -r "$own" "$other"
echo "/a folder/pmix" >"$other/pmix-components"
expect "the launcher by its path" "$other" "$scratch/other/mpirun"
cp "$scratch/other/mpirun" "$scratch/other/orterun"
expect "the launcher by another name" "$other" "$scratch/other/orterun"
expect "the launcher on PATH" "$own" env
PATH=$scratch/other:$PATH expect "another launcher on PATH" "$other" sh -c env
served || { echo "FAILED: info does not say that $version is served"; exit 1; }
"$onecopy" run -q "$scratch/other/mpirun" | grep -qx 'PMIX_MCA_mca_base_component_path=/a folder/pmix' ||
	{ echo "FAILED: PMIx's components"; exit 1; }
ONECOPY_COMPONENT_DIR=$own expect "a folder that is named" "$own" "$scratch/other/mpirun"
rm -rf "$scratch"
echo "each launcher has its component"
