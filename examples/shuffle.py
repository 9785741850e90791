#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The shuffle of a data-parallel job: each epoch deals the records of a table out anew.

A record of 4 KiB is a number, a value and a payload (a derived type). In an epoch each record goes to the rank that
a hash of (epoch, number) names. What goes to a rank lies here and there in the table, so it is sent
from where it is by a type of its own that lists the places: MPI_Alltoallw. It is nonblocking, and
while it is under way the ranks sum up the epoch before (an MPI_Iallreduce that is outstanding at the
same time). How much comes from whom is told by an Alltoall before; at the end rank 0 gets all
numbers by MPI_Gatherv. Needs mpi4py only.

Value and payload are functions of a record's number, and all sums are whole numbers, so everything is verified
exactly: no record is lost, doubled or damaged, and each is where the last epoch's hash put it. The
verdict travels by point-to-point messages: a broken collective cannot vouch for itself.
"""
import argparse
import json
import struct
import sys
from array import array

from mpi4py import MPI

PAYLOAD = 4080
RECORD = struct.Struct(f"=qd{PAYLOAD}s")  # number, value, payload
PERIOD = 1021  # of the payloads: prime, so no buffer boundary falls on it
FILLER = bytes((i * i * 31 + i * 7) & 255 for i in range(PERIOD)) * (PAYLOAD // PERIOD + 2)
WORD = (1 << 64) - 1


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=1000,
                        help="records of the table (default 1000)")
    parser.add_argument("--epochs", type=int, default=20, help="shuffles (default 20)")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of text")
    chosen = parser.parse_args()
    if not 1 <= chosen.records <= 1 << 20:
        parser.error("--records must lie between 1 and 2^20")
    if not 1 <= chosen.epochs <= 10000:
        parser.error("--epochs must lie between 1 and 10000")
    return chosen


def owner(epoch, number, ranks):
    """The rank that has this record after this epoch."""
    x = (epoch * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9 + 1) & WORD
    x = ((x ^ (x >> 29)) * 0x94D049BB133111EB) & WORD
    return (x >> 33) % ranks


def record(number):
    start = number % PERIOD
    return number, number * 3.0, FILLER[start:start + PAYLOAD]


def record_type():
    """One record as MPI sees it, as long as it is in memory."""
    fields = MPI.Datatype.Create_struct([1, 1, PAYLOAD], [0, 8, 16],
                                        [MPI.INT64_T, MPI.DOUBLE, MPI.BYTE])
    whole = fields.Create_resized(0, RECORD.size)
    fields.Free()
    return whole.Commit()


class Clock:
    """The time spent inside of MPI."""

    def __init__(self):
        self.spent = 0.0

    def call(self, function, *args, **kwargs):
        start = MPI.Wtime()
        result = function(*args, **kwargs)
        self.spent += MPI.Wtime() - start
        return result


def places_of(table, epoch, ranks):
    """For each rank the places of its records in the table."""
    places = [[] for _ in range(ranks)]
    for place, (number, _, _) in enumerate(RECORD.iter_unpack(table)):
        places[owner(epoch, number, ranks)].append(place)
    return places


def with_room(spare, count):
    """A table for so many records: the spare one, if it is large enough.

    A table of its own for each epoch would cost more than the shuffle, in page faults, whenever the
    allocator gives the one before back to the kernel; that hangs on what else lies in the heap.
    """
    if len(spare) >= count * RECORD.size:
        return spare
    return bytearray((count + count // 4) * RECORD.size)


def start_shuffle(comm, clock, kind, table, spare, places):
    """Returns the new table, still being filled, its request and what to free after it."""
    ranks = comm.Get_size()
    leaving = array("i", [len(of_rank) for of_rank in places])
    coming = array("i", bytes(4 * ranks))
    clock.call(comm.Alltoall, [leaving, MPI.INT], [coming, MPI.INT])
    fresh = with_room(spare, max(sum(coming), 1))
    send_types = [kind.Create_indexed_block(1, of_rank).Commit() for of_rank in places]
    starts = [sum(coming[:r]) * RECORD.size for r in range(ranks)]
    request = clock.call(comm.Ialltoallw,
                         [table, ([1] * ranks, [0] * ranks), send_types],
                         [fresh, (list(coming), starts), [kind] * ranks])
    return fresh, sum(coming), request, send_types


def summed(table, count):
    """Of the records in a table: how many, and the sums of their numbers and values."""
    sums = array("d", [float(count), 0.0, 0.0])
    for number, value, _ in RECORD.iter_unpack(memoryview(table)[:count * RECORD.size]):
        sums[1] += number
        sums[2] += value
    return sums


def expected_sums(records):
    numbers = sum(range(records))
    return array("d", [float(records), float(numbers), 3.0 * numbers])


def shuffle(comm, chosen):
    """Returns the last table, how many records it has, wrong sums of all epochs, clock, time."""
    rank, ranks = comm.Get_rank(), comm.Get_size()
    kind, clock, must = record_type(), Clock(), expected_sums(chosen.records)
    mine = range(chosen.records * rank // ranks, chosen.records * (rank + 1) // ranks)
    table, count = bytearray(b"".join(RECORD.pack(*record(n)) for n in mine)), len(mine)
    spare, wrong = bytearray(), 0

    comm.Barrier()
    begin = MPI.Wtime()
    for epoch in range(chosen.epochs):
        held = memoryview(table)[:count * RECORD.size]
        places = places_of(held, epoch, ranks)
        fresh, fresh_count, moved, types = start_shuffle(comm, clock, kind, table, spare,
                                                          places)
        sums, totals = summed(table, count), array("d", bytes(24))
        added = clock.call(comm.Iallreduce, [sums, MPI.DOUBLE], [totals, MPI.DOUBLE], op=MPI.SUM)
        clock.call(MPI.Request.Waitall, [moved, added])
        wrong += totals != must
        for datatype in types:
            datatype.Free()
        held.release()
        table, spare, count = fresh, table, fresh_count
    total = MPI.Wtime() - begin
    kind.Free()
    return table, count, wrong, clock, total


def mistakes(comm, chosen, table, count, wrong):
    """Sentences about what is wrong on this rank; none if all is right."""
    rank, ranks = comm.Get_rank(), comm.Get_size()
    found = [f"the sums of {wrong} epochs are wrong"] if wrong else []
    numbers = array("q")

    for whole in RECORD.iter_unpack(memoryview(table)[:count * RECORD.size]):
        numbers.append(whole[0])
        if whole != record(whole[0]):
            found.append(f"record {whole[0]} is damaged")
        elif owner(chosen.epochs - 1, whole[0], ranks) != rank:
            found.append(f"record {whole[0]} belongs to another rank")

    counts = array("i", bytes(4 * ranks)) if rank == 0 else None
    comm.Gather([array("i", [count]), MPI.INT], [counts, MPI.INT] if rank == 0 else None)
    if rank != 0:
        comm.Gatherv([numbers, MPI.INT64_T], None)
        return found
    everything = array("q", bytes(8 * chosen.records))
    if sum(counts) != chosen.records:
        found.append(f"{sum(counts)} records are there, not {chosen.records}")
        everything = array("q", bytes(8 * sum(counts)))
    starts = [sum(counts[:r]) for r in range(ranks)]
    comm.Gatherv([numbers, MPI.INT64_T], [everything, (list(counts), starts), MPI.INT64_T])
    if sorted(everything) != list(range(chosen.records)):
        found.append("a record is lost or doubled")
    return found


def main():
    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    chosen = options()
    table, count, wrong, clock, total = shuffle(comm, chosen)
    found = mistakes(comm, chosen, table, count, wrong)
    if found:
        print(f"shuffle: rank {rank}: {found[0]}", file=sys.stderr, flush=True)

    if rank != 0:
        comm.send((len(found), total, clock.spent), dest=0)
        return 1 if found else 0

    reports = [(len(found), total, clock.spent)]
    reports += [comm.recv(source=r) for r in range(1, ranks)]
    wrong = sum(1 for mistaken, _, _ in reports if mistaken)
    total = max(t for _, t, _ in reports)
    spent = sum(s for _, _, s in reports) / ranks
    if chosen.json:
        print(json.dumps({"program": "shuffle", "records": chosen.records,
                          "epochs": chosen.epochs, "ranks": ranks, "total_s": total,
                          "mpi_s": spent, "ranks_wrong": wrong, "verified": wrong == 0}))
    else:
        print(f"shuffle: {chosen.records} records, {chosen.epochs} epochs, {ranks} ranks")
        print(f"total time       {total:10.4f} s")
        print(f"in MPI           {spent:10.4f} s on average of the ranks")
        if wrong:
            print(f"verified: NO, {wrong} of {ranks} ranks found something wrong")
        else:
            print("verified: yes, every record is whole, there once, and where it belongs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
