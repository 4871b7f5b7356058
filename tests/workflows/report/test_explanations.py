"""Every sentence about a plan says the plan's own numbers, and never promises more."""

import math
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import privstats as ps
from privstats.course.promise import total_of
from privstats.dp.privacy import MODELS
from privstats.plan.device_rules import min_stated_epsilon
from privstats.printable import at_most
from privstats.workflows.report import Cell, Statement, explanations, page_of, sessions
from tests import made
from tests.course.cases import rounds
from tests.plan.devices import devices_plan, sample_devices
from tests.workflows.report.conftest import PRIVACY


def flat(table):
    return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]


def terms(table):
    return {cell.text: cell.notes for cell in table.header if not isinstance(cell, str)}


@pytest.mark.parametrize("mu", [0.01, 0.2681, 1.0, 5.0])
def test_of_100_are_found_never_fewer_than_an_attacker_can_find(mu):
    exact = 100 * ps.dp.operating_point(mu)[0]
    assert exact <= explanations.hits(ps.dp.Guarantee(mu)) <= exact + 0.1
    assert explanations.hits(ps.dp.Guarantee(math.inf)) == 100


def test_the_headline_is_what_the_promise_is_worth(plan, changed):
    assert explanations.headline(plan).startswith("At most 2 of 100 records found at 1 false alarm in 100")
    strong = changed(privacy=replace(PRIVACY, epsilon=0.1))
    assert "At most 1.1 of 100 records" in explanations.headline(strong)
    assert "parties (each with all its records)" in explanations.headline(
        changed(privacy=replace(PRIVACY, unit="client", max_records_per_client=9))
    )
    assert explanations.headline(changed(privacy=ps.NoPrivacy())).startswith("Nothing bounds")


def test_what_is_collected_is_counted(plan, changed):
    told = " ".join(sessions.collected(plan))
    assert "12 parties take part, with at most 1,000 records" in told
    assert f"sends {plan.masking.upload_bytes:,} bytes" in told
    assert "4 numbers and one of the classes ash, beech, elm" in told
    assert "public maps are applied to it: unit-norm" in told
    assert "noisy count is below 5" in told
    assert [row[0::2] for row in flat(sessions.collected_table(plan))] == [["N", "3"], ["A", "12"], ["B", "10"]]
    schema = ps.RidgeSchema(4, 2, clip_norm=1.0, target_bound=3.0, feature_names=("a", "b", "c", "d"))
    ridge = " ".join(sessions.collected(changed(schema=schema, min_count=0)))
    assert "the columns a, b, c, d, and 2 targets of at most 3" in ridge
    assert "maps" not in ridge
    assert "noisy count" not in ridge
    many = ps.ClassSchema(20, 4, "NA", 1.0, class_names=tuple(f"c{i}" for i in range(20)))
    assert "c18, c19." in " ".join(sessions.collected(changed(schema=many)))
    assert "one of 20 classes" in " ".join(sessions.collected(changed(schema=replace(many, class_names=None))))


@pytest.mark.parametrize(
    ("privacy", "promise", "rests"),
    [
        (PRIVACY, "record added or taken away", "At least 8 honest parties"),
        (replace(PRIVACY, adjacency="replace-one"), "record exchanged for another", "At least 8 honest"),
        (replace(PRIVACY, model="central"), "2.72 times as likely (epsilon 1)", "The server, which sees the exact sum"),
        (replace(PRIVACY, model="local"), "chance of 1 in 100,000 (delta 1e-05)",
            "No other party: each client's own noise"),
        (replace(PRIVACY, unit="client", max_records_per_client=9), "their party added or taken away", "At least 8"),
    ],
)  # fmt: skip
def test_who_is_promised_what_and_on_what_it_rests(changed, privacy, promise, rests):
    people, _, party = flat(explanations.promised(changed(privacy=privacy)))
    assert promise in people[1]
    assert rests in people[2]
    assert "total is opened, of at least 9 parties" in party[1]


def test_whom_masking_trusts_is_counted(plan, changed):
    def rests(subject):
        return flat(explanations.promised(subject))[-1][2]

    assert rests(plan) == "At most 1 of 12 parties work with the server"
    assert rests(changed(cohort=ps.Cohort(12, 9, 1000))) == "No party works with the server"
    assert rests(changed(cohort=ps.Cohort(12, 9, 1000, 2))) == "At most 2 of 12 parties work with the server"
    panel = tuple(character * 64 for character in "ab")
    assert rests(changed(protocol="split", panel=panel)).startswith("Leader and helpers do not all work together and")


@pytest.mark.parametrize(
    ("privacy", "words_of_it"),
    [
        (PRIVACY, "fewer than 8 honest parties"),
        (PRIVACY, "a person with several records"),
        (replace(PRIVACY, model="central"), "Anything towards the server"),
        (ps.NoPrivacy(), "exact totals are released"),
        (PRIVACY, "a chance of at most 1 in 100,000"),
        (PRIVACY, "only a ledger records the total"),
    ],
)
def test_what_is_not_promised_depends_on_the_plan(changed, privacy, words_of_it):
    assert any(words_of_it in sentence for sentence in explanations.not_promised(changed(privacy=privacy)))


def test_a_panel_that_draws_the_noise_is_trusted_for_one_member(changed):
    panel = {"protocol": "split", "panel": tuple(character * 64 for character in "ab")}
    plan = changed(privacy=replace(PRIVACY, model="panel"), **panel)
    assert flat(explanations.promised(plan))[0][2].startswith("One of leader and helpers must add its noise")
    limits = explanations.not_promised(plan)
    assert "Anything if the leader and all helpers work together, or if none of them adds its noise." in limits
    assert not any("towards the server" in sentence for sentence in limits)


@pytest.mark.parametrize("model", MODELS)
def test_of_every_model_that_trusts_somebody_it_is_said_where_that_ends(changed, model):
    trust, panel = MODELS[model], {"protocol": "split", "panel": tuple(character * 64 for character in "ab")}
    plan = changed(privacy=replace(PRIVACY, model=model), **(panel if trust.drawn_by == "member" else {}))
    ends = any(sentence.startswith("Anything ") for sentence in explanations.not_promised(plan))
    assert ends != trust.trusted.startswith("no other party")


def test_what_another_model_limits_is_not_told(changed):
    local = " ".join(explanations.not_promised(changed(privacy=replace(PRIVACY, model="local"))))
    assert "server" not in local
    sparse = changed(graph="sparse", cohort=ps.Cohort(300, 270, 3_000, 30))
    assert "The server follows the protocol, dropouts do not depend on the random graph, and at most" in str(
        explanations.promised(sparse)
    )
    client = replace(PRIVACY, unit="client", max_records_per_client=9)
    assert "several records" not in " ".join(explanations.not_promised(changed(privacy=client)))


def test_somebody_with_more_records_is_found_more_easily(plan, changed):
    rows = flat(explanations.worth(plan, plan.noise))
    found = [float(row[1]) for row in rows]
    assert [row[0] for row in rows] == ["1", "2", "5", "10", "20"]
    assert (found[0], found) == (explanations.hits(plan.noise.guarantee), sorted(found))
    assert found[-1] > 50
    client = changed(privacy=replace(PRIVACY, unit="client", max_records_per_client=9))
    assert len(explanations.worth(client, client.noise).rows) == 1


def test_dropouts_are_the_one_table_of_the_library(plan, changed):
    table = ps.review.dropout_table(plan.noise, clients=12, min_survivors=9, colluders=1)
    rows = flat(explanations.dropouts(plan))
    assert [int(row[0]) for row in rows] == [each.gone for each in table]
    assert [row[2] for row in rows] == ["-" if each.epsilon is None else at_most(each.epsilon) for each in table]
    assert [row[3] for row in rows] == ["released"] * 4 + ["no release"]
    none = flat(explanations.dropouts(changed(privacy=ps.NoPrivacy())))
    assert none == [["0", "12", "none", "released"], ["3", "9", "none", "released"], ["4", "8", "none", "no release"]]
    all_needed = changed(privacy=ps.NoPrivacy(), cohort=ps.Cohort(12, 12, 1000))
    assert [row[0] for row in flat(explanations.dropouts(all_needed))] == ["0", "1"]


def test_drop_outs_are_counted_to_the_longer_list_where_that_decides(changed):
    """On a random graph."""
    random = {"cohort": ps.Cohort(20, 14, 1000), "graph": "sparse"}
    for privacy in (PRIVACY, ps.NoPrivacy()):
        subject = changed(privacy=privacy, **random)
        least = subject.masking.min_listed
        assert 14 < least < 20
        rows = flat(explanations.dropouts(subject))
        assert rows[-2][1::2] == [str(least), "released"]
        assert rows[-1][1::2] == [str(least - 1), "no release"]


def test_every_term_of_the_budget_is_explained_where_it_stands(plan, changed):
    private, bare = explanations.budget_table(plan), explanations.budget_table(changed(privacy=ps.NoPrivacy()))
    for table in (private, bare):
        assert all(notes and notes[0] for notes in terms(table).values())
        assert all(row[0].notes for row in table.rows)
        assert all(len(row) == len(table.header) for row in table.rows)
    assert set(terms(private)) >= {"sensitivity", "sigma", "mu", "epsilon alone", "share", "bits", "headroom"}
    assert flat(private)[-1][:5] == ["all together", "", "", at_most(plan.noise.mu, ".4f"), "1"]
    assert flat(bare)[0][1] == f"{changed(privacy=ps.NoPrivacy()).budget().rows[0].advantage:.3f}"


def test_a_course_is_told_session_by_session() -> None:
    course = rounds(rounds=2, epsilon=3.0)
    table = sessions.course_table(course)
    assert [row[0] for row in table.rows] == [
        "0: first release",
        "1 to 2: round",
        Cell("all 3 together", ("at delta 1e-05",)),
    ]
    assert [row[1:] for row in table.rows][-1] == ("", at_most(course.mu), "3", f"{total_of(course).upload_bytes:,}")
    assert [row[1] for row in table.rows] == ["NAB", "gk", ""]
    assert explanations.headline(course.first, ps.dp.Guarantee(course.mu)) != explanations.headline(course.first)


def test_of_devices_the_page_speaks_of_answers_and_never_of_who_is_in():
    """Who answers is public, so that no sentence may say that nobody can tell whether somebody is in."""
    plan = devices_plan(devices=sample_devices(most_runs=4, stated_epsilon=3.4))
    (person, what, rests), *_ = flat(explanations.promised(plan))
    assert person == "Each person who is invited"
    assert "in 4 runs together gets more than 30 times as likely (epsilon 3.4)" in what
    assert "That they answered is no secret." in what
    assert rests.startswith("One member of the panel that adds its noise, and the page; not the list of the invited")
    rows = [" ".join(row) for row in flat(explanations.promised(plan))]
    told = " ".join([explanations.headline(plan), *explanations.not_promised(plan), *rows])
    assert "whether they are in" not in told
    assert "another script could read every answer" in told
    assert "answers, some of them perhaps an attacker's" in told
    least = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, 4)
    found = explanations.hits(ps.dp.Guarantee(ps.dp.gaussian_mu(least, plan.privacy.delta)))
    assert explanations.headline(plan).startswith(f"At most {found:g} of 100 answers found at 1 false alarm")


def test_what_is_told_of_a_raw_table_is_its_cells_and_whether_their_cut_points_are_found():
    columns = (ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m")))
    for more, said in (((), False), ((ps.Numeric("sodium"),), True)):
        schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells((*columns, *more)),))
        page = " ".join(sessions.collected(made.plan(schema, ps.Cohort(3, 3, 1000), made.promise("central"))))
        assert "Each value counts only by its cell in the column" in page
        assert ("The cut points between the cells of sodium are open" in page) == said
        assert "shortened" not in page
        assert "public maps" not in page
    behind = (ps.Cells(columns), ps.transforms.ConstantFeature(1.0))
    schema = ps.RidgeSchema(clip_norm=2**0.5, target_bound=1.0, transform=behind)
    page = " ".join(sessions.collected(made.plan(schema, ps.Cohort(3, 3, 1000), made.promise("central"))))
    assert "Then fixed public maps are applied: constant-feature." in page
    assert "shortened" in page


@pytest.mark.parametrize("model", MODELS)
def test_every_report_says_what_a_recording_is_worth_once_its_keys_are_broken(changed, model):
    plan = devices_plan() if model == "panel" else changed(privacy=replace(PRIVACY, model=model))
    named = replace(plan, key_agreement="mlkem768-x25519")
    later, classical = (
        ("", "1.0.0", "1.0.0rc2", "1.0.1rc1", "2.0.0"),
        ("1.0.0rc1", "0.2.0", "0.9.9", "1.0.0.dev3", "9" * 99),
    )
    for written_by in later + classical:
        (said,) = _of_recordings(named, written_by)
        assert said.endswith("should X25519 and ML-KEM-768 both be broken: breaking one alone opens no stored message.")
    for written_by in later:
        (said,) = _of_recordings(plan, written_by)
        assert said.endswith("versions until 2026-11-30 under this plan, without key_agreement, used X25519 alone.")
    own = model in ("distributed", "local")
    for written_by in classical:
        (said,) = _of_recordings(plan, written_by)
        assert said.startswith("Permanent secrecy: until 2026-11-30, the version that wrote the release masked plans")
        assert said.endswith("with no noise but what the party itself added." if own else "with no noise at all.")


def _of_recordings(plan, written_by):
    said = explanations.not_promised(plan, written_by=written_by)
    return [each for each in said if each.startswith("Permanent secrecy")]


def test_the_page_of_a_stored_release_says_that_x25519_alone_masked_it(tmp_path):
    """An earlier version made it of a plan without the line; a page said that ML-KEM-768 protects it."""
    archive = Path(__file__).parents[2] / "stored" / "0adfd58d.zip"
    with zipfile.ZipFile(archive) as packed:
        release = ps.Release.load(packed.extract("study/host/release.safetensors", tmp_path))
    assert release.written_by == "1.0.0rc1"
    page = page_of(Statement(release.plan, release=release))
    assert "masked plans without key_agreement under X25519 alone" in page
    assert "breaking one alone opens no stored message" not in page


def test_sessions_that_do_the_same_are_one_row_of_a_course_and_its_files_are_folded() -> None:
    """A page of 18,398 pixels on a phone told every round in a row and showed every column of the plan's file."""
    cells = ps.Cells((ps.Numeric("sodium"), ps.Numeric("crp")))
    schema = ps.ClassSchema(2, cells.width, "NAB", clip_norm=1.0, transform=(cells,))
    plan = made.plan(schema, ps.Cohort(3, 3, 1000), made.promise("central"))
    course = ps.Binned.within(plan, "rounds", expected_records=1000)
    *alike, whole = (row[0] for row in sessions.course_table(course).rows)
    assert alike == ["0: counts", "1 to 3: finer counts", "4: first release", "5 to 8: round"]
    assert isinstance(whole, Cell)
    assert whole.text == "all 9 together"
    page = page_of(Statement(course.first, course=course))
    assert page.count("<details>") == page.count("<pre") > 0


def test_a_chance_is_never_smaller_than_delta_and_every_power_of_ten_is_itself():
    for power in range(1, 16):
        delta = float(f"1e-{power}")
        assert explanations.chance(delta) == f"1 in {10**power:,} (delta {delta:.2g})"
    for delta, many in ((3e-7, "3,333,333"), (0.1, "10"), (2.5e-5, "40,000"), (1.1e-6, "909,090")):
        assert explanations.chance(delta).startswith(f"1 in {many} (")
