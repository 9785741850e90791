#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge (Debian's package hpcc), of which one part's time is told.

Each rank becomes hpcc, in a folder of its own; the first one's has the input, and what hpcc says. hpcc
does all of its tests, small: linear equations, matrices transposed (PTRANS, by messages), random updates,
Fourier transforms and messages between neighbors. It verifies them, of the messages between neighbors
two bytes each. Told are

ptrans  how long the slowest of five transpositions of a matrix took, which is what hpcc tells of them
ring    how long 2 MB took to each of the two neighbors in rings of random order, one after the other
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

RING_BYTES = 2e6  # of hpcc's messages for bandwidth
LINES = """HPLinpack benchmark input file

HPL.out
8 device out
1 problem sizes
400
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


def fail(text):
    sys.exit(f"hpcc.py: {text}")


def place():
    """This rank and how many there are, by the launcher's variables."""
    for rank, ranks in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[ranks])
    return fail("no rank is in the environment; run it under mpirun")


def run(program, rank, ranks, size):
    """What hpcc says, on the first rank; of another MPI's launcher each rank would be the first."""
    rows = max(p for p in range(1, ranks + 1) if p * p <= ranks and ranks % p == 0)
    with tempfile.TemporaryDirectory(prefix="onecopy-hpcc-") as folder:
        if not rank:
            with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as out:
                out.write(LINES.format(rows=rows, columns=ranks // rows, matrix=size))
        # MPICH's launcher speaks to a rank over a descriptor.
        ended = subprocess.run([program], cwd=folder, close_fds=False, check=False,
                               stderr=subprocess.PIPE)
        sys.stderr.buffer.write(ended.stderr)
        if ended.returncode:
            fail(f"hpcc ended with status {ended.returncode}")
        if b"ERROR" in ended.stderr:
            fail(f"hpcc has found an error on rank {rank}, see above; is it of this MPI?")
        if rank:
            return ""
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8", errors="replace") as said:
            return said.read()


def values_of(text):
    """What it sums up, by its names."""
    summary = text.split("Begin of Summary section.")[-1]
    return dict(line.split("=", 1) for line in summary.split("\n") if "=" in line)


def transposition(text, size):
    """Seconds, by the rate in the last of the lines "WALL rows columns ... time PASSED GB/s residual"."""
    rates = [words[9] for words in map(str.split, text.split("\n"))
             if words[:2] == ["WALL", str(size)] and words[8] == "PASSED"]
    if len(rates) != 5 or float(rates[-1]) <= 0:
        fail(f"of 5 transpositions of {size} rows {len(rates)} are right, in a time that can be told")
    return 8 * size * size / (1e9 * float(rates[-1]))


def main():
    chosen = options()
    rank, ranks = place()
    if ranks < 2:
        fail("it needs two ranks or more")
    program = shutil.which("hpcc")
    if not program:
        fail("hpcc is not on PATH; install the package hpcc")
    # The folder goes, too, when a launcher ends the job.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    text = run(program, rank, ranks, chosen.size)
    if rank:
        return
    said = values_of(text)
    if said.get("CommWorldProcs") != str(ranks):
        fail(f"{program} found {said.get('CommWorldProcs', 'no')} ranks, not {ranks}; is it of this MPI?")
    seconds = transposition(text, chosen.size)
    if chosen.part == "ring":
        seconds = 2 * RING_BYTES / (1e9 * float(said["RandomlyOrderedRingBandwidth_GBytes"]))
    # Success: what hpcc found right; of the transform it tells the error alone.
    right = said["Success"] == "1" and "ERROR" not in text and seconds > 0 and \
        said["MPIRandomAccess_Errors"] == "0" and 0 <= float(said["MPIFFT_maxErr"]) < 1e-12
    if chosen.json:
        print(json.dumps({"program": "hpcc", "verified": right, "total_s": seconds}))
    else:
        print(f"{chosen.part}: {seconds * 1e3:.3f} ms\nverified: {'yes' if right else 'NO'}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
