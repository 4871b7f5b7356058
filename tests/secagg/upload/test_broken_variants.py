"""Attacks that read a client's vector from a weakened protocol, and do not from ours: the reasons for the rules.

The attacker is the leader, with all helpers but those that a test calls honest. Every attack must succeed on its
double, or the test that it fails here would show nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread

import numpy as np
import pytest

import privstats as ps
from privstats import session
from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.plan import check_plausible
from privstats.randomness import seeded
from privstats.secagg import HelperKeys, Offer, Panel
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.helper import Helper
from privstats.secagg.upload.masking_scheme import Streams, masked_tiles
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import (
    UNTIL,
    Uploads,
    answer_of,
    batch_of,
    body_of,
    list_of,
    refused,
    streams_of,
    uploads_of,
)
from tests.secagg.upload.inside import inside
from tests.threads import join

EVERYBODY, WITHOUT = (0, 1, 2, 3, 4), (0, 1, 3, 4)
VICTIM = 2


def difference(run: Uploads, more: RingVector, less: RingVector) -> np.ndarray:
    """The victim's body with the difference of two answers: its vector, if they differ by its streams alone."""
    vector = body_of(run, VICTIM)
    vector.add(more)
    vector.subtract(less)
    return vector.lift()


def reads(run: Uploads, found: np.ndarray) -> bool:
    return np.array_equal(found, run.values[VICTIM])


def shown(run: Uploads, helper: Helper, senders: tuple[int, ...] = EVERYBODY) -> None:
    helper.receive(batch_of(run, helper.place, senders))


# --- one seed for several helpers, no agreement among them ---


class Replicated(Streams):
    """Every helper has the same seed, so that any one of them may vanish."""

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        _, seeds = super().hide(vector, secret, sender)
        return masked_tiles(vector, minus=[self._stream(seeds[0], sender)]), [seeds[0]] * len(seeds)


class ReplicatingClient(Client):
    def _bind(self, *args) -> None:
        super()._bind(*args)
        self._scheme = Replicated(self.parameters.ring, self.parameters.helpers, self._context)


@pytest.mark.parametrize(("client", "breaks"), [(ReplicatingClient, True), (Client, False)])
def test_two_lists_to_two_helpers_read_a_client_where_they_share_a_seed(client: type[Client], breaks: bool) -> None:
    run = uploads_of(helpers=2, client_class=client)
    for helper in run.helpers:
        shown(run, helper)
    more = answer_of(run, run.helpers[0], list_of(run, EVERYBODY))
    less = answer_of(run, run.helpers[1], list_of(run, WITHOUT))
    assert reads(run, difference(run, more, less)) is breaks


# --- a helper that answers twice ---


class Forgetful(Helper):
    def _wipe(self, end) -> None:
        """It stays as it was."""


def test_a_helper_that_answers_two_lists_shows_a_client() -> None:
    run = uploads_of(helpers=1, helper_class=Forgetful)
    shown(run, run.helpers[0])
    more, less = (answer_of(run, run.helpers[0], list_of(run, listed)) for listed in (EVERYBODY, WITHOUT))
    assert reads(run, difference(run, more, less))


def test_our_helper_answers_one_list() -> None:
    run = uploads_of(helpers=1)
    (helper,) = run.helpers
    shown(run, helper)
    first = helper.receive(list_of(run, EVERYBODY))
    with refused("session_over"):
        helper.receive(list_of(run, WITHOUT))
    with refused("session_over"):
        helper.receive(batch_of(run, 1, (5,), part=1))
    assert helper.receive(list_of(run, EVERYBODY)) == first
    assert bytes(inside(helper).secret) == bytes(32)
    assert not inside(helper).pieces


# --- a second life of a helper ---


def test_a_box_key_that_lives_twice_shows_a_client() -> None:
    """What a restored backup or a copied machine is: the same private bytes around two helpers."""
    run = uploads_of(helpers=1)
    private, answers = stream("uploads box 1")(32), []
    for listed in (EVERYBODY, WITHOUT):
        keys = HelperKeys.from_private(run.members[1], 1, run.parameters, run.roster, private, until=UNTIL)
        helper = run.helper(keys)
        shown(run, helper)
        answers.append(answer_of(run, helper, list_of(run, listed)))
    assert reads(run, difference(run, *answers))


def test_our_keys_make_one_helper() -> None:
    run = uploads_of(helpers=1)
    with pytest.raises(LocalProtocolError, match="one box key answers in one machine"):
        run.helper(run.keys[1])


# --- a panel that nobody pinned ---


def own_panel(run: Uploads) -> tuple[Panel, list[bytes]]:
    """A panel of identities that the leader made up, which is as well signed as the true one."""
    private = [stream(f"own {place}")(32) for place in range(3)]
    identities = [run.members[0], *(ps.secagg.Identity.generate(os.urandom) for _ in range(2))]
    offers = tuple(
        Offer.make(place, identity, private[place], run.parameters, run.roster, until=UNTIL)
        for place, identity in enumerate(identities)
    )
    return Panel(tuple(identity.public for identity in identities), offers), private


def test_a_panel_that_the_leader_made_up_reads_everything() -> None:
    run = uploads_of(helpers=2)
    panel, private = own_panel(run)
    client = run.client(VICTIM, panel=panel)
    run.context, run.privates = inside(client).context, private
    report = client.start()[0][1]
    vector = run.parameters.ring.unpack(run.body(VICTIM, report))
    scheme = Streams(run.parameters.ring, 2, run.context)
    for place in (1, 2):
        vector.add(streams_of(scheme, run.parameters.ring, [(VICTIM, run.seed(VICTIM, report, place))]))
    assert reads(run, vector.lift())


def test_our_panel_takes_the_plans_identities_only() -> None:
    run = uploads_of(helpers=2)
    panel, _ = own_panel(run)
    with pytest.raises(LocalProtocolError, match="not of the identity that the plan names"):
        Panel(run.panel.identities, panel.offers)
    schema = ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0)
    plan = ps.Plan(
        schema=schema,
        cohort=ps.Cohort(clients=6, min_survivors=4, max_records=60),
        privacy=ps.NoPrivacy(),
        protocol="split",
        panel=tuple(each.public.hex() for each in run.members),
    )
    moments = ps.measure(schema, np.zeros((1, 4)), np.zeros(1, int))
    with pytest.raises(LocalProtocolError, match="could be the leader's own"):
        session.client(plan, moments, index=0, identity=run.identities[0], roster=run.roster, panel=panel)


# --- two lists at the same moment ---


class Unlocked(Helper):
    receive = Helper.receive.__wrapped__


def at_once(run: Uploads) -> list[RingVector]:
    """Two threads bring two lists; a barrier in the middle of the answer lets both in, if both get that far.

    A thread that has ended breaks the barrier, so the other thread does not wait for it.
    """
    (helper,) = run.helpers
    shown(run, helper)
    barrier, add_up, answers = Barrier(2, timeout=60), inside(helper).scheme.answer, []

    def slowly(pieces, out):
        pieces = list(pieces)
        with suppress(BrokenBarrierError):
            barrier.wait()
        add_up(pieces, out)

    inside(helper).scheme.answer = slowly
    lists = [list_of(run, listed) for listed in (EVERYBODY, WITHOUT)]

    def ask(message: bytes) -> None:
        try:
            answers.append(answer_of(run, helper, message))
        except (LocalProtocolError, RemoteProtocolError):
            return
        finally:
            barrier.abort()

    threads = [Thread(target=ask, args=(message,)) for message in lists]
    for thread in threads:
        thread.start()
    join(*threads)
    return answers


def test_two_lists_from_two_threads_show_a_client_where_there_is_no_lock() -> None:
    run = uploads_of(helpers=1, helper_class=Unlocked)
    one, other = at_once(run)
    assert reads(run, difference(run, one, other)) or reads(run, difference(run, other, one))


def test_our_helper_turns_the_second_thread_away() -> None:
    assert len(at_once(uploads_of(helpers=1))) == 1


# --- a check on the exact sum ---


def poisoned(plan: ps.Plan, with_victim: bool) -> RingVector:
    """A sum that a poisoner has put so close to the bound that the victim's one record decides."""
    room = plan.headroom[0]
    values = np.zeros(plan.ring.size, np.int64)
    values[plan.layout.slices[0].start] = -room.plausible - (1 if with_victim else 0)
    return plan.ring.encode(values)


def aborts(action: Callable[[bool], None], runs: int) -> list[int]:
    """How often it aborts with the victim's record, and without."""
    counts = [0, 0]
    for number in range(2 * runs):
        try:
            action(number % 2 == 0)
        except AggregationError:
            counts[number % 2] += 1
    return counts


def test_a_check_on_the_exact_sum_is_an_oracle_and_ours_is_not() -> None:
    plan = ps.Plan(
        schema=ps.ClassSchema(classes=3, features=4, statistics="NA", clip_norm=1.0),
        cohort=ps.Cohort(clients=6, min_survivors=4, max_records=60),
        privacy=ps.Privacy(epsilon=0.1, delta=1e-5, unit="record", adjacency="add-remove", model="central"),
        protocol="split",
        panel=("02" * 32, "03" * 32),
    )
    runs, everybody, rng = 100, tuple(range(6)), seeded(5)

    def exactly(with_victim: bool) -> None:
        check_plausible(plan, poisoned(plan, with_victim).lift())

    def ours(with_victim: bool) -> None:
        total = poisoned(plan, with_victim)
        session.release(plan, total, everybody, rng, charge="uncharged", allow_reproducible=True)

    assert aborts(exactly, runs) == [runs, 0]
    noisy = aborts(ours, runs)
    assert abs(noisy[0] - noisy[1]) < 4 * np.sqrt(runs / 2)
    assert all(0.2 * runs < count < 0.8 * runs for count in noisy)
