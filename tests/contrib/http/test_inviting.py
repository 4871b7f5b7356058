"""What the registrar types: a folder, codes once, the next run; and no code on the screen."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.contrib.http.command import app
from privstats.contrib.http.settings import Settings
from tests.made import refused
from tests.plan.devices import devices_plan, sample_devices

pytestmark = pytest.mark.usefixtures("few_draws")  # `plan check` forecasts
WHERE = [
    "--address", "https://leader.example", "--page", "https://survey.example/answer", "--closes",
    "2027-03-01T12:00:00Z",
]  # fmt: skip


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command in a folder with a plan and the registrar's identity; what it printed."""
    monkeypatch.chdir(tmp_path)
    registrar, leader, helper = (ps.secagg.Identity.generate(os.urandom) for _ in range(3))
    registrar.save("trier.pem")
    devices = sample_devices(registrar_key=registrar.public.hex(), most_runs=2, stated_epsilon=2.5)
    plan = devices_plan(panel=(leader.public.hex(), helper.public.hex()), clients=5, devices=devices)
    Path("plan.toml").write_text(plan.to_toml())

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, words, catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def test_a_registrar_invites_once_and_no_code_is_on_its_screen(typed) -> None:
    assert "privstats http invite survey" in typed("new", "plan.toml", "survey", *WHERE)
    told = typed("invite", "survey", "--identity", "trier.pem")
    assert "destroy the file, and your list of names" in told
    study = json.loads(Path("survey/run-1/page/study.json").read_text())["study"]
    assert told.strip().endswith(study)
    letters = [line.split(".")[-2] for line in Path("survey/links.txt").read_text().splitlines()]
    assert len(letters) == 5
    assert not any(each in told for each in letters)
    settings = Settings.read("survey/run-1/leader")
    assert (settings.origins, (settings.until - settings.closes).days) == (("https://survey.example",), 30)


def test_a_plan_that_no_browser_answers_needs_the_word_that_no_browser_is_asked(typed, privstats) -> None:
    plan = ps.Plan.read("plan.toml")
    clipped = replace(plan.privacy, max_records_per_client=4, client_clip=2.0)
    devices = replace(plan.devices, stated_epsilon=9.0)
    told = "no browser answers a plan with privacy.client_clip = 2.0: omit it, or let only installed software answer"
    for change, words in (
        ({"privacy": clipped}, f"WARNING: {told}"),
        ({"schema": ps.ClassSchema(2, 2, "NA", 1.0)}, "asks count tables alone, and schema.task is 'classes'"),
    ):
        Path("plan.toml").write_text(replace(plan, devices=devices, **change).to_toml())
        assert words in " ".join(privstats("plan", "check", "plan.toml", cwd=Path.cwd(), code=0).stdout.split())
    Path("plan.toml").write_text(plan.to_toml())
    assert "no browser" not in privstats("plan", "check", "plan.toml", cwd=Path.cwd(), code=0).stdout
    Path("plan.toml").write_text(replace(plan, privacy=clipped, devices=devices).to_toml())
    refused(ps.PlanError, told, typed, "new", "plan.toml", "survey", *WHERE)
    assert not Path("survey").exists()
    assert f"WARNING: {told}" in " ".join(typed("new", "plan.toml", "survey", *WHERE, "--installed").split())
    assert ps.Plan.read("survey/plan.toml").privacy == clipped


def test_the_next_run_has_its_own_days_and_the_same_codes(typed) -> None:
    typed("new", "plan.toml", "survey", *WHERE, "--until", "2027-04-01T12:00:00+02:00", "--origin", "*")
    typed("invite", "survey", "--identity", "trier.pem", "--paper")
    typed("renew", "survey", "--identity", "trier.pem", "--closes", "2027-06-01T12:00:00Z")
    assert Settings.read("survey/run-2/leader").closes.month == 6
    assert Settings.read("survey/run-1/leader").origins == ("*",)
    refused(ps.PrivstatsError, "most_runs=2, and 2 were written", typed, "renew", "survey", "--identity", "trier.pem")


REFUSED = {
    "no time": (["new", "plan.toml", "s", *WHERE[:-1], "tomorrow"], "--closes must be a time with an offset"),
    "no offset": (["new", "plan.toml", "s", *WHERE[:-1], "2027-03-01T12:00:00"], "closes must be a time with an"),
    "keys that end early": (["new", "plan.toml", "s", *WHERE, "--until", "2027-03-10T12:00:00Z"],
        "until must be 14 days after closes at least"),
    "the leader's page": (["new", "plan.toml", "s", *WHERE[:3], "https://leader.example/", *WHERE[4:]],
        "page has the leader's address"),
    "the end alone": (["renew", "survey", "--identity", "trier.pem", "--until", "2027-04-01T12:00:00Z"],
        "--until without --closes"),
    "nobody invited": (["renew", "survey", "--identity", "trier.pem"], "no codes were drawn in survey"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_call_is_refused_in_a_sentence(typed, case: str) -> None:
    words, told = REFUSED[case]
    typed("new", "plan.toml", "survey", *WHERE)
    refused(ps.PrivstatsError, told, typed, *words)
