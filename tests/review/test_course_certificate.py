"""The certificate of a course: each session's certificate and their composition, checked without this library."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

import privstats as ps
from privstats.course import write
from privstats.course.document import read
from privstats.errors import PlanError
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check_course
from privstats.review.course_certificate import course_certificate_text
from tests.course.test_kinds import SAMPLES
from tests.review.certified import CHECKER

CERTIFIED = sorted(SAMPLES.keys() - {"single", "alignment", "stream"})
"""An alignment's sample has no promise, and rounds of a stream hold different records."""


def certified(kind: str, folder: Any) -> tuple[str, dict[str, Any]]:
    course: Any = SAMPLES[kind]
    write(folder / "study.toml", course)
    text = (folder / "study.toml").read_text()
    return text, json.loads(course_certificate_text(text, course.digest, course.priced))


@pytest.mark.parametrize("kind", CERTIFIED)
def test_every_kind_of_course_is_certified_with_all_its_sessions(kind, tmp_path):
    text, document = certified(kind, tmp_path)
    said = check_course(text, json.dumps(document))
    assert f"holds: {SAMPLES[kind].most} sessions together" in said
    assert SAMPLES[kind].digest in said


def test_the_checker_alone_checks_a_course(tmp_path):
    text, document = certified("effect", tmp_path)
    (tmp_path / "certificate.json").write_text(json.dumps(document))
    shutil.copy(CHECKER, tmp_path / "checker.py")
    words = [sys.executable, "-S", "-I", "checker.py", "study.toml", "certificate.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "sessions together" in done.stdout) == (0, True), done.stdout + done.stderr


def _larger(document, text):
    document["sessions"].append(document["sessions"][-1])  # one more session than the promise pays for
    return text


def _less_epsilon(document, text):
    document["epsilon"] = "2"
    return text.replace("epsilon = 3.0", "epsilon = 2.0")


def _wrong_sum(document, text):
    document["mu_squared"] = dict.fromkeys(("low", "high"), "1/10")
    return text


def _other_unit(document, text):
    plan = ps.Plan.from_toml(document["sessions"][0]["plan"])
    other = ps.Privacy(model="central", unit="record", adjacency="replace-one", epsilon=0.1, delta=1e-5)
    changed = replace(plan, privacy=other)
    document["sessions"][0] = {"plan": changed.to_toml(), "certificate": certificate_text(changed)}
    return text


def _no_sessions(document, text):
    document["sessions"] = []
    return text


def _forged_session(document, text):
    one = json.loads(document["sessions"][0]["certificate"])
    one["joint"]["mu_squared"] = dict.fromkeys(("low", "high"), "1/1000")
    document["sessions"][0]["certificate"] = json.dumps(one)
    return text


def _promise_in_words(document, text):
    return text.replace("epsilon = 3.0", 'epsilon = "3"')


def _long_plan(document, text):
    document["sessions"][0]["plan"] += "#" * (1 << 20)
    return text


def _no_promise(document, text):
    return text[: text.index("[promise]")]


@pytest.mark.parametrize(
    ("forged", "claim"),
    [
        (_larger, "promise"),
        (_less_epsilon, "promise"),
        (_wrong_sum, "mu"),
        (_other_unit, "unit"),
        (_no_sessions, "form"),
        (_forged_session, "mu"),
        (_no_promise, "form"),
        (_promise_in_words, "form"),
        (_long_plan, "form"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_a_forged_course_is_refused_by_the_claim(forged, claim, tmp_path):
    text, document = certified("newton", tmp_path)
    text = forged(document, text)
    with pytest.raises(Refused, match=f"^{claim}: "):
        check_course(text, json.dumps(document))


def test_sessions_that_cost_more_than_the_file_says_get_no_certificate(tmp_path):
    write(tmp_path / "study.toml", SAMPLES["newton"])
    text = (tmp_path / "study.toml").read_text().replace("epsilon = 3.0", "epsilon = 2.9")
    with pytest.raises(PlanError, match="do not keep epsilon and delta"):
        course_certificate_text(text, SAMPLES["newton"].digest, SAMPLES["newton"].priced)


def test_the_command_writes_it_and_refuses_a_stream(privstats, tmp_path):
    for kind in ("effect", "stream"):
        write(tmp_path / f"{kind}.toml", SAMPLES[kind])
    privstats("plan", "certify", "effect.toml", "--checker", "checker.py", cwd=tmp_path, code=0)
    assert read(tmp_path / "effect.toml").digest in (tmp_path / "effect.certificate.json").read_text()
    done = privstats("plan", "certify", "stream.toml", cwd=tmp_path, code=2)
    assert "privstats audit course" in " ".join(done.stderr.split())
