"""What secure aggregation costs, as a ratio to the floor: the keystream and one addition, measured in the same run.

    python -m benchmarks.secagg.sessions [--full] --save

CPU seconds and bytes, and Flower's SecAgg+ primitives on the same work where ``flwr`` is installed. Minimum of repeats;
the machine's other load is not subtracted.
"""

from __future__ import annotations

import argparse
import math
import os
import socket
import struct
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, TypeVar

import msgspec
import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Rows, Tables, command, least_seconds, results
from benchmarks.speed_works import floor_of_masks
from privstats.encoding import Ring
from privstats.encoding.ring import Group
from privstats.engines.loopback import Outcome, run
from privstats.files.decoding import from_msgpack
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.interactive.messages import BOX_BYTES
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.machines import Outbox
from privstats.secagg.prg import add_masks

T = TypeVar("T")
GRID = tuple(
    (n, m, d) for n in (10, 32, 100, 256) for m in (10_000, 1_000_000) for d in ((0, 10, 30) if n == 100 else (10,))
)
COMPARED = (100, 1_000_000, 10)
WIDE = Ring(((1_000_000, 20), (4_000_000, 32), (5_000_000, 40)))
LONG = ((256, 1_000_000), (10, WIDE.size))
_SESSIONS = "sessions, complete graph, CPU seconds (bars for 100 x 1e6, 10 %: 5 s, 0.5 s, 60 ms, 1.02)"
LANES: dict[int, np.dtype[Any]] = {32: np.dtype("<u4"), 64: np.dtype("<u8")}


def own_ring(entries: int, clients: int) -> Ring:
    """The ring of a plan of class moments with about as many entries: ten classes, 1,000 records a client at most."""
    schema = ps.ClassSchema(10, max(2, math.isqrt(2 * entries) - 10), "NAB", clip_norm=1.0)
    privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
    cohort = ps.Cohort(clients, clients - clients // 10, 1_000 * clients)
    ring = ps.Plan(schema=schema, cohort=cohort, privacy=privacy).ring
    return Ring(tuple(ring.segments))


def bits_of(ring: Group) -> str:
    """Bits of the narrowest and the widest entry."""
    bits = [each for _, each in ring.segments]
    return str(bits[0]) if len(set(bits)) == 1 else f"{min(bits)} to {max(bits)}"


def lane_bytes(ring: Ring) -> int:
    """Bytes of one vector while it is computed with, in lanes of 32 or 64 bits."""
    return sum(size * LANES[32 if bits <= 32 else 64].itemsize for size, bits in ring.segments)


def mask_floor(ring: Ring, repeats: int = 5) -> float:
    """Seconds of one mask over a vector at the floor, in lanes of 32 or 64 bits."""
    lanes = Counter[int]()
    for size, bits in ring.segments:
        lanes[32 if bits <= 32 else 64] += size
    tasks = {str(bits): floor_of_masks(bits, size, 1) for bits, size in lanes.items()}
    return sum(least_seconds(tasks, repeats, time.process_time).values())


def masking(repeats: int, size: int) -> Rows:
    """Cost per element and mask of ``add_masks`` and of the floor, taken in turns."""
    rows, masks = [], 20
    for bits in (32, 64):
        vector = Ring(((size, bits),)).zeros()
        seeds = [os.urandom(32) for _ in range(masks)]
        ours = partial(add_masks, vector, plus=seeds[:10], minus=seeds[10:])
        best = least_seconds({"floor": floor_of_masks(bits, size, masks), "ours": ours}, repeats, time.process_time)
        bare, full = (best[name] / size / masks * 1e9 for name in ("floor", "ours"))
        rows.append({"lane": f"uint{bits}", "floor_ns": bare, "ours_ns": full, "ratio": full / bare, "bar": 1.5})
    return rows


def threading(repeats: int, size: int) -> Rows:
    """Wall time of masking with several threads: what they gain depends on how many processors are free."""
    vector, seeds = Ring(((size, 32),)).zeros(), [os.urandom(32) for _ in range(20)]
    tasks = {str(threads): partial(add_masks, vector, plus=seeds, threads=threads) for threads in (1, 2, 4)}
    best = least_seconds(tasks, repeats)
    return [{"threads": name, "wall_ms": 1e3 * best[name], "speed-up": best["1"] / best[name]} for name in tasks]


def cohort(
    clients: int, ring: Ring, survivors: int, colluders: int
) -> tuple[Server, list[Client], list[Any], Identity]:
    """Fresh machines with random vectors of small integers."""
    parameters = Parameters.solve(
        clients=clients,
        min_survivors=survivors,
        colluders=colluders,
        ring=ring,
        plan_digest=bytes(32),
    )
    identities = [Identity.generate(os.urandom) for _ in range(clients)]
    aggregator = Identity.generate(os.urandom)
    publics = tuple(identity.public for identity in identities)
    roster = Roster.numbered(publics, server=aggregator.public, label="sessions", counter=0)
    rng = np.random.default_rng(1)
    values = [rng.integers(-50, 50, ring.size) for _ in range(clients)]
    machines = [
        Client(parameters, ring.encode(value), index=index, identity=identity, roster=roster)
        for index, (value, identity) in enumerate(zip(values, identities, strict=True))
    ]
    return Server(parameters, roster=roster, identity=aggregator), machines, values, aggregator


def session(clients: int, ring: Ring, percent: int, repeats: int = 1) -> dict[str, Any]:
    """One configuration: ``percent`` of the clients share their keys and then vanish."""
    gone = clients * percent // 100
    best: Outcome | None = None
    for _ in range(repeats):
        server, machines, values, _ = cohort(
            clients, ring, clients - gone, min(clients // 10, (clients - 2 * gone - 1))
        )
        outcome = run(server, machines, dropouts={"mask": range(gone)})
        if not np.array_equal(outcome.total.lift(), np.sum([values[i] for i in outcome.survivors], axis=0)):
            raise SystemExit("the sum is wrong")
        if best is None or cpu(outcome) < cpu(best):
            best = outcome
    if best is None:
        raise ValueError("repeats must be positive")
    staying = best.client_cpu[gone:]
    masks = clients * (clients - gone) + (clients - gone) + gone * (clients - gone)
    return {
        "clients": clients,
        "size": ring.size,
        "bits": bits_of(ring),
        "dropouts": f"{percent} %",
        "total_s": cpu(best),
        "server_s": best.server_cpu,
        "client_ms": 1e3 * median(staying),
        "client_max_ms": 1e3 * max(staying),
        "ns_per_element_mask": cpu(best) / masks / ring.size * 1e9,
        "upload_bytes": max(best.bytes_sent),
        "upload_ratio": max(best.bytes_sent) / lane_bytes(ring),
        "download_bytes": max(best.bytes_received),
    }


def cpu(outcome: Outcome) -> float:
    """Processor seconds of everybody together."""
    return outcome.server_cpu + sum(outcome.client_cpu)


class Meter:
    """The most that one machine has allocated at a time: what it keeps, and the peak of each call on top."""

    def __init__(self) -> None:
        self.kept = self.peak = 0

    def __call__(self, action: Callable[[], T]) -> T:
        """Do it, and count."""
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = action()
        after, peak = tracemalloc.get_traced_memory()
        self.peak = max(self.peak, self.kept + peak - before)
        self.kept += after - before
        return result


def memory(clients: int, ring: Ring) -> Row:
    """Peak memory of the server, which has a process of its own, and of one client, beside the vector that it has."""
    server, machines, _, identity = cohort(clients, ring, clients * 9 // 10, clients // 10)
    sealed = server.export(bytes(32))
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        place = server.parameters, server.roster
        twin = Server.resume(sealed, bytes(32), parameters=place[0], roster=place[1], identity=identity)
        _serve(there, twin)  # the forked machine itself refuses to work in a child
        os._exit(0)
    there.close()
    meter, last = Meter(), clients - 1
    tracemalloc.start()
    for step in STEPS:
        outbox = _receive_outbox(here)
        for client, message in outbox:
            if not (step == "mask" and client < clients // 10):
                receive = partial(machines[client].receive, message)
                _send(here, (client, (meter(receive) if client == last else receive())[0][1]))
                _receive(here)
        _send(here, (-1, b""))
    tracemalloc.stop()
    _receive_outbox(here)
    peak = _receive(here)
    os.wait()
    return {
        "clients": clients,
        "size": ring.size,
        "bits": bits_of(ring),
        "client_peak": meter.peak,
        "server_peak": peak,
        "server_limit": 3 * ring.wire_bytes + clients * ((64 << 10) + (clients - 1) * BOX_BYTES),
        "server_vectors": peak / ring.wire_bytes,
    }


def _serve(channel: socket.socket, server: Server) -> None:
    tracemalloc.start()
    _send_outbox(channel, server.start())
    for _ in STEPS:
        while (item := _receive(channel, tuple[int, memoryview]))[0] >= 0:
            server.receive(*item)
            _send(channel, None)
            del item
        _send_outbox(channel, server.end_step())
    _send(channel, tracemalloc.get_traced_memory()[1])


def _send(channel: socket.socket, item: object) -> None:
    data = msgspec.msgpack.encode(item)
    channel.sendall(struct.pack(">Q", len(data)))
    channel.sendall(data)


def _send_outbox(channel: socket.socket, outbox: Outbox) -> None:
    _send(channel, len(outbox))
    for item in outbox:
        _send(channel, item)


def _receive_outbox(channel: socket.socket) -> list[tuple[int, bytes]]:
    return [_receive(channel) for _ in range(_receive(channel))]


def _receive(channel: socket.socket, kind: Any = Any) -> Any:
    """With ``memoryview`` in ``kind``, the payload stays a view of the buffer that it arrived in."""
    (length,) = struct.unpack(">Q", _exactly(channel, 8))
    return from_msgpack(_exactly(channel, length), kind)


def _exactly(channel: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, filled = memoryview(data), 0
    while filled < size:
        filled += channel.recv_into(view[filled:])
    return data


def flower(quick: bool) -> dict[str, Any] | None:
    """Flower's SecAgg+ primitives on the same work: key agreement, sharing, masking, summing, unmasking.

    What each party calls is taken from Flower's client mod and server workflow; quantisation, messages and checks are
    left out, in Flower's favour.
    """
    try:
        from flwr.common.secure_aggregation.crypto import shamir, symmetric_encryption
        from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
        from flwr.supercore.primitives.asymmetric import (
            bytes_to_private_key,
            generate_key_pairs,
            private_key_to_bytes,
        )
    except ImportError:
        return None
    clients, neighbours, size, percent = (10, 4, 1_000, 10) if quick else (100, 50, 1_000_000, 10)
    gone, threshold, modulus = clients * percent // 100, neighbours // 2 + 1, 1 << 32
    around = [[(i + j) % clients for j in range(-(neighbours // 2), neighbours // 2 + 1) if j] for i in range(clients)]
    keys = [generate_key_pairs() for _ in range(clients)]
    seeds = [os.urandom(32) for _ in range(clients)]
    rng = np.random.default_rng(1)
    total, client_cpu, dealt = np.zeros(size, np.int64), [], []

    def pair_mask(private: Any, public: Any) -> Any:
        return pseudo_rand_gen(symmetric_encryption.generate_shared_key(private, public), modulus, [(size,)])[0]

    server = 0.0
    for i in range(clients):
        began = time.process_time()
        dealt.append(
            (
                shamir.create_shares(seeds[i], threshold, neighbours + 1),
                shamir.create_shares(private_key_to_bytes(keys[i][0]), threshold, neighbours + 1),
            )
        )
        for j in around[i]:
            shared = symmetric_encryption.generate_shared_key(keys[i][0], keys[j][1])
            box = symmetric_encryption.encrypt(shared, dealt[i][0][0] + dealt[i][1][0])
            symmetric_encryption.decrypt(shared, box)
        if i >= gone:
            masked = rng.integers(0, 100, size) + pseudo_rand_gen(seeds[i], modulus, [(size,)])[0]
            for j in around[i]:
                masked = masked + pair_mask(keys[i][0], keys[j][1]) * (1 if i > j else -1)
            masked %= modulus
            client_cpu.append(time.process_time() - began)
            began = time.process_time()
            total += masked
            server += time.process_time() - began
    began = time.process_time()
    for i in range(clients):
        if i >= gone:
            total -= pseudo_rand_gen(shamir.combine_shares(dealt[i][0][:threshold]), modulus, [(size,)])[0]
            continue
        private = bytes_to_private_key(shamir.combine_shares(dealt[i][1][:threshold]))
        for j in around[i]:
            if j >= gone:
                total += pair_mask(private, keys[j][1]) * (1 if i > j else -1)
    total %= modulus
    server += time.process_time() - began
    if total.max() >= 100 * clients:
        raise SystemExit("Flower's sum is wrong: the benchmark does not call it as it should")
    return {
        "clients": clients,
        "neighbours": neighbours,
        "size": size,
        "dropouts": f"{percent} %",
        "total_s": server + sum(client_cpu),
        "server_s": server,
        "client_ms": 1e3 * median(client_cpu),
        "upload_bytes": masked.nbytes,
    }


def options(parser: argparse.ArgumentParser) -> None:
    """How much."""
    parser.add_argument(
        "--full", action="store_true", help="also anew: 256 clients with a million entries, and 1e7 entries"
    )


def tables(chosen: argparse.Namespace) -> Tables:
    """Masking, threads, sessions, memory, and Flower where it is installed."""
    quick = chosen.quick
    yield "masking: nanoseconds per element and mask, one core", masking(*((1, 20_000) if quick else (15, 1_000_000)))
    yield f"masking with threads, {os.cpu_count()} processors", threading(*((1, 20_000) if quick else (5, 4_000_000)))
    rows = _quick_sessions() if quick else _sessions(chosen.full)
    yield _SESSIONS, rows
    sizes = ((10, 1_000),) if quick else ((100, 1_000_000), (200, 100_000))
    held = [memory(n, ring) for n, m in sizes for ring in (Ring(((m, 32),)), own_ring(m, n))]
    yield "peak memory in bytes (limit of the server: 3 vectors, and per client 64 KiB and its boxes)", held
    yield "Flower's SecAgg+ primitives, same run, half as many neighbours", [_beside(flower(quick), rows)]


def _quick_sessions() -> list[Row]:
    return [_session_row(10, 1_000, 10), session(10, own_ring(1_000, 100), 10)]


def _sessions(full: bool) -> list[Row]:
    """The grid, a plan's own ring, and what takes longest, which without ``full`` is as it is saved."""
    rows = [_session_row(*cell) for cell in GRID if cell[:2] not in LONG]
    rows.append(session(100, own_ring(1_000_000, 100), 10))
    if full:
        return [*rows, _session_row(256, 1_000_000, 10), session(10, WIDE, 10)]
    saved = results("secagg.sessions")[_SESSIONS]
    return [*rows, *(row for row in saved if (row["clients"], row["size"]) in LONG)]


def _session_row(clients: int, size: int, percent: int) -> dict[str, Any]:
    return session(clients, Ring(((size, 32),)), percent, repeats=3 if (clients, size, percent) == COMPARED else 1)


def _beside(theirs: Row | None, rows: Sequence[Row]) -> Row:
    if theirs is None:
        return {"skipped": "flwr is not installed here"}
    compared = {"clients": COMPARED[0], "size": COMPARED[1], "dropouts": f"{COMPARED[2]} %"}
    ours = next((row for row in rows if compared.items() <= row.items()), None)
    if ours is None:
        return theirs
    return {
        **theirs,
        "total_times_ours": theirs["total_s"] / ours["total_s"],
        "server_times_ours": theirs["server_s"] / ours["server_s"],
    }


if __name__ == "__main__":
    command("secagg.sessions", __doc__, tables, options)
