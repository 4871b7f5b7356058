"""A carrier in a package of somebody else, of public names alone: three parties, each in a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import privstats as ps
from privstats.engines.carriers import Deadlines, Host, simulated_study

PACKAGE = Path(__file__).parents[2] / "brought" / "posted"
RECORDS = """
from pathlib import Path

def load():
    party = int(Path(__file__).parent.name)
    return [[0.1 * party, 0.2], [0.3, -0.4]], [0, party % 2]
"""
PLAN = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 10), privacy=ps.NoPrivacy())
FASTER = 30.0


def seconds() -> float:
    """A clock that runs faster, so that a lost answer is asked for again within seconds."""
    return FASTER * time.monotonic()


def wait(while_: float) -> None:
    time.sleep(while_ / FASTER)


@contextmanager
def parties(homes: Sequence[Path], boxes: Sequence[Path]) -> Iterator[None]:
    """One process of the package for each party, until the block ends."""
    run = [sys.executable, str(PACKAGE / "post_office.py")]
    for box in boxes:
        box.mkdir(parents=True)
    running = [subprocess.Popen([*run, str(home), str(box)]) for home, box in zip(homes, boxes, strict=True)]
    try:
        yield
    finally:
        for box in boxes:
            (box / "end").touch()
        assert [each.wait(30) for each in running] == [0] * len(running)


def exact() -> ps.ClassMoments:
    shards = [([[0.1 * party, 0.2], [0.3, -0.4]], [0, party % 2]) for party in range(3)]
    return ps.simulate(PLAN, shards).moments


@pytest.mark.parametrize("faulty", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_three_processes_end_in_the_exact_sum_also_where_messages_come_twice_and_an_answer_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: bool
) -> None:
    monkeypatch.syspath_prepend(PACKAGE)
    from post_office import PostOffice

    lost: list[str] = []

    class Faulty(PostOffice):
        def push(self, node, kind, data, *, ttl):
            if faulty:
                super().push(node, kind, data, ttl=ttl)
            return super().push(node, kind, data, ttl=ttl)

        def pull(self, message, most):
            reply = super().pull(message, most)
            if reply is not None and faulty and not lost:
                lost.append(message)
                return None
            return reply

    (tmp_path / "records.py").write_text(RECORDS)
    simulated_study(tmp_path / "study", PLAN, tmp_path / "records.py")
    homes = [tmp_path / "study" / "parties" / str(party) for party in range(3)]
    boxes = [tmp_path / "post" / str(party) for party in range(3)]
    with parties(homes, boxes):
        ended = Host.open(tmp_path / "study" / "host").run(Faulty(boxes), Deadlines(), clock=seconds, sleep=wait)
    (release,) = ended.releases
    assert release.survivors == (0, 1, 2)
    assert release.moments == exact()
    assert bool(lost) is faulty


def test_the_package_is_short_and_names_public_names_alone() -> None:
    lines = [line for line in (PACKAGE / "post_office.py").read_text("utf-8").splitlines() if line.strip()]
    assert len(lines) < 40
    assert [line for line in lines if "privstats" in line] == [
        "from privstats.engines.carriers import MessageKind, Reply, answer"
    ]
