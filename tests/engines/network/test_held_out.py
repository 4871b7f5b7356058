"""A split under replace-one: every plan that lets a party hold records out hides what a replaced record moves."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import Single
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import records_of, require_hidden, require_hidden_in
from privstats.engines.network.records_script import name_file
from privstats.errors import DataError
from privstats.moments import RecordFile, Records
from tests import made
from tests.course.cases import rounds
from tests.engines.network.fake import RECORDS, Study, open_accounts, study_of
from tests.schema.changed import change_kind

SITES = ps.SitesSchema(2, 1.0)
COHORT = ps.Cohort(5, 3, 100)
ROWS = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.5, -0.5), (0.0, 0.0))
COUNTS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


@pytest.fixture(autouse=True)
def unmoved_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound under replace-one that does not cover one record more or less: N does not move where one is replaced.

    Each kind of privstats covers it. A kind of another package may not, and then a split is refused.
    """

    def unmoved(right: Any) -> Any:
        def square(schema: Any, weights: Any, adjacency: Any) -> float:
            dropped = "" if adjacency == "add-remove" else "N"
            return right(schema, {name: each for name, each in weights.items() if name != dropped}, adjacency)

        return square

    change_kind(monkeypatch, "sites", move=unmoved)


def sites_plan(count: float, adjacency: str = "replace-one") -> ps.Plan:
    return made.plan(SITES, COHORT, made.promise(adjacency=adjacency, shares={"N": count, "Q": 1 - count}))


def allowed(plan: ps.Plan) -> bool:
    try:
        require_hidden(Single(plan))
    except DataError:
        return False
    return True


def summed(seed: int) -> dict[tuple[int, ...], Any]:
    """N and Q of what a split sums of every file of three records, by their rows."""
    found = {}
    key = Records(np.array(ROWS)[:, :1], np.array(ROWS)[:, 1])
    for file in itertools.combinations_with_replacement(range(len(ROWS)), 3):
        try:
            part, _ = Records(key.X[list(file)], key.y[list(file)]).split(0.5, seed)
        except DataError:  # a part without a record
            continue
        real = ps.measure(SITES, part.X, part.y).real()
        found[file] = np.array([real.N, *real.Q.ravel()])
    return found


def furthest(plan: ps.Plan) -> float:
    """The most, in deviations of the noise, that the sums of two files differ by that differ in one record."""
    sigma = plan.noise.sigma
    weight = np.array([1 / sigma["N"], *[1 / sigma["Q"]] * 4])
    most = 0.0
    for seed in range(4):
        known = summed(seed)
        for one, other in itertools.combinations(known, 2):
            if (Counter(one) & Counter(other)).total() == 2:
                most = max(most, float(np.linalg.norm((known[one] - known[other]) * weight)))
    return most


def test_no_two_neighbouring_files_are_told_apart_better_than_promised() -> None:
    """Exhaustive: files of three records of five, neighbours under replace-one, the part of each that is summed."""
    plans = [sites_plan(count) for count in COUNTS]
    assert [allowed(plan) for plan in plans] == [True, True, True, True, False, False, False]
    for plan in plans:
        if allowed(plan):
            assert furthest(plan) <= plan.noise.mu
    assert furthest(plans[-1]) > 6 * plans[-1].noise.mu  # and this one is refused for a reason


@pytest.mark.parametrize("count", COUNTS)
def test_under_add_remove_every_plan_lets_records_be_held_out(count: float) -> None:
    assert allowed(sites_plan(count, "add-remove"))


def test_a_whole_course_and_a_plan_without_noise_are_looked_at_alike() -> None:
    require_hidden(rounds(adjacency="replace-one"))
    require_hidden(Single(made.plan(SITES, COHORT)))
    parties = made.promise(unit="client", adjacency="replace-one", max_records_per_client=1)
    require_hidden(Single(made.plan(ps.PartySchema(2, 3), COHORT, parties)))  # of which a party is one record
    pure = made.promise(adjacency="replace-one", delta=0.0)
    require_hidden(Single(made.plan(ps.ClassSchema(2, 3, "NA", 1.0), COHORT, pure)))


def file_of(study: Study) -> RecordFile:
    rng = np.random.default_rng(0)
    np.savez(study.home(0) / "sites.npz", X=rng.normal(size=(40, 1)), y=rng.normal(size=40))
    return RecordFile(study.home(0) / "sites.npz", split=0.25)


def test_the_command_and_the_party_refuse_a_split_that_the_plan_does_not_hide(tmp_path: Path) -> None:
    privacy = sites_plan(0.99).privacy
    study = study_of(tmp_path, schema=SITES, privacy=privacy)
    open_accounts(study, 3.0)
    file, folder = file_of(study), Folder.open(study.home(0))
    said = r"^the plan promises replace-one, and a split .* costs mu 1\.8\d* where the noise is for 0\.2\d*; agree on"
    with pytest.raises(DataError, match=said):
        name_file(folder, file, RECORDS.encode())
    script = study.home(0) / "records.py"
    assert script.read_text() == RECORDS
    script.write_text(
        "from privstats.moments import RecordFile\n\ndef load():\n    return RecordFile('sites.npz', split=0.25)\n"
    )
    with pytest.raises(DataError, match=said):
        records_of(folder.round(0))
    script.write_text(script.read_text().replace(", split=0.25", ""))
    assert records_of(folder.round(0)).moments.records == 40


def test_an_account_under_replace_one_refuses_it_where_the_plan_does_not(tmp_path: Path) -> None:
    """Its price would be that of a replaced record, which is less than that of one that leaves the sums."""
    plan = sites_plan(0.99, "add-remove")
    study = study_of(tmp_path, schema=SITES, privacy=plan.privacy)
    open_accounts(study, 3.0)
    folder = Folder.open(study.home(0))
    name_file(folder, file_of(study), RECORDS.encode())
    kept = records_of(folder.round(0)).moments
    assert 20 < kept.records < 40
    folder.ledger.set_cap("beds", **made.cap(adjacency="replace-one"))
    with pytest.raises(DataError, match=r"^account 'beds' is kept under replace-one, and a split goes by .* keep an"):
        records_of(folder.round(0))
    require_hidden_in(folder.ledger.account("beds"), Single(sites_plan(0.2)))
