"""A machine is one party in one session: two calls at once, a copy or a fork would be a second one, and are refused."""

import contextlib
import copy
import os
import pickle
import threading
from collections.abc import Callable

import numpy as np
import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.interactive import messages
from privstats.secagg.wire import to_bitmap
from tests.faults import interrupted
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, lie, play_until
from tests.secagg.interactive.inside import inside
from tests.threads import join


def at_once(barrier: threading.Barrier, *calls: Callable[[], object]) -> list[object]:
    """Run each call in a thread of its own, and return the result or the error of each.

    A call that has ended breaks the barrier, so no other call waits for it.
    """
    results: list[object] = [None] * len(calls)

    def one(place: int) -> None:
        try:
            results[place] = calls[place]()
        except Exception as error:
            results[place] = error
        finally:
            barrier.abort()

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    join(*threads)
    return results


def meeting(monkeypatch: pytest.MonkeyPatch, name: str) -> threading.Barrier:
    """Let the calls of ``name`` wait for each other at the returned barrier, as an unlucky schedule would."""
    module, attribute = name.rsplit(".", 1)
    original = getattr(__import__(module, fromlist=[attribute]), attribute)
    barrier = threading.Barrier(2, timeout=60)

    def met(*args, **kwargs):
        with contextlib.suppress(threading.BrokenBarrierError):  # nobody else got this far
            barrier.wait()
        return original(*args, **kwargs)

    monkeypatch.setattr(name, met)
    return barrier


def busy(results: list[object]) -> list[object]:
    return [each for each in results if isinstance(each, LocalProtocolError) and "one call at a time" in str(each)]


def test_one_mask_delivered_twice_at_once_is_added_once(monkeypatch) -> None:
    """A retry in the thread pool of an HTTP server: both threads found the client still expected, both added."""
    cohort = cohort_of()
    outbox = play_until(cohort, "mask")
    upload = cohort.clients[0].receive(outbox[0])[0][1]
    with monkeypatch.context() as patch:
        barrier = meeting(patch, "privstats.secagg.interactive.server.add_packed")
        results = at_once(barrier, *[lambda: cohort.server.receive(0, upload)] * 2)
    cohort.answer(outbox, range(1, 6))
    total, survivors = finish(cohort, dict(cohort.server.end_step()))
    assert survivors == (0, 1, 2, 3, 4, 5)
    assert np.array_equal(total, cohort.sum_over(survivors))
    assert len(busy(results)) == 1


def test_two_survivor_lists_at_once_get_one_signature(cohort: Cohort, monkeypatch) -> None:
    """A client that signs two lists lets a server without a single colluder unmask it alone."""
    play_until(cohort, "agree")
    lists = [to_bitmap(set(range(6)), 6), to_bitmap({0, 1, 2, 3, 4}, 6)]
    session = inside(cohort.server).state.session
    shown = [lie(cohort, 0, messages.Survivors(session, each)) for each in lists]
    barrier = meeting(monkeypatch, "privstats.secagg.interactive.checks.check_survivors")
    results = at_once(barrier, *(lambda data=data: cohort.clients[0].receive(data) for data in shown))
    assert sum(isinstance(each, list) for each in results) == 1
    assert len(busy(results)) == 1


def test_closing_twice_at_once_unmasks_once(monkeypatch) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    cohort.answer(outbox, range(5))
    with monkeypatch.context() as patch:
        barrier = meeting(patch, "privstats.secagg.interactive.server.unmask")
        results = at_once(barrier, cohort.server.end_step, cohort.server.end_step)
    total, survivors = cohort.server.result
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))
    assert len(busy(results)) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_upload_interrupted_half_way_never_reaches_a_sum(error, monkeypatch) -> None:
    """Half of it is in the sum already, so adding it again would make a wrong one."""
    cohort = cohort_of()
    outbox = play_until(cohort, "mask")
    upload = cohort.clients[0].receive(outbox[0])[0][1]

    def interrupted(total, packed):
        total.lanes[0][0] += 1
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("privstats.secagg.interactive.server.add_packed", interrupted)
        with pytest.raises(error):
            cohort.server.receive(0, upload)
    assert cohort.server.step == "failed"


def test_an_interrupted_unmasking_never_gives_a_sum() -> None:
    """Some masks are out of the sum already, so taking all of them out again would make a wrong one."""
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    cohort.answer(outbox, range(5))
    with interrupted("privstats.secagg.interactive.unmasking.reduce"):
        cohort.server.end_step()
    assert cohort.server.step == "failed"
    with pytest.raises(LocalProtocolError, match="no result"):
        _ = cohort.server.result


def test_an_interrupted_client_answers_nothing_more(cohort: Cohort) -> None:
    outbox = play_until(cohort, "mask")
    with interrupted("privstats.secagg.interactive.client.add_masks"):
        cohort.clients[0].receive(outbox[0])
    assert cohort.clients[0].step == "failed"


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("machine", ["client", "server"])
def test_a_copy_of_a_machine_would_be_a_second_one(cohort: Cohort, machine: str, way) -> None:
    play_until(cohort, "agree")
    with pytest.raises(LocalProtocolError, match="would be a second one"):
        way(cohort.clients[0] if machine == "client" else cohort.server)


def test_a_fork_would_be_a_second_machine(cohort: Cohort) -> None:
    outbox = play_until(cohort, "agree")
    pid = os.fork()
    if pid == 0:
        try:
            cohort.clients[0].receive(outbox[0])
        except LocalProtocolError as refusal:
            os._exit(0 if "another process" in str(refusal) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert cohort.clients[0].receive(outbox[0])


def test_a_machine_knows_the_process_that_made_it(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(LocalProtocolError, match="this Server belongs to another process"):
        cohort.server.start()
    monkeypatch.undo()
    assert len(cohort.server.start()) == 6


def test_a_call_inside_a_call_is_refused_and_the_outer_one_goes_on() -> None:
    class Machine(Exclusive):
        @exclusive
        def outer(self) -> str:
            with pytest.raises(LocalProtocolError, match="one call at a time"):
                self.inner()
            return "finished"

        @exclusive
        def inner(self) -> str:
            return "reached"

    machine = Machine()
    assert (machine.outer(), machine.inner()) == ("finished", "reached")
