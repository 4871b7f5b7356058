"""Coverage-guided fuzzing with atheris: ``python -m tests.secagg.interactive.fuzz_target -runs=100000``.

The first byte chooses the step and the direction, the second whether the rest is sealed under a valid tag. Anything
but a ``RemoteProtocolError``, and any refused message that moves a machine, is a crash.
"""

import sys

import atheris

with atheris.instrument_imports(include=["privstats.secagg"]):
    from privstats.errors import RemoteProtocolError
    from privstats.secagg import wire
    from privstats.secagg.interactive.state import STEPS
    from tests.secagg.interactive.cohorts import cohort_of, play_until

NAMES = list(STEPS)
SESSIONS = {}
for name in NAMES:
    cohort = cohort_of()
    outbox = play_until(cohort, name)
    channel = cohort.channel(1) if name != "advertise" else None
    SESSIONS[name] = (cohort, outbox[0], cohort.clients[1].receive(outbox[1])[0][1], channel)


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    step = NAMES[data[0] % len(NAMES)]
    cohort, opening, answer, channel = SESSIONS[step]
    upward, sealed = bool(data[0] & 0x80), bool(data[1] & 1)
    body = bytearray((answer if upward else opening)[: wire.HEADER_BYTES]) + data[2:]
    if sealed and upward and channel is not None:
        body = channel.seal(body)
    try:
        if upward:
            cohort.server.receive(1, bytes(body))
        else:
            cohort.clients[0].receive(bytes(body))
    except RemoteProtocolError:
        if (cohort.server.step, cohort.clients[0].step) != (step, step):
            raise RuntimeError("a refused message moved a machine") from None
    else:
        raise RuntimeError("nonsense was accepted")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
