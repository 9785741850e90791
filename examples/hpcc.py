#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge (Debian's package hpcc), of which one part's time is told.

Each rank becomes hpcc; the first one gives it its input in a folder of its own and reads what it says. hpcc
does all of its tests, small, and verifies them: linear equations, matrices transposed (PTRANS, by messages of a
rank's pieces), random updates, Fourier transforms, and messages between neighbors. Told are

ptrans  how long the slowest of five transpositions of a matrix took, which is what hpcc tells of them
ring    how long a rank took to exchange 2 MB with its two neighbors in rings of random order
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

RING_BYTES = 2e6  # of hpcc's messages for bandwidth
LINES = """HPLinpack benchmark input file

HPL.out
8 device out
1 problem sizes
{equations}
1 block sizes
80
0 row-major
1 grids
{rows}
{columns}
16.0 threshold
1 panel factorizations
2
1 recursive stopping criteria
4
1 panels in recursion
2
1 recursive panel factorizations
1
1 broadcasts
1
1 lookahead depths
1
2 swap
64 swapping threshold
0 L1
0 U
1 equilibration
8 alignment
#
1 more sizes for PTRANS
{matrix}
0 more block sizes for PTRANS
40
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--part", choices=["ptrans", "ring"], default="ptrans",
                        help="whose time is told (default ptrans)")
    parser.add_argument("--size", type=int, default=1024,
                        help="rows and columns of the matrix of ptrans (default 1024)")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of text")
    chosen = parser.parse_args()
    if not 256 <= chosen.size <= 20000:
        parser.error("--size must lie between 256 and 20000")
    return chosen


def place():
    """This rank and how many there are, by the launcher's variables."""
    for rank, ranks in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[ranks])
    sys.exit("hpcc.py: no rank is in the environment; run it under mpirun")


def run(program, ranks, size):
    """What hpcc sums up, by its names, and all that it says."""
    rows = max(p for p in range(1, ranks + 1) if p * p <= ranks and ranks % p == 0)
    with tempfile.TemporaryDirectory(prefix="onecopy-hpcc-") as folder:
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as out:
            out.write(LINES.format(equations=400, rows=rows, columns=ranks // rows, matrix=size))
        # MPICH's launcher speaks to a rank over a descriptor.
        ended = subprocess.run([program], cwd=folder, close_fds=False, check=False)
        if ended.returncode:
            sys.exit(f"hpcc.py: hpcc ended with status {ended.returncode}")
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8", errors="replace") as said:
            text = said.read()
    summary = text.split("Begin of Summary section.")[-1]
    values = dict(line.split("=", 1) for line in summary.split("\n") if "=" in line)
    found = values.get("CommWorldProcs", "no")
    if found != str(ranks):
        sys.exit(f"hpcc.py: {program} found {found} ranks, not {ranks}; is it of this MPI?")
    return values, text


def transposition(text, size):
    """Seconds, by the rate in the last of the lines "WALL rows columns ... time PASSED GB/s residual"."""
    rates = [words[9] for words in map(str.split, text.split("\n"))
             if words[:2] == ["WALL", str(size)] and words[8] == "PASSED"]
    if len(rates) != 5:
        sys.exit(f"hpcc.py: {len(rates)} of 5 transpositions of {size} rows are right")
    return 8 * size * size / (1e9 * float(rates[-1]))


def main():
    chosen = options()
    rank, ranks = place()
    program = shutil.which("hpcc")
    if not program:
        sys.exit("hpcc.py: hpcc is not on PATH; install the package hpcc")
    if rank:
        os.execv(program, [program])
    said, text = run(program, ranks, chosen.size)
    if chosen.part == "ptrans":
        seconds = transposition(text, chosen.size)
    else:
        seconds = RING_BYTES / (1e9 * float(said["RandomlyOrderedRingBandwidth_GBytes"]))
    # Success: what hpcc found right; the others are what it counts.
    right = said["Success"] == "1" and float(said["PTRANS_residual"]) < 16 and \
        said["MPIRandomAccess_Errors"] == "0" and float(said["MPIFFT_maxErr"]) < 1e-12
    if chosen.json:
        print(json.dumps({"program": "hpcc", "verified": right, "total_s": seconds}))
    else:
        print(f"{chosen.part}: {seconds * 1e3:.3f} ms\nverified: {'yes' if right else 'NO'}")
    sys.exit(0 if right else 1)


main()
