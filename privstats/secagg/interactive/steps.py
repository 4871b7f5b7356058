"""The transition table of the protocol: six steps, each opened by the server and answered by the clients.

Both machines run down this one table. A client at a step waits for ``opens`` and sends ``answers``; the server at a
step waits for ``answers`` from everyone still there and sends the next step's ``opens``. Data only.
"""

from __future__ import annotations

from dataclasses import dataclass

from privstats.secagg.interactive import messages
from privstats.secagg.interactive.names import StepName

__all__ = ["STEPS", "Step"]


@dataclass(frozen=True)
class Step:
    """One row: what opens the step at a client, what it answers, and which step follows."""

    opens: type[messages.ServerMessage]
    answers: type[messages.ClientMessage]
    then: StepName


STEPS: dict[StepName, Step] = {
    "advertise": Step(messages.Open, messages.Advertise, "share"),
    "share": Step(messages.Adverts, messages.Share, "check"),
    "check": Step(messages.Deliver, messages.Check, "mask"),
    "mask": Step(messages.Dealers, messages.Mask, "agree"),
    "agree": Step(messages.Survivors, messages.Agree, "unmask"),
    "unmask": Step(messages.Agreement, messages.Unmask, "done"),
}
