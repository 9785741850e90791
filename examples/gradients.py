#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training as the network sees it.

Rank 0 broadcasts the parameters; in every step each rank makes a gradient, all ranks sum the
gradients (Allreduce over the whole vector) and a scalar loss (a small Allreduce), and apply the
sum; every few steps rank 0 gathers statistics. The gradients are synthetic, the traffic is that of
a real job. Needs mpi4py only: numbers are multiples of 2^-10 small enough that float32 sums are
exact in any order, so every parameter on every rank is compared bit for bit with what it must be.
The sums of all steps are folded by exclusive or as well: a wrong bit that rounding would swallow
when a sum is added to a large parameter still shows.

The verdict travels by point-to-point messages: a broken collective cannot vouch for itself.
"""
import argparse
import json
import sys
from array import array
from collections import Counter

from mpi4py import MPI

PERIOD = 1021  # gradients repeat with this period: prime, so no buffer boundary falls on it
SCALE = 1024  # numbers are multiples of 1 / SCALE
LARGEST = 8  # in units of 1 / SCALE
STEP_SHIFT, RANK_SHIFT = 7, 13  # how far the pattern moves from step to step, rank to rank
GATHER_EVERY = 10

# In units of 1 / SCALE.
PATTERN = [(i * i * 31 + i * 7) % (2 * LARGEST + 1) - LARGEST for i in range(PERIOD)]
START = [i - PERIOD // 2 for i in range(PERIOD)]


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--floats", type=int, default=1 << 20, help="parameters (default 1 Mi)")
    parser.add_argument("--steps", type=int, default=500, help="training steps (default 500)")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of text")
    chosen = parser.parse_args()
    if not 1 <= chosen.floats <= 1 << 28:
        parser.error("--floats must lie between 1 and 2^28")
    if not 0 <= chosen.steps <= 5000:
        parser.error("--steps must lie between 0 and 5000")
    return chosen


def repeated(typecode, values, count):
    """An array of count elements: the values over and over."""
    return (array(typecode, values) * (count // len(values) + 1))[:count]


class Clock:
    """Calls collectives and keeps the time spent in each kind."""

    def __init__(self):
        self.spent = {}

    def call(self, collective, *args, **kwargs):
        start = MPI.Wtime()
        collective(*args, **kwargs)
        took = MPI.Wtime() - start
        name = collective.__name__.lower()
        self.spent[name] = self.spent.get(name, 0.0) + took


def loss_of(step, rank):
    return float((step * 3 + rank * 5) % 17)


def train(comm, chosen):
    """Returns (parameters, digest, losses, statistics gathered at rank 0), clock, total time."""
    rank, ranks, floats = comm.Get_rank(), comm.Get_size(), chosen.floats
    pattern = memoryview(repeated("f", [unit / SCALE for unit in PATTERN], floats + PERIOD))
    start_values = [unit / SCALE for unit in START] if rank == 0 else [0.0]
    parameters = repeated("f", start_values, floats)
    gradient, summed = array("f", bytes(4 * floats)), array("f", bytes(4 * floats))
    digest = array("i", bytes(4 * floats))
    gradient_view = memoryview(gradient)
    losses, gathered = [], []
    clock = Clock()

    comm.Barrier()
    start = MPI.Wtime()
    clock.call(comm.Bcast, [parameters, MPI.FLOAT], root=0)
    for step in range(chosen.steps):
        shift = (step * STEP_SHIFT + rank * RANK_SHIFT) % PERIOD
        gradient_view[:] = pattern[shift:shift + floats]
        clock.call(comm.Allreduce, [gradient, MPI.FLOAT], [summed, MPI.FLOAT], op=MPI.SUM)
        MPI.SUM.Reduce_local([summed, MPI.FLOAT], [parameters, MPI.FLOAT])
        MPI.BXOR.Reduce_local([summed, MPI.INT], [digest, MPI.INT])

        loss, total_loss = array("d", [loss_of(step, rank)]), array("d", [0.0])
        clock.call(comm.Allreduce, [loss, MPI.DOUBLE], [total_loss, MPI.DOUBLE], op=MPI.SUM)
        losses.append(total_loss[0])

        if step % GATHER_EVERY == 0:
            mine = array("d", [step, rank, gradient[0], gradient[-1]])
            all_of_them = array("d", bytes(32 * ranks)) if rank == 0 else array("d")
            clock.call(comm.Gather, [mine, MPI.DOUBLE],
                       [all_of_them, MPI.DOUBLE] if rank == 0 else None, root=0)
            gathered.append(all_of_them)
    return (parameters, digest, losses, gathered), clock, MPI.Wtime() - start


def gradient_value(step, rank, i):
    return PATTERN[((step * STEP_SHIFT + rank * RANK_SHIFT) % PERIOD + i) % PERIOD] / SCALE


def mistakes(comm, chosen, parameters, digest, losses, gathered):
    """Sentences about what is wrong on this rank; none if all is right."""
    rank, ranks, floats, steps = comm.Get_rank(), comm.Get_size(), chosen.floats, chosen.steps
    found = []

    # What a step's sum is, but for the shift; and how often each shift occurs.
    base = [sum(PATTERN[(i + r * RANK_SHIFT) % PERIOD] for r in range(ranks))
            for i in range(PERIOD)]
    bits = array("i", array("f", [unit / SCALE for unit in base]).tobytes())
    shifts = Counter(step * STEP_SHIFT % PERIOD for step in range(steps))

    expected, folded = list(START), [0] * PERIOD
    for shift, times in shifts.items():
        for i in range(PERIOD):
            expected[i] += times * base[(shift + i) % PERIOD]
            folded[i] ^= bits[(shift + i) % PERIOD] if times % 2 else 0
    for what, got, right in (
            ("parameter", parameters, repeated("f", [unit / SCALE for unit in expected], floats)),
            ("exclusive or of sums at", digest, repeated("i", folded, floats))):
        if got.tobytes() != right.tobytes():
            i = next(i for i in range(floats) if got[i] != right[i])
            found.append(f"{what} {i} is {got[i]}, must be {right[i]}")

    for step in range(steps):
        must = sum(loss_of(step, r) for r in range(ranks))
        if losses[step] != must:
            found.append(f"loss of step {step} is {losses[step]}, must be {must}")
            break

    for n, values in enumerate(gathered if rank == 0 else []):
        step = n * GATHER_EVERY
        must = array("d")
        for r in range(ranks):
            must.extend([step, r, gradient_value(step, r, 0), gradient_value(step, r, floats - 1)])
        if values != must:
            found.append(f"statistics of step {step} differ from what the ranks sent")
            break
    return found


def main():
    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    chosen = options()
    trained, clock, total = train(comm, chosen)
    found = mistakes(comm, chosen, *trained)
    if found:
        print(f"gradients: rank {rank}: {found[0]}", file=sys.stderr, flush=True)

    if rank != 0:
        comm.send((len(found), total, clock.spent), dest=0)
        return 1 if found else 0

    reports = [(len(found), total, clock.spent)]
    reports += [comm.recv(source=r) for r in range(1, ranks)]
    wrong = sum(1 for mistaken, _, _ in reports if mistaken)
    total = max(t for _, t, _ in reports)
    per_rank = [sum(spent.values()) for _, _, spent in reports]
    by_collective = {name: max(spent.get(name, 0.0) for _, _, spent in reports)
                     for name in clock.spent}

    if chosen.json:
        print(json.dumps({"program": "gradients", "floats": chosen.floats, "steps": chosen.steps,
                          "ranks": ranks, "total_s": total,
                          "mpi_s": sum(per_rank) / ranks, "comm_s_max": max(per_rank),
                          "comm_s_min": min(per_rank),
                          "collectives_s": by_collective, "ranks_wrong": wrong,
                          "verified": wrong == 0}))
    else:
        print(f"gradients: {chosen.floats} parameters, {chosen.steps} steps, {ranks} ranks")
        print(f"total time       {total:10.4f} s")
        print(f"in collectives   {max(per_rank):10.4f} s on the slowest rank, "
              f"{min(per_rank):.4f} s on the fastest, {sum(per_rank) / ranks:.4f} s on average")
        for name, spent in by_collective.items():
            print(f"  {name:<14} {spent:10.4f} s")
        if wrong:
            print(f"verified: NO, {wrong} of {ranks} ranks hold wrong results")
        else:
            print("verified: yes, every parameter, loss and statistic on every rank is exact")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
