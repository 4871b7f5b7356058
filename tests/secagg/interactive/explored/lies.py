"""What a lying client may send in place of an honest answer: every field of it wrong, and what fits but is not true.

Another vector is no lie here: a client may bring any input, and the sum is exact with it.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec

from privstats.secagg import Client
from privstats.secagg.interactive import messages as kinds
from privstats.secagg.interactive import messages as said
from privstats.secagg.interactive.dealing import POLYNOMIALS, part
from privstats.secagg.wire import members, to_bitmap
from tests.secagg.interactive.cohorts import Cohort, forge, nothing, read
from tests.secagg.interactive.inside import inside

_ANSWERS = (kinds.Advertise, kinds.Share, kinds.Check, kinds.Mask, kinds.Agree, kinds.Unmask)


def subsets(of: Any) -> Iterator[tuple[int, ...]]:
    """All of them, in order."""
    listed = sorted(of)
    return (chosen for size in range(len(listed) + 1) for chosen in combinations(listed, size))


def lies_of(cohort: Cohort, liar: Client, answer: bytes) -> Iterator[bytes]:
    """Everything that is sent beside an honest answer.

    Args:
        cohort: whose keys are known.
        liar: the machine before it answered.
        answer: what it answered.
    """
    (kind,) = (each for each in _ANSWERS if kinds.is_kind(answer, each))
    honest = read(cohort, liar.index, answer, kind)
    for lie in (*_mutated(cohort, honest), *_untrue(cohort, liar, honest)):
        if lie != honest:
            bare = kind is kinds.Advertise
            yield bytes(kinds.encode(lie)) if bare else forge(cohort, liar.index, lie)


def _mutated(cohort: Cohort, honest: Any) -> Iterator[Any]:
    """One field wrong at a time."""
    for name in honest.__struct_fields__:
        for value in _values(cohort, getattr(honest, name)):
            if name == "links" and len(value) == len(honest.links):
                continue  # as another input, which a sum is exact with: test_disputes.py
            try:
                yield msgspec.convert(
                    msgspec.to_builtins(msgspec.structs.replace(honest, **{name: value})), type(honest)
                )
            except msgspec.ValidationError:
                continue  # no such message can be written


def _values(cohort: Cohort, value: Any) -> Iterator[Any]:
    n = cohort.parameters.clients
    if isinstance(value, memoryview):
        yield bytes(value[:-1])
    elif isinstance(value, bytes):
        yield from (value[:-1], value + b"\0", bytes(len(value)))
        places = {0, len(value) // 2, len(value) - 1} if value else ()
        yield from (value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in places)
    elif isinstance(value, tuple):
        yield from subsets(range(n))
        yield value[::-1]
    else:
        yield from range(n)


def _untrue(cohort: Cohort, liar: Client, honest: Any) -> Iterator[Any]:
    """Messages that fit in every field."""
    if isinstance(honest, kinds.Share):
        yield from _dealt(cohort, liar, honest)
    elif isinstance(honest, kinds.Agree):
        transcript = inside(liar).state.transcript
        for chosen in subsets(range(cohort.parameters.clients)):
            statement = said.survivors_statement(transcript, to_bitmap(chosen, cohort.parameters.clients))
            yield msgspec.structs.replace(honest, signature=cohort.identities[liar.index].sign(statement))
    elif isinstance(honest, kinds.Unmask):
        yield from _withheld_or_swapped(cohort, liar, honest)


def _dealt(cohort: Cohort, liar: Client, honest: kinds.Share) -> Iterator[kinds.Share]:
    """Dealings that nobody can use, and boxes that open to other shares."""
    empty = nothing(cohort.parameters.neighbours)
    yield msgspec.structs.replace(
        honest, commitments=empty.commitments, responses=empty.responses, proofs=bytes(len(honest.proofs))
    )
    state, secrets = inside(liar).state, inside(liar).secrets()
    size = kinds.BOX_BYTES
    for chosen in subsets(range(len(honest.boxes) // size)):
        boxes = [part(honest.boxes, place, size) for place in range(len(honest.boxes) // size)]
        others = sorted(each for each in range(cohort.parameters.clients) if each != liar.index)[: len(boxes)]
        for place in chosen:
            adverts = state.adverts
            if others[place] in adverts:
                wrong = bytes(len(POLYNOMIALS) * kinds.PAIR_BYTES // 2)
                boxes[place] = secrets.seal_box(wrong, liar.index, adverts[others[place]], state.transcript)
        yield msgspec.structs.replace(honest, boxes=b"".join(boxes))


def _withheld_or_swapped(cohort: Cohort, liar: Client, honest: kinds.Unmask) -> Iterator[kinds.Unmask]:
    """Fewer shares, and shares of the other kind."""
    half, state = kinds.SECRET_BYTES, inside(liar).state
    listed = members(state.survivors, cohort.parameters.clients)
    for given in subsets(honest.owners):
        for swapped in subsets(given):
            shares = b"".join(
                part(state.held[owner], int((owner in listed) == (owner in swapped)), half) for owner in given
            )
            yield msgspec.structs.replace(honest, owners=given, shares=shares)
