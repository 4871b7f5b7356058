"""``privstats course``: from one plan to a course, and every node's plan from what was released before."""

import inspect
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.cli import course as course_command
from privstats.contrib.alignment import Alignment
from privstats.contrib.synthetic.course import Synthetic
from privstats.course import read, write
from privstats.course.kinds import COURSE_KINDS
from privstats.schema.public_values import Published
from privstats.workflows.report import Statement, ethics_page, page_of
from privstats.workflows.report.explanations import headline
from tests.contrib.alignment.cohort import first
from tests.course.cases import OF_CELLS, plan_of, shards, tables
from tests.course.test_kinds import SCORES, WHOLES
from tests.made import promise, unnamed
from tests.without import needing

STREAMED = needing("privstats.courses:stream")


@pytest.fixture
def run(privstats: Any, tmp_path: Path) -> Any:
    (tmp_path / "whole.toml").write_text(plan_of(epsilon=4.0).to_toml())

    def run(*words: str, code: int = 0) -> Any:
        return privstats("course", *words, cwd=tmp_path, code=code)

    run("init", "study.toml", "--plan", "whole.toml", "--rounds", "2")
    return run


def test_init_divides_a_promise_and_check_says_what_each_node_costs(run: Any, tmp_path: Path) -> None:
    shown = json.loads(run("show", "study.toml").stdout)
    course = read(tmp_path / "study.toml")
    assert (shown["digest"], shown["epsilon"]) == (course.digest, pytest.approx(4.0, rel=1e-6))
    assert [row["statistics"] for row in shown["nodes"]] == ["NAB", "gk", "gk"]
    said = run("check", "study.toml").stdout
    assert "epsilon 4 at delta 1e-05" in said.replace("\n", " ")
    assert "promise for all sessions: epsilon 4 at delta 1e-05, which its sessions keep" in said
    assert shown["promise"] == {"epsilon": 4.0, "delta": 1e-5}
    assert f"{course.most} sessions at most" in said
    assert course.digest in said
    assert "exists" in run("init", "study.toml", "--plan", "whole.toml", code=2).stderr
    run("init", "study.toml", "--plan", "whole.toml", "--force", "--retries", "1", "--expected-records", "500")
    assert read(tmp_path / "study.toml").most == 8  # epsilon 4 is worth six rounds
    run("init", "study.toml", "--plan", "whole.toml", "--force", "--module", "adapter/4")
    assert read(tmp_path / "study.toml") == ps.Rounds.within(plan_of(epsilon=4.0), module="adapter/4")
    said = run("init", "other.toml", "--plan", "whole.toml", "--module", "cnn/4", code=2).stderr
    assert "module = 'cnn/4' needs the module 'cnn', which no installed package announces" in said.replace("\n", " ")


def test_a_plan_given_for_a_course_is_called_one(run: Any) -> None:
    said = run("check", "whole.toml", code=2).stderr.replace("\n", " ")
    assert "this is a plan and no course: read it with `privstats plan check`" in said


def test_check_contradicts_a_promise_that_the_nodes_do_not_keep(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(file.read_text().replace("epsilon = 4.0", "epsilon = 3.9"))
    assert "its sessions cost more: write the course anew" in run("check", "study.toml", code=1).stdout


@pytest.mark.parametrize("epsilon", ["6.0", "4.001"])
@pytest.mark.parametrize("words", [("course", "check"), ("course", "show"), ("report", "--out", "page")])
def test_a_promise_above_what_the_sessions_spend_is_refused_everywhere(
    run: Any, privstats: Any, tmp_path: Path, epsilon: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(file.read_text().replace("epsilon = 4.0", f"epsilon = {epsilon}"))
    refused = " ".join(privstats(*words, "study.toml", cwd=tmp_path, code=2).stderr.split())
    assert f"[promise] states epsilon {float(epsilon):.6g} at delta 1e-05, and its sessions spend epsilon 4" in refused


def test_check_says_the_same_to_scripts(run: Any, tmp_path: Path) -> None:
    checked = json.loads(run("check", "study.toml", "--json").stdout)
    assert checked.pop("facts")
    assert checked == {"violated": False, "sessions": 3, "forecast": [], **json.loads(run("show", "study.toml").stdout)}
    file = tmp_path / "study.toml"
    file.write_text(file.read_text().replace("epsilon = 4.0", "epsilon = 3.9"))
    assert json.loads(run("check", "study.toml", "--json", code=1).stdout)["violated"] is True


def test_check_warns_of_releases_that_nothing_is_read_from(run: Any, tmp_path: Path) -> None:
    """Each plan of such a course was warned of by ``plan check``, and the course by nothing."""
    warning = "WARNING: no table or head reads its last release: intervals are for independent rows"
    for terms, warned in (
        ({"max_records_per_person": 4, "person_clip": 2.0}, True),
        ({"person_clip": "average"}, False),
    ):
        privacy = promise(epsilon=3.0, unit="person", **terms)
        write(tmp_path / "clipped.toml", ps.Newton.start(SCORES, ps.Cohort(2, 2, 600), privacy, 3))
        assert (warning in " ".join(run("check", "clipped.toml").stdout.split())) == warned
        assert bool(json.loads(run("show", "clipped.toml").stdout)["unreadable"]) == warned


def test_a_course_is_run_node_by_node_from_files(run: Any, tmp_path: Path) -> None:
    """What a server and a party do between sessions, with files alone."""
    names: list[str] = []
    for place in range(3):
        run("next", "study.toml", *names, "--out", f"{place}.toml")
        assert "is the plan of round" in run("admit", "study.toml", f"{place}.toml", *names).stdout
        plan = ps.Plan.read(tmp_path / f"{place}.toml")
        ps.simulate(plan, shards(), rng=ps.randomness.seeded(place)).save(tmp_path / f"{place}.release")
        names.append(f"{place}.release")
    assert "has ended" in run("next", "study.toml", *names).stdout
    assert not (tmp_path / "next.toml").exists()
    releases = [ps.Release.load(tmp_path / name) for name in names]
    assert ps.heads.RefinedSoftmax().fit_releases(releases).rounds_ == 2
    assert "exists" in run("next", "study.toml", names[0], "--out", "1.toml", code=2).stderr
    for out in ("", ".", "2.values"):
        assert "--out must name a file for the plan" in run("next", "study.toml", names[0], "--out", out, code=2).stderr
    run("next", "study.toml", names[0], "none", "--out", "1.toml", "--force")  # after a node without a sum


def test_attack_a_plan_file_that_names_another_session_is_not_admitted(run: Any, tmp_path: Path) -> None:
    """No digest covers the name, so a party compares it with that of its own course."""
    first, course = ps.Plan.read(tmp_path / "study.first.toml"), read(tmp_path / "study.toml")
    assert first.position == course.position([])
    (tmp_path / "moved.toml").write_text(first.at(course.position([True])).to_toml())
    assert "not the one that follows" in run("admit", "study.toml", "moved.toml", code=1).stdout
    ps.simulate(ps.Plan.read(tmp_path / "moved.toml"), shards()).save(tmp_path / "moved.release")
    assert "it names session 'round' at place 1" in " ".join(
        run("next", "study.toml", "moved.release", code=2).stderr.split()
    )
    (tmp_path / "nameless.toml").write_text(first.at(None).to_toml())
    run("admit", "study.toml", "nameless.toml")  # the party's own course names its session


@pytest.mark.parametrize("more", [[], ["--calibrated"]])
def test_a_mean_first_is_written_and_run_from_files(more: list[str], run: Any, privstats: Any, tmp_path: Path) -> None:
    said = run("init", "study.toml", "--plan", "whole.toml", "--centred", "--rounds", "2", "--force", code=2).stderr
    assert "a mean first: such a course accepts --centred, --expected-records, --calibrated besides" in said
    run("init", "mean.toml", "--plan", "whole.toml", "--centred", "--expected-records", "600", *more)
    assert "exists" in run("init", "mean.toml", "--plan", "whole.toml", "--centred", code=2).stderr
    course = read(tmp_path / "mean.toml")
    assert course == ps.Centred.within(plan_of(epsilon=4.0), expected_records=600, calibrated=bool(more))
    assert [row["statistics"] for row in json.loads(run("show", "mean.toml").stdout)["nodes"]] == [
        "x",
        "NAB",
        *["t"] * len(more),
    ]
    names: list[str] = []
    for place in range(2 + len(more)):
        run("next", "mean.toml", *names, "--out", f"{place}.toml")
        assert "is the plan of round" in run("admit", "mean.toml", f"{place}.toml", *names).stdout
        ps.simulate(ps.Plan.read(tmp_path / f"{place}.toml"), shards()).save(tmp_path / f"{place}.release")
        names.append(f"{place}.release")
    ps.heads.LDA().fit_release([ps.Release.load(tmp_path / name) for name in names]).save(tmp_path / "head")
    every = [word for name in names for word in ("--release", name)]
    checked = privstats("head", "verify", "head", "--plan", "0.toml", *every, cwd=tmp_path, code=0)
    assert "fitted again, it scores the same" in checked.stdout
    assert privstats("head", "verify", "head", "--release", names[1], cwd=tmp_path).returncode == 1


WORDS: dict[str, list[str]] = {
    "rounds": ["--rounds", "2", "--retries", "1", "--expected-records", "500"],
    "centred": ["--centred", "--calibrated"],
    "standardised": ["--standardised", "--share", ".1"],
    "stream": ["--epochs", "4", "--mechanism", "tree", "--deletions", "--repeats", "1"],
    "newton": ["--rounds", "3", "--retries", "1"],
    "hazard": ["--by", "arm", "--rounds", "3", "--retries", "1", "--early-bins", "2"],
    "effect": ["--share", ".2", "--retries", "1"],
    "alignment": ["--step", "published"],
    "parties": [],
    "binned": [
        "--then",
        "rounds",
        "--rounds",
        "2",
        "--expected-records",
        "500",
        "--sessions",
        "2",
        "--share",
        ".2",
        "--no-pairs",
        "--finer-ends",
    ],
    "synthetic": ["--synthetic", "--share", ".25", "--screen", ".1", "--levels", "8"],
}


def wanted(kind: str) -> Any:
    whole = WHOLES[kind]
    return {
        "rounds": lambda: ps.Rounds.within(whole, 2, retries=1, expected_records=500),
        "centred": lambda: ps.Centred.within(whole, calibrated=True),
        "standardised": lambda: ps.Standardised.within(whole, 0.1),
        "stream": lambda: ps.Stream(whole, 4, "tree", deletions=True, repeats=1),
        "newton": lambda: ps.Newton.within(whole, 3, retries=1),
        "hazard": lambda: ps.Hazard.within(whole, "arm", 3, 1, 2),
        "effect": lambda: ps.Effect.within(whole, share=0.2, retries=1),
        "alignment": lambda: Alignment.within(whole, step="published"),
        "parties": lambda: ps.PartyRounds.within(whole),
        "binned": lambda: ps.Binned.within(
            whole, "rounds", rounds=2, expected_records=500, sessions=2, share=0.2, pairs=False, finer_ends=True
        ),
        "synthetic": lambda: Synthetic.within(whole, share=0.25, screen=0.1, levels=8),
    }[kind]()


@pytest.mark.parametrize("kind", [name for name, row in COURSE_KINDS.items() if row.promise is not None])
def test_every_kind_that_has_a_file_is_written(kind: str, run: Any, tmp_path: Path) -> None:
    """Five refusals name this command as the remedy; it wrote three of six kinds."""
    (tmp_path / "other.toml").write_text(WHOLES[kind].to_toml())
    run("init", "one.toml", "--plan", "other.toml", *WORDS[kind])
    assert read(tmp_path / "one.toml") == wanted(kind)
    assert f'kind = "{kind}"' in (tmp_path / "one.toml").read_text()
    checked = json.loads(run("check", "one.toml", "--json").stdout)
    assert checked["violated"] is False
    assert checked["promise"]["epsilon"] == WHOLES[kind].privacy.epsilon


def test_the_command_takes_every_option_of_every_kind_that_has_a_file() -> None:
    written = [row for row in COURSE_KINDS.values() if row.promise is not None]
    taken = {option for row in written for option in (*row.options, *[row.asked] * bool(row.asked))}
    mine = {option.name for option in inspect.signature(course_command.init).parameters.values()}
    assert mine == taken | {"path", "plan", "force"}


def test_every_kind_that_has_a_file_can_be_asked_for_and_no_two_by_one_word() -> None:
    written = [row for row in COURSE_KINDS.values() if row.promise is not None]
    words = [word for row in written for word in (row.asked, row.task) if word]
    assert len(words) == len(set(words))
    assert [row.name for row in written if not row.asked and not row.task] == ["rounds", "binned"]
    assert [row.name for row in written if row.means(OF_CELLS)] == ["binned"]  # rounds are what any other plan means


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("parties", ["--rounds", "2"], "such a course has no options besides --plan; omit --rounds"),
        ("newton", ["--module", "mlp/4"], "accepts --rounds, --retries besides --plan; omit --module"),
        ("alignment", ["--centred"], "accepts --step besides --plan; omit --centred"),
        pytest.param("rounds", ["--mechanism", "tree"], "omit --mechanism", marks=STREAMED),
        ("binned", ["--then", "rounds"], "such a course needs --expected-records, which only its owners can state"),
        ("binned", ["--rounds", "2", "--expected-records", "9"],
            "a plan has no rounds: leave it out, or name the course"),
        ("binned", ["--then", "stream", "--expected-records", "9"],
            "then must be 'centred', 'rounds', 'newton' or None"),
        ("stream", ["--epochs", "4", "--rounds", "2"], "a stream: such a course accepts --epochs, --mechanism,"),
        ("rounds", ["--rounds", "0"], "rounds must be an integer from 1 to 64, got 0"),
        pytest.param("rounds", ["--epochs", "0"], "epochs must be an integer from 1 to 1024, got 0", marks=STREAMED),
        pytest.param("parties", ["--epochs", "2"], "class and ridge schemas stream", marks=STREAMED),
    ],
)  # fmt: skip
def test_options_of_another_kind_are_refused(kind: str, words: list[str], said: str, run: Any, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(WHOLES[kind].to_toml())
    assert said in run("init", "one.toml", "--plan", "other.toml", *words, code=2).stderr.replace("\n", " ")
    assert not (tmp_path / "one.toml").exists()


def test_a_plan_of_scores_need_not_publish_the_weights_that_follow_from_it(run: Any, tmp_path: Path) -> None:
    """Nobody writes a digest by hand, and ``plan init`` has no such plan."""
    text = WHOLES["newton"].to_toml()
    (tmp_path / "scores.toml").write_text(text[: text.index("[published]")])
    run("init", "one.toml", "--plan", "scores.toml", *WORDS["newton"])
    assert read(tmp_path / "one.toml") == wanted("newton")
    (tmp_path / "broken.toml").write_text(text[: text.index("[published]")].replace("clip_norm", "clip_nrom"))
    assert "clip_nrom" in run("init", "two.toml", "--plan", "broken.toml", code=2).stderr


def test_a_plan_with_other_weights_is_no_plan_of_the_course(run: Any, tmp_path: Path) -> None:
    """The server sends another W than the one that follows: exit code 1, and the sentence says what to do."""
    run("next", "study.toml", "--out", "0.toml")
    ps.simulate(ps.Plan.read(tmp_path / "0.toml"), shards(), rng=ps.randomness.seeded(0)).save(tmp_path / "0.release")
    run("next", "study.toml", "0.release", "--out", "1.toml")
    published = Published.load(tmp_path / "1.values")
    values = dict(published.read())
    values["W"] = type(values["W"])(-values["W"].integers, values["W"].exponent)
    lie = Published.of(values, bytes.fromhex(published.after))
    lie.save(tmp_path / "2.values")
    (tmp_path / "2.toml").write_text((tmp_path / "1.toml").read_text().replace(published.sha256, lie.sha256))
    assert "not the one that follows" in run("admit", "study.toml", "2.toml", "0.release", code=1).stdout
    told = json.loads(run("admit", "study.toml", "2.toml", "0.release", "--json", code=1).stdout)
    assert told["violated"] is True
    assert told["node"] == 1
    assert json.loads(run("admit", "study.toml", "1.toml", "0.release", "--json").stdout)["violated"] is False
    (tmp_path / "1.values").write_bytes((tmp_path / "2.values").read_bytes())  # another file beside an honest plan
    assert "these values do not match" in run("admit", "study.toml", "1.toml", "0.release", code=2).stderr


def test_a_course_without_dp_says_so(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "align.toml", Alignment(first()))
    assert "no differential privacy" in run("check", "align.toml").stdout
    assert json.loads(run("show", "align.toml").stdout)["epsilon"] is None


def test_a_report_of_a_course_promises_the_whole(run: Any, privstats: Any, tmp_path: Path) -> None:
    privstats("report", "study.toml", "--out", "page", cwd=tmp_path, code=0)
    page = (tmp_path / "page" / "report.html").read_text()
    course = read(tmp_path / "study.toml")
    assert "The course that begins with this plan" in page
    assert course.digest[:16] in page
    assert headline(course.first, ps.dp.Guarantee(course.mu)) in page
    privstats("report", "study.first.toml", "--out", "first", cwd=tmp_path)
    assert "The course that begins" not in (tmp_path / "first" / "report.html").read_text()


def test_a_release_is_verified_against_the_file_of_its_course(privstats: Any, tmp_path: Path) -> None:
    """Of cut points the plan that releases are made under stands in no file of the study, and plan.toml said NO."""
    course = ps.Binned.within(plan_of(OF_CELLS), expected_records=600, sessions=2)
    write(tmp_path / "study.toml", course)
    for place, release in enumerate(ps.simulate(course, tables())):
        release.save(tmp_path / f"{place}.release")

    def verdict(*words: str, code: int = 0) -> str:
        done = privstats("release", "verify", *words, cwd=tmp_path, code=code)
        return " ".join((done.stdout + done.stderr).split())

    assert "plan good: of session 0 of the course" in verdict("0.release", "--plan", "study.toml")
    later = ("2.release", "--plan", "study.toml")
    assert "published values follow from sessions 0 to 1 is not checked: pass their releases" in verdict(*later)
    assert "good: of session 2 of the course" in verdict(*later, "--after", "0.release", "--after", "1.release")
    swapped = verdict(*later, "--after", "1.release", "--after", "0.release", code=1)
    assert "NO: 1.release is not of session 0" in swapped
    assert "verified against the course's file" in verdict("0.release", "--plan", "study.then.toml", code=1)
    alone = verdict("0.release", "--plan", "study.then.toml", "--after", "1.release", code=2)
    assert "--after names a course's earlier sessions" in alone
    assert "NO: " in verdict("0.release", "--plan", "study.toml", *["--after", "none"] * 3, code=1)
    first = ps.Release.load(tmp_path / "0.release")
    sibling = replace(course, sessions=3, promise=None)
    other = replace(course.position([]), course=sibling.digest)
    for position in (None, other):
        unnamed(first).at(position).save(tmp_path / "other.release")
        named = verdict("other.release", "--plan", "study.toml", code=1)
        assert f"NO: the release names {position or 'no course'}, and not session 'counts' at place 0" in named
    unnamed(first).at(replace(course.position([True]), place=2)).save(tmp_path / "other.release")
    assert "NO: no session 2 of the course has the plan" in verdict("other.release", "--plan", "study.toml", code=1)
    ps.heads.LDA().fit_release([ps.Release.load(tmp_path / f"{place}.release") for place in range(3)]).save(
        tmp_path / "cells.head"
    )
    head = privstats("head", "verify", "cells.head", "--plan", "study.toml", cwd=tmp_path)
    assert f"(for all 3 sessions together, epsilon 4 at delta 1e-05, while {course.first.condition})" in head.stdout
    write(tmp_path / "sibling.toml", replace(sibling, sessions=2, expected_records=601))
    head = privstats("head", "verify", "cells.head", "--plan", "sibling.toml", cwd=tmp_path, code=1)
    assert f"NO: it comes from the course {course.digest}, and not from" in " ".join(head.stdout.split())


def test_check_states_warnings_trust_and_conditions_of_the_whole_course(privstats: Any, tmp_path: Path) -> None:
    (tmp_path / "whole.toml").write_text(plan_of(epsilon=90.0, delta=0.05).to_toml())
    privstats("course", "init", "study.toml", "--plan", "whole.toml", "--rounds", "2", cwd=tmp_path)
    shown = " ".join(privstats("course", "check", "study.toml", cwd=tmp_path).stdout.split())
    checked = json.loads(privstats("course", "check", "study.toml", "--json", cwd=tmp_path).stdout)
    assert "WARNING: delta 0.05 lets" in shown
    assert "WARNING: epsilon 90 promises almost nothing" in shown
    assert re.search(r"study.toml is consistent, with \d warnings: see above", shown)
    assert "trust in the central model" in shown
    assert "the noise source is the library's own" in shown
    assert [fact for fact in checked["facts"] if fact.startswith("WARNING: epsilon 90")]
    assert len(checked["conditions"]) == len(set(checked["conditions"])) > 0


def _two_hospitals(colluders: int) -> ps.Plan:
    privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    cohort = ps.Cohort(2 + colluders, 2 + colluders, 4_000, colluders=colluders)
    schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy)


def test_what_another_party_learns_is_stated_with_the_promise_on_every_page(privstats: Any, tmp_path: Path) -> None:
    plan = _two_hospitals(0)
    (tmp_path / "whole.toml").write_text(plan.to_toml())
    privstats("course", "init", "study.toml", "--plan", "whole.toml", "--rounds", "2", cwd=tmp_path)
    course = read(tmp_path / "study.toml")
    epsilon = f"{ps.dp.gaussian_epsilon(course.mu * math.sqrt(2), 1e-6):.4g}"
    shown = " ".join(privstats("course", "check", "study.toml", cwd=tmp_path).stdout.split())
    assert f"toward another party, which can subtract its own noise, epsilon {epsilon}" in shown
    assert f"faces epsilon {epsilon}; set cohort.colluders to at least 1" in shown
    assert json.loads(privstats("course", "show", "study.toml", cwd=tmp_path).stdout)[
        "epsilon_toward_party"
    ] == pytest.approx(float(epsilon), rel=1e-3)
    for subject in (Statement(plan), Statement(course.first, course=course)):
        for page in (page_of(subject), ethics_page(subject)):
            assert "whatever else an attacker outside the parties knows" in page
            assert f"toward it epsilon is {epsilon}" in page
    covered = Statement(_two_hospitals(1))
    assert not any("can subtract its own noise" in page for page in (page_of(covered), ethics_page(covered)))
