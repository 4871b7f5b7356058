"""Node's client against the library's machines: what it sends is counted, exactly where it says."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import privstats as ps
from privstats.contrib.http.page import BUNDLE
from tests.javascript.node import CLIENT, evaluated, needs_node
from tests.javascript.study import NUMBERS, PEOPLE, Study
from tests.without import needing

_SCRIPT = """
import { readFileSync } from "node:fs";
const { pins, links, answers } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const { inMemory, open } = await import("./privstats.bundle.js");
for (const [place, answer] of answers.entries()) {
  const run = await open(links[place], pins, { store: inMemory() });
  const report = await run.seal(run.measure(answer));
  console.log(await run.send(report, { patience: 50000 }));
}
"""
ANSWERS = [(19, "yes"), (20, "no"), (59.5, "no"), (None, "yes"), (120, None)]


def wanted(answers: list[tuple[float | None, str | None]]) -> list[int]:
    """Return the cells that these answers to ``SCHEMA`` are counted in."""
    ages = {19: 0, 20: 1, 37: 1, 59.5: 2, None: 4, 120: 3}
    smoking = {"yes": 0, "no": 1, None: 2}
    counted = Counter(3 * ages[age] + smoking[smokes] for age, smokes in answers)
    return [counted[cell] for cell in range(15)]


def sent_from_node(
    pins: dict[str, str],
    links: list[str],
    answers: list[tuple],
    place: Path,
    names: Sequence[str] = ("How old are you?", "Do you smoke?"),
) -> None:
    """Send one answer for each of the first links, from one process of node."""
    said = [{name: [value] for name, value in zip(names, each, strict=True)} for each in answers]
    told = {"pins": pins, "links": links, "answers": said}
    assert evaluated(_SCRIPT, told, place).split() == ["sent"] * len(answers)


def pins_and_links(study: Study) -> tuple[dict[str, str], list[str]]:
    pins = {"leader": study.address, "run": study.run, "study": study.pin}
    return pins, [study.link(index) for index in range(PEOPLE)]


@needs_node
def test_five_answers_from_node_are_counted_to_the_last_one(tmp_path):
    with Study() as study:
        sent_from_node(*pins_and_links(study), ANSWERS, tmp_path)
        assert study.counts() == wanted(ANSWERS)


@needs_node
def test_numbers_from_node_are_summed_as_python_sums_them(tmp_path):
    names = [each.name for each in NUMBERS.read]
    answers = [("yes", 80, 3), ("no", 39.95, -1), (None, None, 1.0001), ("no", 0.1 + 0.2, 0.7), ("yes", 12, 2.5)]
    with Study(schema=NUMBERS) as study:
        sent_from_node(*pins_and_links(study), answers, tmp_path, names=names)
        total = study.total()
    columns = {name: np.array(column, object) for name, column in zip(names, zip(*answers, strict=True), strict=True)}
    assert total == ps.encoding.flatten(ps.measure(NUMBERS, columns)).tolist()


@needing("privstats.contrib.http")
def test_what_a_page_is_made_of_is_in_the_wheel():
    told = (CLIENT.parents[1] / "pyproject.toml").read_text("utf-8")
    for name in (BUNDLE, "page.html", "page.css", "words.json"):
        assert f'"clients/javascript/{name}" = "privstats/contrib/http/{name}"' in told
        assert (CLIENT / name).is_file()
