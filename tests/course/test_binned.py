"""Cut points first: what it costs, what may decide it, and what a table's owner need not know."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import document, verify_next
from privstats.course.base import as_next
from privstats.dp import gaussian_mu, joint_mu
from privstats.estimates.cut_points import public_cuts
from tests.course.cases import CLIENTS, CLOSED, HELPERS, OF_CELLS, TABLE, N, parties_plan, plan_of, table, tables
from tests.made import named, refused

pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
SCORES = ps.ScoreSchema(TABLE.width + 1, math.sqrt(2), transform=(TABLE, ps.transforms.ConstantFeature(1.0)))


def binned(then: str | None = None, schema: Any = OF_CELLS, **changes: Any) -> Any:
    own = {name: changes.pop(name) for name in ("share", "sessions", "rounds", "calibrated") if name in changes}
    return ps.Binned.within(plan_of(schema, **changes), then, expected_records=N, **own)


def run(course: Any, until: int | None = None, **changes: Any) -> list[Any]:
    """The releases of the first rounds, from the records dealt out."""
    releases: list[Any] = []
    while len(releases) < (course.most if until is None else until):
        plan = course.next(releases)
        if plan is None:
            break
        release = ps.simulate(plan, tables(), rng=ps.randomness.seeded(len(releases)), **changes)
        releases.append(as_next(course, releases, release))
    return releases


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "central"},
        {"model": "central", "adjacency": "replace-one"},
        {"model": "distributed"},
        {"model": "local"},
        {"model": "central", "unit": "client", "max_records_per_client": 200},
    ],
    ids=lambda changes: " ".join(map(str, changes.values())),
)
@pytest.mark.parametrize("then", [None, "centred", "rounds"])
def test_all_sessions_together_cost_the_promise_and_no_more(then: Any, changes: dict[str, Any]) -> None:
    """By the joint mu of every plan's noise, computed from its sigmas anew; J tables and every session are in it."""
    course = binned(then, **changes)
    first = course.first.privacy
    parts = []
    for plan in course.priced:
        sigmas, group = dict(plan.noise.sigma), 1
        if first.unit == "client":
            parts.append(plan.noise.mu)
            continue
        parts.append(group * joint_mu(plan.schema, sigmas, first.adjacency))
    whole = gaussian_mu(4.0, first.delta)
    assert whole * (1 - 1e-6) < math.hypot(*parts) <= whole * (1 + 1e-9)
    assert course.mu == pytest.approx(math.hypot(*parts), rel=1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_noise_of_a_count_is_that_of_the_design_and_grows_with_columns_and_sessions(adjacency: Any) -> None:
    """sqrt(sessions J / share) / mu, times sqrt 2 where a record is exchanged."""
    for sessions in (1, 3):
        noise = binned(model="central", adjacency=adjacency, share=0.25, sessions=sessions).first.noise
        expected = math.sqrt(sessions * 2 / 0.25) / gaussian_mu(4.0, 1e-5)
        assert noise.sigma["T"] == pytest.approx(
            expected * (math.sqrt(2) if adjacency == "replace-one" else 1), rel=1e-6
        )


def test_no_record_and_no_cut_point_decides_a_price_a_size_or_a_width() -> None:
    """The same plan over ten times as many records, and over one and the same record."""
    course = binned("centred")
    digests = [plan.digest for plan in course.priced]
    X, y = table()
    same = [({name: column[:1] * 50 for name, column in X.items()}, y[:1].repeat(50)) for _ in range(CLIENTS)]
    few = [
        ({name: column[:12] for name, column in X.items()}, part) for (X, part) in ((a, b[:12]) for a, b in tables())
    ]
    for shards in (tables(), same, few):
        releases = ps.simulate(course, shards, rng=ps.randomness.seeded(3))
        assert [each.plan.masking.upload_bytes for each in releases] == [
            plan.masking.upload_bytes for plan in course.priced
        ]
        assert [each.plan.noise.mu for each in releases] == [plan.noise.mu for plan in course.priced]
        assert releases[-1].plan.schema.features == TABLE.width
    assert [plan.digest for plan in course.priced] == digests


@pytest.mark.parametrize("then", [None, "centred", "rounds"])
def test_a_course_over_raw_tables_runs_to_a_head_with_all_of_its_promise(then: Any) -> None:
    course = binned(then, **({"rounds": 2} if then == "rounds" else {}))
    releases = ps.simulate(course, tables(), rng=ps.randomness.seeded(1))
    assert [each.plan.schema.task for each in releases[: course.counting.sessions]] == [
        "counts"
    ] * course.counting.sessions
    head = ps.heads.RefinedSoftmax() if then == "rounds" else ps.heads.LDA()
    (head.fit_releases if then == "rounds" else head.fit_release)(releases)
    assert head.provenance_.epsilon == pytest.approx(4.0, rel=1e-6)
    assert len(head.provenance_.releases) == len(releases)
    cells = releases[-1].plan.schema.transform[0]
    assert not cells.open
    assert {column.name: column.edges for column in cells.columns if column.name in TABLE.open} == course.cut_points(
        releases[: course.counting.sessions]
    )


@pytest.mark.parametrize("then", [None, "centred", "rounds"])
def test_every_plan_of_the_course_can_be_written_and_read(then: Any) -> None:
    """Between machines a round's plan is a file: counts behind declared columns were not read back."""
    course = binned(then)
    releases = run(course, course.counting.sessions + 1)
    for plan in (*(each.plan for each in releases), *course.priced[: course.counting.sessions]):
        if plan.published is None:
            found = ps.Plan.from_toml(plan.to_toml())
            assert (found, found.digest) == (plan, plan.digest)


def test_the_cuts_are_about_the_quantiles_of_the_records() -> None:
    course = binned(epsilon=50.0)
    cuts = course.cut_points(run(course, course.counting.sessions))
    X, _ = table()
    for name, column in (("age", "age"), ("sodium", "Sodium")):
        values = np.array([value for value in X[column] if isinstance(value, float)])
        below = [np.mean(values < cut) for cut in cuts[name]]
        assert np.abs(np.array(below) - np.arange(1, 8) / 8).max() < 0.06


def of_signs(signs: int, classes: int = 2, columns: Any = TABLE.columns, bits: int = 12) -> ps.ClassSchema:
    cells = ps.Cells(columns, signs=signs, bits=bits)
    return ps.ClassSchema(classes, cells.width, "NAB", 1.0, transform=(cells,))


def test_finer_ends_follow_from_public_numbers_alone() -> None:
    """n mu / (C sqrt d) of the rounds of at least 80; everything else keeps its bytes."""
    whole = plan_of(OF_CELLS)
    least = math.ceil(80 * 2 * math.sqrt(TABLE.width) / (gaussian_mu(4.0, 1e-5) * math.sqrt(0.8)))
    for records, on in ((least - 1, False), (least + 1, True)):
        course = ps.Binned.within(whole, "rounds", expected_records=records, pairs=False)
        assert (course.finer_ends, course.then.first.schema.transform[0].signs) == (on, 11 if on else 7)
        stated = ps.Binned.within(whole, "rounds", expected_records=records, pairs=False, finer_ends=on)
        assert (stated, stated.digest) == (course, course.digest)
    for then in (None, "centred"):
        course = ps.Binned.within(whole, then, expected_records=1 << 30)
        assert course.digest == ps.Binned.within(whole, then, expected_records=1 << 30, finer_ends=False).digest


WIDE = tuple(ps.Numeric(f"v{place}") for place in range(400))


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (of_signs(6), {}),
        (of_signs(11), {}),
        (of_signs(7, classes=3), {}),
        (of_signs(7), {"module": "adapter/4"}),
        (of_signs(7, columns=WIDE), {}),  # 400 * 13 entries are more than a row may have
        (of_signs(7, bits=8), {}),  # a step of 11 signs would be too short
    ],
    ids=["six", "eleven", "three classes", "module", "wide", "short steps"],
)
def test_the_rule_leaves_other_plans_as_they_are(schema: Any, options: dict[str, Any]) -> None:
    """A plan that could be made before can still be made, and whoever states signs keeps them."""
    course = ps.Binned.within(plan_of(schema), "rounds", expected_records=1 << 20, **options)
    assert course.finer_ends is False
    assert course.then.first.schema == schema


def test_finer_ends_add_four_entries_a_column_and_cost_nothing() -> None:
    plain, finer = (ps.Binned.within(plan_of(OF_CELLS), expected_records=N, finer_ends=ends) for ends in (False, True))
    assert finer.then.schema.features == finer.then.schema.transform[0].width == TABLE.width + 4 * len(TABLE.open)
    assert finer.mu == pytest.approx(plain.mu, rel=1e-12)
    assert [each.noise.mu for each in finer.priced] == [each.noise.mu for each in plain.priced]
    assert finer.digest != plain.digest


def test_finer_ends_cut_at_the_outer_quantiles_and_heads_follow_them() -> None:
    course = ps.Binned.within(plan_of(OF_CELLS, epsilon=50.0), "rounds", expected_records=N, rounds=2, finer_ends=True)
    releases = run(course)
    assert_quantiles(course, releases, [1 / 32, 1 / 16, *(np.arange(1, 8) / 8), 15 / 16, 31 / 32])
    head = ps.heads.RefinedSoftmax().fit_releases(releases)
    assert head.score(table()[0], table()[1]) > 0.6


def assert_quantiles(course: Any, releases: list[Any], ranks: Any) -> None:
    cuts, (X, _) = course.cut_points(releases[: course.counting.sessions]), table()
    for name, column in (("age", "age"), ("sodium", "Sodium")):
        values = np.array([value for value in X[column] if isinstance(value, float)])
        assert np.abs(np.array([np.mean(values < cut) for cut in cuts[name]]) - ranks).max() < 0.06


def test_stated_signs_keep_even_cuts_and_readers_of_their_releases() -> None:
    course = ps.Binned.within(plan_of(of_signs(11), epsilon=50.0), "rounds", expected_records=N, rounds=2)
    releases = run(course)
    assert_quantiles(course, releases, np.arange(1, 12) / 12)
    assert ps.heads.RefinedSoftmax().fit_releases(releases).score(*table()) > 0.6
    counts, sums = releases[: course.counting.sessions], releases[course.counting.sessions :]
    finer = replace(course, finer_ends=True)
    assert finer.digest != course.digest
    with pytest.raises(ps.PlanError, match="is not the one that follows from the course and these releases"):
        verify_next(course, finer.next(named(finer, counts)), counts)
    with pytest.raises(ps.ReleaseError, match="the cut points of these sums do not follow from these counts"):
        ps.heads.RefinedSoftmax().fit_releases([*counts[:-1], None, *sums])


def test_a_course_with_finer_ends_can_be_written_and_read(tmp_path: Path) -> None:
    course = ps.Binned.within(plan_of(OF_CELLS), "rounds", expected_records=N, finer_ends=True)
    document.write(tmp_path / "study.toml", course)
    assert "finer_ends = true" in (tmp_path / "study.toml").read_text()
    assert document.read(tmp_path / "study.toml") == course
    document.write(tmp_path / "even.toml", ps.Binned.within(plan_of(OF_CELLS), "rounds", expected_records=9))
    assert "finer_ends" not in (tmp_path / "even.toml").read_text()


@pytest.mark.parametrize("schema", [of_signs(3), replace(OF_CELLS, transform=(TABLE, ps.transforms.UnitNorm()))])
def test_finer_ends_are_refused_where_a_plan_says_how_many_cuts_there_are(schema: Any) -> None:
    refused(ps.PlanError, "signs=7", ps.Binned.within, plan_of(schema), expected_records=N, finer_ends=True)


@pytest.mark.parametrize("finer_ends", [True, 1, "yes"])
def test_a_course_of_seven_signs_has_no_finer_ends(finer_ends: Any) -> None:
    course = ps.Binned.within(plan_of(OF_CELLS), expected_records=N)
    refused(ps.PlanError, "signs=11", replace, course, finer_ends=finer_ends)


@pytest.mark.parametrize("then", [None, "centred", "newton"])
def test_a_party_computes_the_next_plan_anew_and_compares_it_to_the_last_digit(then: Any) -> None:
    schema = SCORES if then == "newton" else OF_CELLS
    whole = (
        plan_of(schema)
        if then != "newton"
        else ps.Newton.full_plan(schema=SCORES, cohort=plan_of().cohort, privacy=plan_of().privacy)
    )
    course = ps.Binned.within(whole, then, expected_records=N)
    counts = run(course, course.counting.sessions)
    for place in range(1, len(counts) + 1):
        plan = course.next(counts[:place])
        assert verify_next(course, plan, counts[:place]).place == place
    cells, *maps = plan.schema.transform
    edges = next(column.edges for column in cells.columns if column.name == "age")
    moved = cells.columns[0], replace(cells.columns[0], edges=(math.nextafter(edges[0], 0) * (1 - 2**-40), *edges[1:]))
    other = replace(cells, columns=tuple(moved[1] if each is moved[0] else each for each in cells.columns))
    wrong = replace(plan, schema=replace(plan.schema, transform=(other, *maps)))
    with pytest.raises(ps.PlanError, match="is not the one that follows from the course and these releases"):
        verify_next(course, wrong, counts)
    with pytest.raises(
        ps.PlanError, match="release 1 is not of this course's session 'finer counts'; give the releases of its own"
    ):
        course.next([counts[0], counts[0]])


def test_a_count_session_without_a_sum_leaves_the_cells_and_if_all_are_lost_cuts_are_public() -> None:
    course = binned("centred")
    sessions = course.counting.sessions
    (first,) = run(course, 1)
    assert (course.next([None]), course.next([first, None])) == (course.first, course.next([first]))
    plan = course.next([None] * sessions)
    assert course.cut_points([None] * sessions) == dict.fromkeys(("age", "sodium"), public_cuts(7))
    assert plan.schema.task == "mean"
    assert course.next([None] * (sessions + 1)).schema.task == "classes"  # a mean without a sum: the sums as they are
    assert course.next([None] * (sessions + 2)) is None


def test_counts_that_are_all_lost_are_in_every_printed_epsilon() -> None:
    """The first release with a sum names what was spent before it."""
    whole = ps.Newton.full_plan(schema=SCORES, cohort=plan_of().cohort, privacy=plan_of().privacy)
    course = ps.Binned.within(whole, "newton", expected_records=N)
    gone = [{course.first.masking.upload_step: {0, 1}}] * course.counting.sessions
    releases = ps.simulate(course, tables(), dropouts=gone, rng=ps.randomness.seeded(1))
    have = [each for each in releases if each is not None]
    assert len(have) == len(releases) - len(gone) == 4
    for several in (releases, have):
        text = " ".join(str(ps.inference.logit(several).summary()).split())
        assert f"epsilon {course.epsilon(1e-5):.4g}, delta 1e-05, all {len(releases)} sessions" in text
    sums = binned(sessions=2)
    *lost, last = ps.simulate(sums, tables(), dropouts=gone[:2], rng=ps.randomness.seeded(1))
    assert lost == [None, None]
    for given in ([*lost, last], last):
        promise = ps.heads.LDA().fit_release(given).provenance_
        assert promise.epsilon == pytest.approx(sums.epsilon(1e-5), rel=1e-6)
        assert promise.epsilon >= sums.epsilon(1e-5)


def test_a_value_counts_in_the_cell_that_its_signs_say() -> None:
    """Values on cuts, integers and both zeros; what follows would sum another cell than was counted."""
    course = binned()
    edges = (-2.0, -1.0, 0.0, 0.1, 1.0, 3.0)
    schema = course._counts(dict.fromkeys(("age", "sodium"), (-9.0, *edges, 9.0))).schema
    closed = TABLE.with_edges({"age": edges, "sodium": edges})
    for value in (
        *edges,
        -0.0,
        0.1 + 1e-17,
        0.30000000000000004 - 0.2,
        math.nextafter(1, 0),
        "1",
        "0.1 ",
        1e300,
        None,
        "x",
    ):
        record = {"age": [value], "sodium": [value], "ill": [1], "ward": ["a"]}
        counted = ps.measure(schema, record, unreadable="leave out").T[schema.place(("age",))].tolist()
        signs = closed.grid_rows(closed.codes(record))[0][closed.blocks[0]][: len(edges)]
        place = len(counted) - 1 if not signs.any() else int((signs > 0).sum())
        assert counted[place] == 1, value


def test_counts_read_no_targets_and_any_value_has_a_cell() -> None:
    course = binned()
    X, y = table()
    moments = ps.measure(course.first.schema, X, y, unreadable="leave out")
    assert (moments.records, moments) == (N, ps.measure(course.first.schema, X, unreadable="leave out"))
    for name in ("age", "sodium"):
        assert moments.T[course.first.schema.place((name,))].sum() == N


def test_no_record_moves_counts_by_more_than_the_noise_is_for_and_some_pair_by_as_much() -> None:
    """Any two records of odd values, beside others whose cells they may not move; every session's cells are tried."""
    course = binned()
    narrow = course.next(run(course, 1))
    odd: list[object] = [None, "x", "", -0.0, 1e300, -(2**60), True, "007", 1e-9, float("inf"), "2020-01-02", (1, 2)]
    X, _ = table(30)
    for plan in (course.first, narrow):
        before = ps.measure(plan.schema, X, unreadable="leave out").T
        vectors = []
        for age, sodium in product(odd, odd):
            one = {"age": age, "Sodium": sodium, "ill": odd, "ward": None}
            more = {name: [*column, one.get(name)] for name, column in X.items()}
            vectors.append(ps.measure(plan.schema, more, unreadable="leave out").T - before)
        assert {int(np.abs(vector).sum()) for vector in vectors} == {2}  # one cell of each table
        farthest = max(np.linalg.norm(a - b) for a, b in product(vectors, vectors))
        assert farthest == pytest.approx(math.sqrt(2 * 2))
        assert joint_mu(plan.schema, {"T": 1.0}, "add-remove") == pytest.approx(math.sqrt(2))
        assert joint_mu(plan.schema, {"T": 1.0}, "replace-one") == pytest.approx(farthest)


def test_the_noise_does_not_depend_on_what_a_party_says_it_counted() -> None:
    """A party that lies a millionfold about its counts moves the cut points, and nothing else."""
    course = binned(model="central")
    honest = run(course, 1)
    lied = replace(honest[0], vector=honest[0].vector * 1_000_003)
    for releases in (honest, [lied]):
        plan = course.next(releases)
        assert plan.noise == course.priced[1].noise
        assert plan.masking.upload_bytes == course.priced[1].masking.upload_bytes
    assert course.next([lied, *[None] * (course.counting.sessions - 1)]).noise == course.priced[-1].noise


@pytest.mark.parametrize("level", ["norm", "moments"])
def test_parties_that_prove_their_sums_prove_their_counts_cell_by_cell(level: Any) -> None:
    changes: dict[str, Any] = {"protocol": "split", "panel": HELPERS, "model": "panel"}
    whole = replace(plan_of(OF_CELLS, **changes), validity=ps.plan.Validity(level, most_records=200))
    course: Any = ps.Binned.within(whole, "rounds", expected_records=N)
    proved = [plan.masking.statement.name for plan in course.priced]
    counts = course.counting.sessions
    assert proved == ["moments"] * counts + [level] + ["norm"] * (len(proved) - counts - 1)


def test_how_finely_is_counted_follows_from_stated_numbers_alone() -> None:
    clear, dim = binned(epsilon=20.0), binned(epsilon=0.5)
    assert clear.signal_to_noise > 20 > dim.signal_to_noise
    assert clear.counting == dim.counting == ps.Binned.within(plan_of(OF_CELLS), expected_records=10 * N).counting
    assert (clear.counting.cells, clear.counting.sessions, clear.counting.share) == (32, 4, 0.2)
    assert not clear.remark
    assert dim.remark.startswith("600 records, the promise and 2 open columns leave a full cell")
    assert "state the edges of some columns (age, sodium), or read fewer" in dim.remark
    noisy = binned(epsilon=20.0, model="local")
    assert noisy.signal_to_noise < clear.signal_to_noise / 1.5  # the noise of every party is in it
    n = 10 * N
    assert ps.Binned.within(plan_of(OF_CELLS), expected_records=n).signal_to_noise == pytest.approx(
        10 * binned().signal_to_noise, rel=1e-6
    )


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (
            lambda: binned(schema=ps.ClassSchema(2, CLOSED.width, "NAB", 1.0, transform=(CLOSED,))),
            "all edges are public",
        ),
        (lambda: ps.Binned.within(plan_of(), expected_records=9), "give a plan whose transform starts with Cells"),
        (lambda: ps.Binned(ps.PartyRounds.within(parties_plan()), expected_records=9), "got PartyRounds"),
        (lambda: ps.Binned(binned(), expected_records=9), "then must be a Plan, or a course of one .* got Binned"),
        (lambda: binned("stream"), "then must be 'centred', 'rounds', 'newton' or None"),
        (lambda: binned(None, rounds=2), "a plan has no rounds"),
        (lambda: binned(delta=0.0), "delta = 0 is supported for"),
        (lambda: binned(share=0.95), "share must be a number from 1/64 to .9"),
        (lambda: binned(sessions=7), "sessions must be an integer from 1 to 6"),
        (lambda: ps.Binned.within(plan_of(OF_CELLS), expected_records=0), "expected_records must be an integer"),
        (
            lambda: ps.Binned.within(
                ps.Plan(schema=OF_CELLS, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy()), expected_records=9
            ),
            "a course needs differential privacy",
        ),
    ],
)
def test_what_cannot_be_a_course_is_refused_in_a_sentence(act: Any, said: str) -> None:
    refused(ps.PlanError, said, act)


@pytest.mark.parametrize(("then", "names"), [(None, 2), ("centred", 3), ("rounds", 3)])
def test_the_files_of_a_course_of_a_course_name_one_another(then: Any, names: int, tmp_path: Path) -> None:
    course = binned(then)
    beside = document.write(tmp_path / "study.toml", course)
    assert (beside.name, len(list(tmp_path.iterdir()))) == ("study.then.toml", names)
    found: Any = document.read(tmp_path / "study.toml")
    assert (found, found.digest, found.promise) == (course, course.digest, course.promise)
    assert found.then == course.then
    document.write(tmp_path / "other.toml", binned(then, epsilon=3.9))
    (tmp_path / "study.then.toml").write_bytes((tmp_path / "other.then.toml").read_bytes())
    with pytest.raises(ps.PlanError, match="study.then.toml is not the .* that the course was written for"):
        document.read(tmp_path / "study.toml")


def test_a_course_file_that_names_itself_is_refused(tmp_path: Path) -> None:
    document.write(tmp_path / "study.toml", binned("centred"))
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace('"study.then.toml"', '"study.toml"'))
    refused(ps.PlanError, "has unknown keys 'course'", document.read, tmp_path / "study.toml")


def test_one_party_alone_counts_what_it_cannot_read_as_missing_as_every_party_does() -> None:
    """Labels that are no class are left out of the sums, and columns that are not there are refused first."""
    course = binned(model="central")
    X, y = table()
    y[:30] = 7
    releases = ps.private_releases(course, X, y, ledger="uncharged")
    assert [each.plan.schema.task for each in releases] == ["counts"] * course.counting.sessions + ["classes"]
    assert abs(releases[-1].moments.N.sum() - (N - 30)) < 10 * releases[-1].sigma["N"]
    with pytest.raises(ps.DataError, match="the table lacks the column 'sodium'"):
        ps.private_releases(course, {"age": X["age"]}, y, ledger="uncharged")


def test_records_that_a_later_session_would_refuse_are_refused_before_the_first() -> None:
    """Counts read no labels."""
    course = binned("centred", model="central")
    X, y = table()
    refused(ps.DataError, "y", course.admits, X, y[:-1], "leave out")


REGRESSION = ps.RidgeSchema(
    TABLE.width + 1, clip_norm=math.sqrt(2), target_bound=1.0, transform=(TABLE, ps.transforms.ConstantFeature(1.0))
)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("then", "head"), [(None, ps.heads.Ridge), ("rounds", ps.heads.RefinedRidge)])
def test_a_regression_behind_cut_points_keeps_the_promise_and_is_read_from_its_releases(
    then: Any, head: Any, adjacency: Any, tmp_path: Path
) -> None:
    course = binned(then, REGRESSION, adjacency=adjacency, **({"rounds": 2} if then else {}))
    parts = [joint_mu(plan.schema, dict(plan.noise.sigma), adjacency) for plan in course.priced]
    assert gaussian_mu(4.0, 1e-5) * (1 - 1e-6) < math.hypot(*parts) <= gaussian_mu(4.0, 1e-5) * (1 + 1e-9)
    document.write(tmp_path / "study.toml", course)
    assert document.read(tmp_path / "study.toml") == course
    releases = ps.simulate(course, tables(), rng=ps.randomness.seeded(2))
    for place in range(1, len(releases)):
        assert verify_next(course, releases[place].plan, releases[:place]).place == place
    found = head().fit_releases(releases) if then else head().fit_release(releases)
    assert found.provenance_.epsilon == pytest.approx(4.0, rel=1e-6)
    assert (len(found.provenance_.releases), found.predict(table()[0]).shape) == (len(releases), (N,))


def test_a_record_without_a_target_is_admitted_and_left_out_of_a_regression() -> None:
    course = binned(None, REGRESSION, model="central")
    X, y = table()
    targets: list[Any] = [None, "x", float("nan"), *y[3:].tolist()]
    releases = ps.private_releases(course, X, targets, ledger="uncharged")
    assert abs(releases[-1].moments.G[-1, -1] - (N - 3)) < 10 * releases[-1].sigma["G"]
