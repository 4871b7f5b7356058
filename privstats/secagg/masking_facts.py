"""State a plan's masking in sentences and numbers."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from privstats.errors import PlanError
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.interactive.random_graph import committee_size
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.suite import BOX_BYTES

RECORDED = (
    "keys are agreed on by X25519 and ML-KEM-768 together: an attacker who records every message and breaks X25519 "
    "later reads no party's sums; signatures are Ed25519, which a large quantum computer breaks: a signature forged "
    "later opens no recorded message, but a forged release, or a forged proof that an upload is in no sum, would then "
    "be believed"
)
"""What a recording reveals later, for the person who reviews the plan; ``tests/secagg/test_recorded.py`` attacks it."""

CLASSICAL_UNTIL = "2026-11-30"
"""The day of the last versions whose sessions agree on keys by X25519 alone where a plan names no ``key_agreement``."""

UNNAMED = (
    f"the plan names no key_agreement, and versions until {CLASSICAL_UNTIL} run its digest under X25519 alone: write "
    'key_agreement = "mlkem768-x25519" and renew the roster, or have every party install this version'
)
"""The further fact of a plan without ``key_agreement``."""

_MANY = 10_000
"""Number of clients from which the facts include the total size of their reports."""


@singledispatch
def masking_facts(masking: Any) -> list[str]:
    """Return one sentence per fact, for a reviewer."""
    raise PlanError(f"no facts are written for {type(masking).__name__}; give plan.masking")


@singledispatch
def masking_numbers(masking: Any) -> dict[str, Any]:
    """Return the facts for scripts: dictionaries of any depth, whose numbers may be infinite."""
    raise PlanError(f"no numbers are written for {type(masking).__name__}; give plan.masking")


@masking_facts.register
def _of_interactive(parameters: Parameters) -> list[str]:
    n, colluders, others = parameters.clients, parameters.colluders, parameters.neighbours
    kind = "everyone masks with everyone" if parameters.complete else f"each client masks with {others} others"
    signed = f"{parameters.signatures} of {committee_size(n)} clients"
    signers = (
        f"{parameters.signatures} clients" if parameters.complete else f"{parameters.quorum} neighbours and {signed}"
    )
    thresholds = (
        f"{n} clients, {kind}; {parameters.threshold} others together hold a client's keys; "
        f"a client opens its masks for a list of survivors that {signers} signed; "
        f"{n - parameters.min_listed} clients may vanish and {colluders} may help the server"
    )
    server = "no server" if parameters.server_may_lie else 'the server to follow the protocol (graph = "sparse")'
    trust = (
        f"masking trusts {server}; if the server and more than "
        f"{colluders} clients work together they may read single clients' vectors",
        "one client that sends false data can shift the sum by anything in the ring, unseen: masking proves "
        "nothing about inputs",
        RECORDED,
    )
    return [thresholds, *trust, *_listing(parameters), *_framing(parameters), *_failures(parameters)]


def _listing(parameters: Parameters) -> list[str]:
    disputes, survivors = parameters.disputes, parameters.min_survivors
    if not disputes:
        return []
    return [
        f"a lying server can invent disputes (a client could not use another's shares), at most {disputes} per client; "
        f"of {parameters.min_listed} listed survivors at least {survivors} are in the sum even then",
        f"{disputes + 1} lying clients can exclude an honest neighbour",
    ]


def _framing(parameters: Parameters) -> list[str]:
    """Warn that liars within the plan can end a session, if the complete graph has too few holders."""
    # Disputed shares need t honest holders in addition to max(1, c) liars, and one more if several liars dispute the
    # same shares (docs/proofs/dealings.md).
    liars = max(1, parameters.colluders)
    if not parameters.complete or parameters.min_survivors >= parameters.threshold + liars:
        return []
    minimum = parameters.threshold + liars
    framed, lying = minimum + (liars > 1), "1 lying client" if liars == 1 else f"{liars} lying clients"
    return [
        f"WARNING: if at most {framed} clients remain, {lying} can exclude an honest client, and so "
        f"end the session after the others have uploaded: set min_survivors to at least {minimum}, with "
        "more clients or fewer colluders if that leaves no room for dropouts"
    ]


def _failures(parameters: Parameters) -> list[str]:
    bounds = parameters.bounds
    named = {
        "honest clients split into groups": bounds.connectivity,
        "colluders reconstruct both secrets of a client": bounds.privacy,
        "too few shares or signatures are left, and the session ends without a sum": bounds.liveness,
        "a server that chooses who drops out splits the honest clients": bounds.lying_server,
        "enough colluders sign two lists of survivors": bounds.two_lists,
    }
    if all(math.isinf(value) for value in named.values()):
        return []
    parts = "; ".join(f"{name}: {_power(value)}" for name, value in named.items())
    out = [f"over the random graph, at most these probabilities of failure: {parts}"]
    if not parameters.server_may_lie:
        out.append(
            'graph = "sparse" keeps the promise against a server that follows the protocol only; one that chooses who '
            'drops out may learn more than the sum, and graph = "robust" bounds that'
        )
    return out


def _power(log2: float) -> str:
    if math.isinf(log2):
        return "never"
    power = math.ceil(log2)  # an upper bound is rounded up
    return f"2^{power}" if power < 0 else "no bound"


@masking_facts.register
def _of_split(parameters: UploadParameters) -> list[str]:
    n, h, minimum = parameters.clients, parameters.helpers, parameters.min_survivors
    return [
        f"{n} clients send one message each and are gone; the plan's leader and {_number(h)} compute the sum",
        "the plan trusts that leader and helpers do not all work together: one honest party among them is enough",
        _learned(parameters.noisy_helpers),
        RECORDED,
        f"{n - minimum} clients may stay silent, which costs nothing; every helper must answer, or there is no sum",
        f"{parameters.colluders} clients of the full roster may help the leader, which picks the reports",
        *_traffic(parameters),
        *_inputs(parameters.claim is not None),
        "a leader can report a failure although it knows the sum: a second run over the same data is a second release",
    ]


def _traffic(parameters: UploadParameters) -> list[str]:
    if parameters.clients < _MANY:
        return []
    proof_bytes = 0 if parameters.claim is None else 64 + 32 * parameters.helpers
    report = parameters.body_bytes + 120 + BOX_BYTES * parameters.members + proof_bytes
    total = parameters.clients * report
    return [
        f"{parameters.clients:,} reports of {report:,} bytes are {_size(total)} for the leader to receive, "
        f"{_time(8 * total / 1e9)} at 1 Gbit/s, and need at most {_size(1.15 * total)} of its disk"
    ]


def _size(size: float) -> str:
    unit, name = next(pair for pair in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= pair[0] or pair[0] == 1e6)
    return f"{size / unit:.3g} {name}"


def _time(seconds: float) -> str:
    unit, name = (3600, "hours") if seconds >= 7200 else (60, "minutes") if seconds >= 120 else (1, "seconds")
    return f"{seconds / unit:.2g} {name}"


def _inputs(proved: bool) -> list[str]:
    if not proved:
        return [
            "one client that sends false data, or the leader, or any one helper, can shift the sum by anything in the "
            "ring, undetected: masking proves nothing about inputs, and split has no proof of the sum"
        ]
    return [
        "the leader, or any one helper, can shift the sum by anything in the group, undetected: each report is proved, "
        "and split has no proof of the sum; a report is proved only if leader and all helpers follow the protocol",
        "any one of leader and helpers can make the proof of any honest client fail, and no message shows which of "
        "them lied, or whether the client did; a refused client is not notified, and may have its spend refunded with "
        "the signed lists of all helpers",
    ]


def _learned(noisy: bool) -> str:
    all_of_them = "if leader and all helpers work together they read every client's vector, and "
    if noisy:
        return (
            f"{all_of_them}nothing protects it then; any fewer of them learn the sum with the noise of the others in "
            "it, and nothing else: no party sees the exact sum"
        )
    return (
        f"{all_of_them}only noise that the client added itself protects it then; any fewer of them learn the sum and "
        "nothing else"
    )


def _number(helpers: int) -> str:
    return "1 helper" if helpers == 1 else f"{helpers} helpers"


@masking_numbers.register
def _numbers_of_interactive(parameters: Parameters) -> dict[str, Any]:
    numbers = {"neighbours": parameters.neighbours, "threshold": parameters.threshold}
    return {**numbers, "log2_failure_probabilities": asdict(parameters.bounds)}


@masking_numbers.register
def _numbers_of_split(parameters: UploadParameters) -> dict[str, Any]:
    return {name: getattr(parameters, name) for name in ("helpers", "tolerated", "min_survivors", "colluders")}
