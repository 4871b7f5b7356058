"""Freezes one answer step by step, from link and manifest to the bytes of its report, for clients in other languages.

The library encapsulates at random; here it derives what it encapsulates with, as a device does.

python -m tests.contrib.http.wire_steps > tests/contrib/http/vectors/wire.json
"""

import json
import sys
from typing import Any
from unittest.mock import patch

import privstats as ps
from privstats.contrib.http.folders import Manifest
from privstats.contrib.http.invitations import Invitation, study_of
from privstats.encoding import flatten
from privstats.records.variables import plain_variable
from privstats.secagg import HelperKeys, Identity, Panel, Roster
from privstats.secagg.keys import hkdf
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.masking_scheme import masked_tiles, secret_of
from privstats.secagg.upload.signed_statements import derive
from tests import made
from tests.secagg.upload.second_implementation import xwing_seal

INDEX, PEOPLE, HELPERS, YEAR_2100 = 300, 400, 3, 4_102_444_800
ROOT = bytes(range(32))
SCHEMA = ps.CountSchema(
    (
        ps.Bins("age", (0, 18, 65), missing=True, open="above"),
        ps.Bins("hours", (0.5, 2, 4.5, 8), closed="right"),
        ps.Categories("device", ("phone", "tablet"), other=True, missing=True),
    ),
    (("age", "device"), ("hours",), ("device",)),
)
BINS = [
    ps.Bins("bins", edges, closed=closed, open=open_)
    for edges in ((0, 2, 4, 6), (-1.5, 0.1, 1e6), (1e-7, 2.5e-6, 0.30000000000000004, 1e20, 1e21, 1e300))
    for closed in ("left", "right")
    for open_ in ("both", "above", "below", "none")
]
ANSWERS: dict[str, list[Any]] = {"age": [18], "hours": [4.5], "device": ["watch"]}


def steps() -> dict[str, Any]:
    """What a device is given, and every step of its way to the report, as hex."""
    seats = [Identity(bytes([place]) * 32) for place in range(1, HELPERS + 2)]
    devices = ps.plan.Devices(
        organisations=tuple(f"Organisation {place}" for place in range(HELPERS + 1)),
        registrar="Study Office",
        registrar_key=Identity(b"r" * 32).public.hex(),
        page="Library",
        most_runs=1,
        stated_epsilon=2.95,
    )
    promised = {"unit": "client", "adjacency": "add-remove", "max_records_per_client": 1}
    privacy = ps.Privacy(model="panel", epsilon=1.0, delta=1e-6, **promised)
    cohort = ps.Cohort(PEOPLE, 100, PEOPLE, colluders=10)
    panel_keys = tuple(each.public.hex() for each in seats)
    plan = made.plan(SCHEMA, cohort, privacy, protocol="split", panel=panel_keys, devices=devices)
    invitations = [Invitation(index, index.to_bytes(16, "little")) for index in range(PEOPLE)]
    people = tuple(each.identity.public for each in invitations)
    roster = Roster(people, server=seats[0].public, run=b"a run of devices")
    parameters: Any = plan.masking
    keys = [
        HelperKeys.from_private(seat, place, parameters, roster, bytes([64 + place]) * 32, until=YEAR_2100)
        for place, seat in enumerate(seats)
    ]
    panel = Panel(tuple(seat.public for seat in seats), tuple(each.offer for each in keys))
    context, me = panel.context(parameters, roster), invitations[INDEX]
    vector = parameters.ring.encode(flatten(ps.measure(SCHEMA, ANSWERS)))
    secret = secret_of(ROOT, context, INDEX, vector)
    seeds = [derive(secret, f"seed/{place}", context) for place in range(1, HELPERS + 1)]
    streams = [derive(seed, f"stream/{INDEX}", context) for seed in seeds]
    drawn = {"entropy": lambda size: ROOT[:size], "allow_reproducible": True}
    client = Client(parameters, vector, index=INDEX, identity=me.identity, roster=roster, panel=panel, **drawn)

    def sealed(public: bytes, content: bytes, info: bytes) -> bytes:
        message, ephemeral = (derive(secret, f"{each}/{info[-1]}", context) for each in ("encapsulate", "ephemeral"))
        return xwing_seal(public, message, ephemeral, content, info)

    with patch("privstats.secagg.xwing.seal", sealed):
        ((_, report),) = client.start()
    packed = b"".join(bytes(each) for each in masked_tiles(vector, minus=streams, threads=1))
    found = {
        "seed": hkdf(me.code, b"", b"privstats/devices/1/identity", 32),
        "plan digest": bytes.fromhex(plan.digest),
        "parameters": parameters.digest,
        "context": context,
        "lanes": vector.lanes[0].astype("<u4").tobytes(),
        "secret": secret,
        **{f"seed {place}": seed for place, seed in enumerate(seeds, start=1)},
        **{f"stream {place}": stream for place, stream in enumerate(streams, start=1)},
        "packed": packed,
        "body key": derive(secret, "body", context),
        **{
            f"{each} {place}": derive(secret, f"{each}/{place}", context)
            for place in range(HELPERS + 1)
            for each in ("encapsulate", "ephemeral")
        },
        "report": report,
    }
    return {
        "link": me.link("https://page.example/"),
        "run": roster.run.hex(),
        "study": study_of(roster.run, bytes.fromhex(plan.digest), roster.digest),
        "manifest": json.loads(Manifest.of(plan, roster, panel, YEAR_2100 - 86_400).body),
        "answers": ANSWERS,
        "root": ROOT.hex(),
        "bins": [{**plain_variable(each), "cells": each.cells} for each in BINS],
        "steps": {name: value.hex() for name, value in found.items()},
    }


if __name__ == "__main__":
    json.dump(steps(), sys.stdout, indent=1)
