"""One client that lies in every way there is, and one honest client that drops out at every step, on the real machines.

Where t + 3 and min_survivors + 2 clients have answered ``check``, that ends no session. Where fewer have, it ends in
the exact sum too, or in a named abort. And as long as t + 2 have, one liar gets nobody honest left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.interactive import blame, messages
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import Cohort, cohort_of, forge, read
from tests.secagg.interactive.inside import inside

SMALL = [
    (clients, least, colluders)
    for clients, colluders in product(range(4, 12), range(4))
    for least in range((clients + colluders) // 2 + 1, clients + 1)
    if colluders <= clients - 2
]
"""All small cohorts: clients, the fewest survivors, colluders."""

REFUSED: dict[str, Callable[[messages.ClientMessage], dict[str, object]]] = {
    "advertise": lambda _: {"signature": bytes(64)},
    "share": lambda message: {"responses": message.responses[::-1]},
    "check": lambda message: {"failed": (message.sender,)},
    "mask": lambda message: {"vector": memoryview(bytes(message.vector)[1:])},
    "agree": lambda _: {"signature": bytes(64)},
    "unmask": lambda _: {"self_key": bytes(32)},
}
"""By step, what the server refuses, so that whoever says it counts as gone."""

VICTIM, ACCUSED, BYSTANDER = 0, -1, 4
LATE = ("mask", "agree", "unmask")


@dataclass
class Session:
    """A cohort with one liar and one drop-out.

    Attributes:
        spoiled: for how many holders, the first, the liar seals garbage.
        accuses: of how many owners, the last, it says that it could not use their shares.
        leaves: the step at which the liar vanishes, or says something that is refused; None for never.
        refused: whether it is the latter.
        drops: the step from which an honest client does not answer; None for never.
        who: that client's place among the honest ones.
        checked: who answered ``check``.
        here: who went on after it.
    """

    cohort: Cohort
    liar: int
    spoiled: int = 0
    accuses: int = 0
    leaves: str | None = None
    refused: bool = False
    drops: str | None = None
    who: int = VICTIM
    checked: frozenset[int] = frozenset()
    here: frozenset[int] = frozenset()
    away: set[int] = field(default_factory=set)

    @property
    def honest(self) -> list[int]:
        return [client for client in range(self.cohort.parameters.clients) if client != self.liar]

    def play(self) -> AggregationError | None:
        """To the end; returns the abort, if it ends in one."""
        server = self.cohort.server
        outbox = dict(server.start())
        for step in STEPS:
            if step == self.drops:
                self.away.add(self.honest[self.who % len(self.honest)])
            for client, message in outbox.items():
                if client not in self.away:
                    ((_, answer),) = self.cohort.clients[client].receive(message)
                    self.send(client, step, answer)
            try:
                outbox = dict(server.end_step())
            except AggregationError as abort:
                return abort
            if step == "check":
                self.here = frozenset(outbox)
        return None

    def send(self, client: int, step: str, answer: bytes) -> None:
        """A client's answer, or the liar's in its place."""
        server = self.cohort.server
        if client != self.liar:
            server.receive(client, answer)
        elif step != self.leaves:
            server.receive(client, self.forged(step, answer, self.lie(step, self.told(step, answer))))
        else:
            self.away.add(client)
            if self.refused:
                message = self.told(step, answer)
                with pytest.raises(RemoteProtocolError) as refusal:
                    server.receive(client, self.forged(step, answer, REFUSED[step](message)))
                assert refusal.value.peer == client
        if step == "check" and client not in self.away:
            self.checked |= {client}

    def told(self, step: str, answer: bytes) -> messages.ClientMessage:
        return read(self.cohort, self.liar, answer, STEPS[step].answers)

    def forged(self, step: str, answer: bytes, changes: dict[str, object]) -> bytes:
        message = msgspec.structs.replace(self.told(step, answer), **changes)
        return bytes(messages.encode(message)) if step == "advertise" else forge(self.cohort, self.liar, message)

    def lie(self, step: str, message: messages.ClientMessage) -> dict[str, object]:
        """What the server cannot tell from the truth."""
        if step == "share":
            garbage = b"!" * min(messages.BOX_BYTES * self.spoiled, len(message.boxes))
            return {"boxes": garbage + message.boxes[len(garbage) :]}
        if step == "check":
            owners = sorted(inside(self.cohort.server).state.sharers - {self.liar})
            failed = tuple(owners[len(owners) - min(self.accuses, len(owners)) :])
            above = [owner for owner in owners if owner > self.liar and owner not in message.failed]
            links = (
                part(message.links, k, messages.SECRET_BYTES) for k, each in enumerate(above) if each not in failed
            )
            held = inside(self.cohort.clients[self.liar]).state.held
            for owner in failed:  # with whom it does not mask: else it would bring another input
                held.pop(owner, None)
            return {"failed": failed, "links": b"".join(links)}
        if step == "unmask":
            called = inside(self.cohort.server).state.failed.get(self.liar, ())
            owners = [owner for owner in message.owners if owner not in called]
            shares = (part(message.shares, message.owners.index(owner), messages.SECRET_BYTES) for owner in owners)
            return {"owners": tuple(owners), "shares": b"".join(shares)}
        return {}

    def held(self) -> AggregationError | None:
        """Play, and hold the end against what is claimed."""
        parameters, abort = self.cohort.parameters, self.play()
        count = len(self.checked)
        if abort is None:
            total, survivors = self.cohort.server.result
            assert np.array_equal(total.lift(), self.cohort.sum_over(survivors))
            assert len(survivors) >= parameters.min_survivors
        elif abort.step not in LATE:
            assert not any(client.upload for client in self.cohort.clients)
        if count >= parameters.threshold + 2 and (abort is None or abort.step in LATE):
            assert self.checked - {self.liar} <= self.here
        if count >= max(parameters.threshold + 3, parameters.min_survivors + 2):
            assert abort is None
        return abort


def session_of(clients: int, least: int, colluders: int, **given) -> Session:
    cohort = cohort_of(clients, least, colluders, ring=Ring(((2, 16),)))
    return Session(cohort, liar=given.pop("liar", 0) % clients, **given)


@pytest.mark.parametrize(("leaves", "drops"), [("unmask", "unmask"), ("unmask", "mask"), ("mask", "agree")])
@pytest.mark.parametrize("who", [VICTIM, BYSTANDER])
def test_two_spoilt_boxes_and_one_drop_out_end_no_session_of_ten_with_two_colluders(
    leaves: str, drops: str, who: int
) -> None:
    """Seven shares are needed: without the liar, its two victims and the drop-out six would have arrived."""
    session = session_of(10, 7, 2, liar=9, spoiled=2, leaves=leaves, drops=drops, who=who)
    assert session.held() is None
    assert session.checked - session.here == {9}
    assert session.cohort.clients[9].upload == b""
    assert [(fault.peer, fault.code) for fault in session.cohort.server.faults] == [
        (9, "accused"),
        (0, "accuser"),
        (1, "accuser"),
    ]


@pytest.mark.parametrize("leaves", ["mask", "agree", "unmask"])
def test_a_server_that_left_out_every_disputed_owner_would_serve_the_liar(
    leaves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A liar's word would cost two honest clients their place, and with a drop-out everybody the session."""
    lie = {"liar": 9, "accuses": 2, "leaves": leaves, "drops": leaves, "who": VICTIM}
    assert session_of(10, 7, 2, **lie).held() is None
    monkeypatch.setattr(
        blame,
        "admitted",
        lambda checked, failed, _, **__: frozenset(checked) - {owner for each in failed.values() for owner in each},
    )
    session = session_of(10, 7, 2, **lie)
    abort = session.play()
    assert session.checked - session.here == {7, 8}
    assert abort.step in LATE
    assert all(session.cohort.clients[client].upload for client in session.here - {0, 9})


def test_too_few_shares_name_the_dispute_that_is_why() -> None:
    """With t + 2 at check no rule helps: either of the two that dispute may lie, and each of the others is needed."""
    session = session_of(9, 7, 2, liar=8, spoiled=1, leaves="unmask", drops="unmask", who=BYSTANDER)
    session.away = {7}
    abort = session.held()
    assert abort is not None
    assert "5 of 6 shares of client 8's secret arrived; clients 0 could not use theirs: either they lie" in str(abort)


@pytest.mark.ci
@given(
    st.sampled_from(SMALL),
    st.fixed_dictionaries(
        {
            "liar": st.integers(0, 10),
            "spoiled": st.integers(0, 4),
            "accuses": st.integers(0, 4),
            "leaves": st.sampled_from([None, *STEPS]),
            "refused": st.booleans(),
            "drops": st.sampled_from([None, *STEPS]),
            "who": st.integers(-1, 10),
        }
    ),
)
def test_one_liar_and_one_drop_out_end_no_session_that_has_two_to_spare(cohort_size, lie) -> None:
    abort = session_of(*cohort_size, **lie).held()
    event("a sum" if abort is None else f"{abort.step}: {abort.code}")


@pytest.mark.nightly
@pytest.mark.parametrize(("clients", "least"), [(9, 6), (9, 7), (10, 7), (10, 8)])
def test_every_lie_of_one_client_with_every_drop_out(clients: int, least: int) -> None:
    """The smallest cohorts in which two holders may dispute one owner's shares and be believed or not."""
    lies = product(range(4), range(3), (*LATE, None), (VICTIM, ACCUSED, BYSTANDER), ("check", *LATE, None))
    ends = set()
    for spoiled, accuses, leaves, who, drops in lies:
        lie = {"spoiled": spoiled, "accuses": accuses, "leaves": leaves, "who": who, "drops": drops}
        ends.add(session_of(clients, least, 2, liar=clients // 2, **lie).held())
    assert None in ends
