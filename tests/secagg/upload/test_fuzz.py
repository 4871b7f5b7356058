"""Whatever arrives, in whatever order: a refusal by name or an answer, never another error."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg.upload import messages
from tests.contrib.proofs.proved import proved_of
from tests.secagg.upload.cohorts import Uploads, uploads_of
from tests.without import present

MAKERS = present({"": uploads_of, "proved ": proved_of})


def honest(make: Callable[[], Uploads]) -> dict[str, bytes]:
    """One message of every type."""
    run = make()
    found = {"report": run.report(1)}
    for step, question, answer in (("check", "batch", "checked"), ("reveal", "survivors", "reveal")):
        if step == "check":
            asked = run.play_until("check")
        else:
            run.pass_on(run.leader.outbox)
            asked = dict(run.leader.end_step())
        found |= {question: asked[6], answer: run.helpers[0].receive(asked[6])[0][1]}
    found["abandoned"] = make().helpers[0].abandon()[0][1]
    return found


MESSAGES = {f"{name}{kind}": data for name, make in MAKERS.items() for kind, data in honest(make).items()}


def mangled(data: bytes, random: Random) -> bytes:
    """The message with something wrong with it: bits, length, or its elements in another shape."""
    way = random.randrange(5)
    if way == 0:
        at = random.randrange(len(data))
        return data[:at] + random.randbytes(random.randrange(1, 9)) + data[at + random.randrange(9) :]
    if way == 1:
        return data[: random.randrange(len(data))]
    elements = msgspec.msgpack.decode(data[1:])
    at = random.randrange(len(elements))
    odd = [None, -1, 1 << 40, 1.5, "text", [], {}, b"", random.randbytes(64), [[[[]]]], True]
    elements[at] = random.choice(odd)
    if way == 3:
        elements = elements[:at]
    if way == 4:
        elements.append(random.choice(odd))
    return bytes([messages.VERSION]) + msgspec.msgpack.encode(elements)


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("step", ["report", "check", "reveal"])
def test_mangled_messages_are_refused_by_name(kind: str, step: str) -> None:
    random, run = Random(f"{kind} {step}"), MAKERS["proved " if kind.startswith("proved ") else ""]()
    run.play_until(step)
    before = run.leader.step, run.helpers[0].step, run.helpers[0].parts
    for _ in range(40):
        data = mangled(MESSAGES[kind], random)
        for receive in (run.helpers[0].receive, *(lambda d, p=peer: run.leader.receive(p, d) for peer in (1, 6, 9))):
            try:
                receive(data)
            except RemoteProtocolError as refusal:
                assert refusal.code.replace("_", "").isalpha()
    assert (run.leader.step, run.helpers[0].step, run.helpers[0].parts) == before
