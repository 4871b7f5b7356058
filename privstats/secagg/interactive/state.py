"""The steps of the protocol, and the two machines' states between messages.

A client's own secrets are in ``root``, ``noise_root`` and ``kem_secret``; ``vector`` is its contribution and ``held``
has its neighbours' shares. The server's state alone unmasks no client.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct, field

from privstats.secagg import kem
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.dealing import Public
from privstats.secagg.interactive.messages import Advertise, KnownAdvertise, Unmask, UnmaskWithOpening
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.wire import HiddenRepr


@dataclass(frozen=True)
class Transition:
    """A transition of the machines: the message that opens a step at a client, the answer, and the next step."""

    opens: type[messages.ServerMessage]
    answers: type[messages.ClientMessage]
    then: StepName


STEPS: dict[StepName, Transition] = {
    "advertise": Transition(messages.Open, messages.Advertise, "share"),
    "share": Transition(messages.Adverts, messages.Share, "check"),
    "check": Transition(messages.Deliver, messages.Check, "mask"),
    "mask": Transition(messages.Dealers, messages.Mask, "agree"),
    "agree": Transition(messages.Survivors, messages.Agree, "unmask"),
    "unmask": Transition(messages.Agreement, messages.Unmask, "done"),
}


WITH_LAYERS: dict[StepName, type[messages.ClientMessage]] = {
    "check": messages.CheckWithCommitment,
    "unmask": messages.UnmaskWithOpening,
}
"""The message types by step, where the parameters have levels of noise."""


def answers_of(step: StepName, parameters: Parameters) -> type[messages.ClientMessage]:
    """Return the type of a client's answer in this step."""
    usual = STEPS[step].answers
    return WITH_LAYERS.get(step, usual) if parameters.levels else usual


_NONE_YET = Advertise(bytes(32), 0, bytes(32), bytes(kem.PUBLIC_BYTES), bytes(kem.CIPHERTEXT_BYTES), bytes(64))


class ClientState(HiddenRepr, Struct):
    """A client's state; ``vector`` and ``faults`` are for sealing only.

    - ``held``: each owner's two shares.
    - ``dealers``: the neighbours that continued.
    - ``answered``: answered messages' hashes; ``answer`` is for the last.
    - ``upload``: the masked-vector message's hash; ``uploaded`` is that hash once it may be sent.
    - ``charged``: ``on_upload`` comes first.
    - ``agreement``: after the end, ``survivors`` and a signature by signer.
    - ``noise_root``: opens all noise layers.
    - ``only``: the one list that may be signed.
    - ``full_list``: forbids lists that name a client in dispute with this one.
    - ``kem_secret``: known to this client and the server.
    - ``refused``: dealers that could not use this client's dealing.
    """

    root: bytearray
    vector: bytes = b""
    step: StepName = "advertise"
    session: bytes = b""
    server_key: bytes = b""
    context: bytes = b""
    advert: Advertise = _NONE_YET
    adverts: dict[int, KnownAdvertise] = field(default_factory=dict)
    transcript: bytes = b""
    sharers: tuple[int, ...] = ()
    dealers: tuple[int, ...] = ()
    held: dict[int, bytes] = field(default_factory=dict)
    survivors: bytes = b""
    agreement: dict[int, bytes] = field(default_factory=dict)
    only: bytes = b""
    reply_to: bytes = b""
    answered: list[bytes] = field(default_factory=list)
    answer: bytes = b""
    upload: bytes = b""
    uploaded: bytes = b""
    charged: bool = False
    noise_root: bytearray = field(default_factory=bytearray)
    kem_secret: bytearray = field(default_factory=bytearray)
    refused: tuple[int, ...] = ()
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    full_list: bool = field(default=False, name="whole")  # the name in stored states


class ServerState(HiddenRepr, Struct):
    """The server's state; ``total`` is for sealing only.

    - ``requested``: the step's clients; ``expected`` are those without an answer.
    - ``heard``: each accepted message's sender and last bytes, a tag or signature.
    - ``inboxes``: boxes by receiver; ``places`` locates boxes in a journal, by sender.
    - ``failed``: by client, the owners of shares that it could not use.
    - ``dealers``: the clients that continue.
    - ``listed``: this step's bitmap.
    - ``agreement``: list and signature by client, also after the end.
    - ``openings``: by client, the value that opens noise layers; ``commitments`` has the client's lowest chain value.
    - ``links``: links by sender and owner.
    - ``full_list``: clients sign no list that names a client they dispute with.
    """

    secret: bytearray
    session: bytes
    total: bytes = b""
    step: StepName = "advertise"
    noise_due: bool = False
    requested: set[int] = field(default_factory=set, name="asked")  # the name in stored states
    expected: set[int] = field(default_factory=set)
    heard: set[tuple[int, bytes]] = field(default_factory=set)
    adverts: dict[int, Advertise] = field(default_factory=dict)
    transcript: bytes = b""
    inboxes: dict[int, bytearray] = field(default_factory=dict)
    places: dict[int, bytes] = field(default_factory=dict)
    dealings: dict[int, Public] = field(default_factory=dict)
    sharers: set[int] = field(default_factory=set)
    checked: set[int] = field(default_factory=set)
    dealers: set[int] = field(default_factory=set)
    survivors: set[int] = field(default_factory=set)
    failed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    listed: bytes = b""
    signatures: dict[int, bytes] = field(default_factory=dict)
    agreement: dict[int, bytes] = field(default_factory=dict)
    answers: dict[int, Unmask | UnmaskWithOpening] = field(default_factory=dict)
    commitments: dict[int, bytes] = field(default_factory=dict)
    links: dict[int, dict[int, bytes]] = field(default_factory=dict)
    openings: dict[int, bytes] = field(default_factory=dict)
    faults: set[tuple[int, str, str]] = field(default_factory=set)
    full_list: bool = field(default=False, name="whole")  # the name in stored states
