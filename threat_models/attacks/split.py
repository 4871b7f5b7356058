"""Attack 14 under ``protocol="split"``: a leader with all helpers but one lies to the real machines.

Each lie motivates one rule of the protocol. A lie that never succeeds proves nothing by itself: the tests run the same
lies against doubles that lack just that rule, where each reveals the victim's exact vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread

import numpy as np

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.secagg import Identity, Offer, Panel
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.staged_split import EVERYBODY, HELPERS, UNTIL, WITHOUT, Uploads, Value
from threat_models.attacks.unmasking import never
from threat_models.report import Row

__all__ = ["LIES", "SplitLies"]

_PATIENCE = 0.5  # seconds for two threads to meet where nothing keeps them apart


def two_lists(run: Uploads) -> Value | None:
    """Both helpers are honest, and each is shown another list: enough where they hold the same seeds."""
    one, other = run.helpers
    run.show(one)
    run.show(other)
    return _difference(run, run.asked(one, EVERYBODY), run.asked(other, WITHOUT))


def second_answer(run: Uploads) -> Value | None:
    """The honest helper is asked about a second list."""
    honest, _ = run.helpers
    run.show(honest)
    return _with_the_others(run, run.asked(honest, EVERYBODY), run.asked(honest, WITHOUT))


def second_life(run: Uploads) -> Value | None:
    """The honest helper's keys, from a backup of its machine, are put into a second machine with another list."""
    honest, _ = run.helpers
    twin = run.help(1)
    for machine in (honest, twin):
        run.show(machine)
    return _with_the_others(run, run.asked(honest, EVERYBODY), run.asked(twin, WITHOUT))


def unpinned_panel(run: Uploads) -> Value | None:
    """The victim is shown well signed offers of helpers that the leader made up."""
    boxes = [run.rng.bytes(32) for _ in range(HELPERS + 1)]
    people = [run.members[0], *(Identity.generate(run.rng.bytes) for _ in range(HELPERS))]
    run_of = (run.parameters, run.roster)
    offers = [Offer.make(place, people[place], box, *run_of, until=UNTIL) for place, box in enumerate(boxes)]
    report = run.report(0, offers)
    panel = Panel(tuple(person.public for person in people), tuple(offers))
    return run.lifted(report, panel, boxes).lift()


def two_threads(run: Uploads) -> Value | None:
    """Two threads bring two lists to the honest helper at the same moment."""
    honest, _ = run.helpers
    run.show(honest)
    meeting, answers = Barrier(2, timeout=_PATIENCE), dict[tuple[int, ...], RingVector]()
    add_up = honest._scheme.answer

    def slowly(pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        held = list(pieces)
        with suppress(BrokenBarrierError):
            meeting.wait()
        add_up(held, out)

    honest._scheme.answer = slowly  # type: ignore[method-assign]

    def ask(listed: tuple[int, ...]) -> None:
        try:
            answers[listed] = run.asked(honest, listed)
        except (LocalProtocolError, RemoteProtocolError):
            meeting.abort()

    threads = [Thread(target=ask, args=(listed,)) for listed in (EVERYBODY, WITHOUT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _with_the_others(run, answers[EVERYBODY], answers[WITHOUT]) if len(answers) == len(threads) else None


LIES: Mapping[str, Callable[[Uploads], Value | None]] = {
    "two lists": two_lists,
    "second answer": second_answer,
    "second life": second_life,
    "unpinned panel": unpinned_panel,
    "two threads": two_threads,
}
"""Every lie, by name: what it believes to be the victim's vector."""


class SplitLies(Examination):
    """The rate at which a lying leader unmasks one client of the one upload's machines as shipped."""

    name = "split-lies"
    number = 14
    goal = "unmasking"
    title = "somebody who leads one upload, with all helpers but one, lies to the rest to unmask a client"
    needs = Adversary(sees="transcript", knows="none", active=True)
    effort = 0.1

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan with a panel."""
        return None if plan.protocol == "split" else "lies to helpers, and this plan's protocol has none"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row per lie, in runs of six clients and two helpers; the cover promises that none ever succeeds."""
        del plan
        return never(self, LIES, lambda: Uploads(rng), trials, confidence)


def _difference(run: Uploads, more: RingVector, less: RingVector) -> Value:
    """The victim's body with the difference of two answers: its vector, if they differ by all of its streams."""
    vector = run.body()
    vector.add(more)
    vector.subtract(less)
    return np.asarray(vector.lift())


def _with_the_others(run: Uploads, more: RingVector, less: RingVector) -> Value:
    """The same where the streams of the helpers on the leader's side are known."""
    for place in range(2, HELPERS + 1):
        more.add(run.stream(place))
    return _difference(run, more, less)
