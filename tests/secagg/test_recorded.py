"""A recorder that breaks X25519 later: keep every message of a session, take two logarithms, read one party's sums.

Both protocols agree on keys by X25519 alone, so secrecy from somebody who keeps a recording ends when X25519 does. This
is the evidence of that sentence on the pages for people. A transcript and logarithms are all that the attacker gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from privstats.secagg import Parameters, Roster, hpke, scalars, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.client_secrets import ClientSecrets, pair_seed, self_stream
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.signed_statements import advert_leaf, context_of, transcript_of
from privstats.secagg.keys import RECORDED, agree, public_of
from privstats.secagg.prg import add_masks
from privstats.secagg.transcript import MerkleTree
from privstats.secagg.upload import messages as reports
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.masking_scheme import Streams
from privstats.secagg.upload.signed_statements import box_info
from tests.secagg.interactive.cohorts import Cohort, cohort_of, stream
from tests.secagg.interactive.inside import inside
from tests.secagg.interactive.test_eavesdropper import Traffic, recorded
from tests.secagg.upload.cohorts import Uploads, uploads_of


@dataclass
class Logarithms:
    """What X25519 is broken to: the private half of a public key; it counts what it was asked."""

    known: Mapping[bytes, bytes]
    asked: set[bytes] = field(default_factory=set)

    @classmethod
    def of_all(cls, privates: Iterable[bytes]) -> Logarithms:
        """Those of the public keys of these private ones."""
        return cls({public_of(private): private for private in privates})

    def of(self, public: bytes) -> bytes:
        """The private half."""
        self.asked.add(public)
        return self.known[public]


def logarithms_of(cohort: Cohort) -> Logarithms:
    """Of everything that the clients advertise."""
    secrets = [inside(ClientSecrets(bytes(inside(client).state.root))) for client in cohort.clients]
    return Logarithms.of_all([key.private for each in secrets for key in (each.mask_key, each.self_key)])


def read_from_a_recording(
    traffic: Traffic, parameters: Parameters, roster: Roster, victim: int, logarithms: Logarithms
) -> NDArray[np.int64]:
    """The attack: one party's vector from recorded messages, its mask key's logarithm and its self-mask key's."""

    def heard(kind: type) -> dict[int, memoryview]:
        tag = kind.__struct_config__.tag
        return {client: memoryview(data) for client, data in traffic if data[2] == tag}

    opening = messages.decode(heard(messages.Open)[0], messages.Open)
    adverts = {client: messages.decode(data, messages.Advertise) for client, data in heard(messages.Advertise).items()}
    tree = MerkleTree({client: advert_leaf(advert) for client, advert in adverts.items()}, parameters.clients)
    graph = Graph(parameters, roster)
    transcript = transcript_of(context_of(graph, opening.session, opening.server_key), tree.root)
    mask_key = X25519PrivateKey.from_private_bytes(logarithms.of(adverts[victim].mask_key))
    clamped = int.from_bytes(logarithms.of(adverts[victim].self_key), "little") & (2**254 - 8) | 2**254
    seeds = {
        other: pair_seed(agree(mask_key, adverts[other].mask_key), transcript, (victim, other))
        for other in set(heard(messages.Check)) & set(graph.neighbours(victim))
    }
    upload = messages.decode(heard(messages.Mask)[victim][: -wire.TAG_BYTES], messages.Mask)
    vector = parameters.ring.unpack(upload.vector)
    add_masks(
        vector,
        plus=[seed for other, seed in seeds.items() if other < victim],
        minus=[
            self_stream(scalars.canonical(clamped % scalars.ORDER), transcript),
            *(seed for other, seed in seeds.items() if other > victim),
        ],
    )
    return vector.lift()


@pytest.mark.parametrize("victim", [0, 3])
def test_two_logarithms_open_one_partys_vector_in_an_interactive_session(cohort: Cohort, victim: int) -> None:
    logarithms = logarithms_of(cohort)
    traffic = recorded(cohort)
    vector = read_from_a_recording(traffic, cohort.parameters, cohort.roster, victim, logarithms)
    assert np.array_equal(vector, cohort.values[victim])
    assert len(logarithms.asked) == 2


def test_the_same_recording_stays_uniform_without_them(cohort: Cohort) -> None:
    """The control: with the logarithms of another cohort's keys in their place the attacker reads something else."""
    other = logarithms_of(cohort_of(label="another"))
    wrong = Logarithms(dict(zip(logarithms_of(cohort).known, other.known.values(), strict=True)))
    vector = read_from_a_recording(recorded(cohort), cohort.parameters, cohort.roster, 0, wrong)
    assert not np.any(vector == cohort.values[0])


def read_from_a_report(run: Uploads, report: bytes, sender: int, logarithms: Logarithms) -> NDArray[np.int64]:
    """The attack on the one upload: a report, and the logarithms of the panel's box keys."""
    opened = []
    message = run.read(report, reports.Report)
    for place, box in enumerate([message.body, *rows(message.boxes, reports.BOX_BYTES)]):
        private = X25519PrivateKey.from_private_bytes(logarithms.of(run.panel.offers[place].box_key))
        opened.append(hpke.open_box(private, box, box_info(run.context, sender, place)))
    vector = run.parameters.ring.unpack(opened[0])
    streams = Streams(run.parameters.ring, run.parameters.helpers, run.context)
    for seed in opened[1:]:
        covered = memoryview(bytearray(run.parameters.ring.wire_bytes))
        streams.answer([(sender, seed)], covered)
        vector.add(run.parameters.ring.unpack(covered))
    return vector.lift()


def test_a_logarithm_for_each_member_of_the_panel_opens_all_reports_of_a_run() -> None:
    run = uploads_of(helpers=2)
    logarithms = Logarithms.of_all([stream(f"{run.label} box {place}")(32) for place in range(3)])
    for sender in range(run.parameters.clients):
        vector = read_from_a_report(run, run.report(sender), sender, logarithms)
        assert np.array_equal(vector, run.values[sender])
    assert len(logarithms.asked) == 3


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/threat_model.md", "docs/protocol.md", "docs/one_upload.md"])
def test_every_page_that_promises_secrecy_says_so(page: str) -> None:
    text = " ".join((Path(__file__).parents[2] / page).read_text("utf-8").split())
    for said in (
        "ecrecy for good",
        "X25519",
        "later, as a large quantum computer would",
        "tests/secagg/test_recorded.py",
    ):
        assert said in text


def test_both_protocols_say_so_where_a_plan_is_checked(cohort: Cohort) -> None:
    assert RECORDED in cohort.parameters.facts()
    assert RECORDED in uploads_of().parameters.facts()
