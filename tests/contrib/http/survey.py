"""A survey over HTTP: 200 devices answer in two languages, from the plan that ``plan init --task survey`` writes.

    python -m tests.contrib.http.survey

Every step is the command that docs/devices.md shows: keys, plan, invitations, leader, helper, and the tables of the
release. The devices are the library's own client in one process of Node, over loopback sockets. Half of them read the
questions in English and half in German. The answers are known here, so each interval is printed next to the truth.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from privstats.cli import main
from privstats.engines.door.ports import free_port
from tests.forks import beside
from tests.javascript.node import CLIENT

__all__ = ["Interval", "Survey", "survey"]

PEOPLE = 200
PARTIES = ("leader", "helper", "trier")
INIT = (
    'plan init plan.toml --yes --task survey --questions "age=18:40:60:80,smokes=yes/no,hours=0..80" '
    '--tables "age*smokes" --panel leader.pub,helper.pub --organisations "University of Ulm,Bonn Clinic" '
    '--registrar "Study Office Trier" --registrar-key trier.pub --page "Library of Kiel" --most-runs 1 '
    f"--clients {PEOPLE} --vanish 40 --colluders 10 --epsilon 2 --delta 1e-6"
)
TEXTS = """
[devices.texts.en]
title = "Work and smoking"

[devices.texts.en.questions.age]
question = "How old are you?"

[devices.texts.en.questions.smokes]
question = "Do you smoke?"

[devices.texts.en.questions.hours]
question = "How many hours a week do you work?"

[devices.texts.de]
title = "Arbeit und Rauchen"

[devices.texts.de.questions.age]
question = "Wie alt sind Sie?"

[devices.texts.de.questions.smokes]
question = "Rauchen Sie?"
answers = { yes = "ja", no = "nein" }

[devices.texts.de.questions.hours]
question = "Wie viele Stunden arbeiten Sie in der Woche?"
"""
LABELS = {"en": {"yes": "yes", "no": "no"}, "de": {"yes": "ja", "no": "nein"}}
_SCRIPT = Path(__file__).with_name("survey.mjs")
_WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Interval:
    """A released number with its interval, and the exact number of the answers."""

    name: str
    value: float
    low: float
    high: float
    truth: float

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.3g} ({self.low:.3g} to {self.high:.3g}), truth {self.truth:.3g}"


@dataclass(frozen=True)
class Survey:
    """What people were asked by language, how their sends ended, and what was released."""

    asked: dict[str, Any]
    sent: dict[str, int]
    intervals: tuple[Interval, ...]


def survey(say: Callable[[str], None] = lambda _: None, seed: int = 0) -> Survey:
    """Play the survey with real noise.

    Args:
        say: hears each command and what it prints.
        seed: fixes the answers.

    Raises:
        AssertionError: a command failed, or no release came in two minutes.
    """
    with TemporaryDirectory() as folder:
        place, port = Path(folder), free_port()
        env = {**os.environ, "XDG_STATE_HOME": str(place / "state")}

        def run(words: str, *, shown: bool = True) -> str:
            done = _command(words, place, env)
            if shown:
                say(f"$ privstats {words}\n{done}".rstrip())
            return done

        answers = _answers(seed)
        _invite(place, port, run)
        with _serving(place, port, env):
            outcome = _answered(place, answers)
            _await((place / "leader" / "release.safetensors").exists, "the release")
        for options in ("--reader averages", "--reader proportions --column smokes"):
            run(f"table leader/release.safetensors {options}")
        found = {kind: _rows(run, options) for kind, options in _TABLES.items()}
        return Survey(outcome["asked"], outcome["sent"], tuple(_beside(found, answers)))


_TABLES = {"means": "--reader averages", "shares": "--reader proportions --column smokes"}


def _answers(seed: int) -> list[dict[str, Any]]:
    """What each person answers, by variable: None is "rather not say"."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(PEOPLE):
        hours = round(min(max(rng.normal(35, 9), 0.0), 80.0), 1)
        row = {"age": int(rng.integers(18, 80)), "smokes": "yes" if rng.random() < 0.3 else "no", "hours": hours}
        silent = rng.random(3) < 0.03
        rows.append({name: None if mute else value for (name, value), mute in zip(row.items(), silent, strict=True)})
    return rows


def _invite(place: Path, port: int, run: Callable[..., str]) -> None:
    """Make keys, plan, invitations, and the folders of leader and helper."""
    for party in PARTIES:
        run(f"identity new {party}.pem", shown=False)
    run(INIT)
    with (place / "plan.toml").open("a", encoding="utf-8") as plan:
        plan.write(TEXTS)
    run("plan check plan.toml", shown=False)
    closes = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")
    run(
        f"http new plan.toml survey --address http://127.0.0.1:{port} --page http://127.0.0.1:{port + 1}/ "
        f"--closes {closes}",
        shown=False,
    )
    run("http invite survey --identity trier.pem", shown=False)
    for party, folder in (("leader", "leader"), ("helper", "helper-1")):
        shutil.move(place / "survey" / "run-1" / folder, place / folder)
        shutil.copy(place / f"{party}.pem", place / folder / "identity.pem")
    run("ledger open leader/ledger", shown=False)
    terms = "--unit client --adjacency add-remove --epsilon 3 --delta 1e-6"
    run(f"ledger cap leader/ledger survey {terms}", shown=False)


def _answered(place: Path, answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Let everybody answer, each second person in German, and return what they were asked and how sends ended."""
    links = (place / "survey" / "links.txt").read_text("utf-8").split()
    people = []
    for index, (link, row) in enumerate(zip(links, answers, strict=True)):
        language = ("en", "de")[index % 2]
        said = {**row, "smokes": LABELS[language].get(row["smokes"])}
        people.append({"link": link, "language": language, "answers": said})
    told = {
        "client": (CLIENT / "privstats.js").as_uri(),
        "pins": json.loads((place / "survey" / "run-1" / "page" / "study.json").read_text("utf-8")),
        "words": json.loads((CLIENT / "words.json").read_text("utf-8")),
        "people": people,
    }
    (place / "told.json").write_text(json.dumps(told), "utf-8")
    done = subprocess.run(["node", str(_SCRIPT), str(place / "told.json")], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _rows(run: Callable[..., str], options: str) -> list[dict[str, Any]]:
    text = run(f"table leader/release.safetensors {options} --format json", shown=False)
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def _beside(found: dict[str, list[dict[str, Any]]], answers: list[dict[str, Any]]) -> Iterator[Interval]:
    """Each released number next to that of the answers."""
    hours = np.array([row["hours"] for row in answers if row["hours"] is not None])
    (mean,) = found["means"]
    for name, truth in (("mean", hours.mean()), ("variance", hours.var())):
        ends = (float(mean[key]) for key in (name, f"{name}_low", f"{name}_high"))
        yield Interval(f"{name} of hours", *ends, float(truth))
    for row in found["shares"]:
        given = [each["smokes"] for each in answers]
        cell = row["level"] if row["level"] in ("yes", "no") else None
        ends = (float(row[key]) for key in ("proportion", "conf_low", "conf_high"))
        yield Interval(f"share of smokes = {row['level']}", *ends, given.count(cell) / len(given))


def _command(words: str, place: Path, env: dict[str, str]) -> str:
    code, printed, complaint = _forked(shlex.split(words), place, env)
    assert code == 0, f"privstats {words}: {complaint[-2000:]}"
    return printed


def _forked(words: list[str], place: Path, env: dict[str, str]) -> tuple[int | None, str, str]:
    """Exit code and both outputs of a command in a fork, which has numpy and the rest loaded already."""
    outputs = [place / "printed.txt", place / "complaint.txt"]
    child = beside(_run, words, place, env, outputs)
    child.join(120)
    return (child.exitcode, *(each.read_text("utf-8") for each in outputs))


def _run(words: list[str], place: Path, env: dict[str, str], outputs: list[Path]) -> None:
    os.environ.update(env)
    os.chdir(place)
    sys.argv = ["privstats", *words]
    printed, complaint = (each.open("w") for each in outputs)
    with printed, complaint, redirect_stdout(printed), redirect_stderr(complaint):
        main()


@contextmanager
def _serving(place: Path, port: int, env: dict[str, str]) -> Iterator[None]:
    """Leader and helper in processes of their own, until both are ended."""
    started = []
    try:
        for words in (f"http lead leader --address 127.0.0.1:{port}", "http help helper-1"):
            log = (place / f"{words.split()[1]}.log").open("wb")
            command = [sys.executable, "-m", "privstats", *words.split()]
            started.append(subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=log))
        _await(lambda: _ready(place, env), "the panel")
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def _ready(place: Path, env: dict[str, str]) -> bool:
    """Whether devices can send."""
    return _forked(["http", "status", "leader", "--ready"], place, env)[0] == 0


def _await(there: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not there():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.2)


if __name__ == "__main__":
    result = survey(print)
    for language, asked in result.asked.items():
        print(f"\n{language}: {asked['title']}")
        for question, choices in asked["questions"]:
            print(f"  {question}" + (f" ({', '.join(choices)})" if choices else ""))
        print(f"  {asked['promise']}")
    print(f"\nsent: {result.sent}\n")
    print(*result.intervals, sep="\n")
