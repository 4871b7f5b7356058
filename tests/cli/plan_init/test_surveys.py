"""``plan init`` for surveys of persons' devices."""

import os
import re
import shlex
from pathlib import Path

import pytest

import privstats as ps
from privstats.plan.device_rules import min_stated_epsilon


def survey(**changes):
    """The words that make the plan of docs/devices.md, where the keys of its parties lie."""
    given = {
        "task": "survey", "questions": "age=18:40:60:80,smokes=yes/no", "tables": "age*smokes",
        "panel": "leader.pub,helper.pub", "organisations": "University of Ulm,Bonn Clinic",
        "registrar": "Study Office Trier", "registrar-key": "trier.pub", "page": "Library of Kiel", "most-runs": "1",
        "clients": "2000", "vanish": "1500", "colluders": "50", "epsilon": "1", "delta": "1e-6",
    }  # fmt: skip
    named = {**given, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [word for name, value in named.items() if value is not None for word in (f"--{name}", value)]


@pytest.fixture
def keys(tmp_path):
    """The keys of leader, helper and registrar, two of them as PEM and one in hex."""
    found = {name: ps.secagg.Identity.generate(os.urandom) for name in ("leader", "helper", "trier")}
    for name, identity in found.items():
        text = identity.public.hex() + "\n" if name == "helper" else identity.public_pem
        (tmp_path / f"{name}.pub").write_text(text)
    return {name: identity.public.hex() for name, identity in found.items()}


def test_a_survey_is_the_plan_on_the_page_of_devices(init, keys):
    page = (Path(__file__).parents[3] / "docs" / "devices.md").read_text("utf-8")
    (commands,), (shown,) = (re.findall(f"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("bash", "toml"))
    (typed,) = re.findall(r"plan init plan.toml --yes (.*?)\nprivstats", commands.replace("\\\n", " "), re.DOTALL)
    assert shlex.split(typed) == survey()
    assert init("--yes", *survey()).exit_code == 0
    for name, key in keys.items():
        shown = re.sub(rf'"[0-9a-f]{{64}}"(,?)  # {name}\.pub', rf'"{key}"\1', shown)
    plan = ps.Plan.read("plan.toml")
    assert plan == ps.Plan.from_toml(shown)
    assert plan.panel == (keys["leader"], keys["helper"])
    least = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, 1)
    assert 0 <= plan.devices.stated_epsilon - least < 0.01


def test_a_survey_may_ask_numbers_whose_means_are_released(init, keys):
    init("--yes", *survey(questions="smokes=yes/no,hours*smokes=0..80,temperature=-10.5..40", tables=None), code=0)
    schema = ps.Plan.read("plan.toml").schema
    hours = ps.Number("hours", 0, 80, by=("smokes",), missing=True)
    assert schema.numbers == (hours, ps.Number("temperature", -10.5, 40, missing=True))
    assert schema.tables == (("smokes",), ("smokes", "hours"), ("temperature",))


@pytest.mark.parametrize("questions", ["smokes=yes/no,hours=0..80", "hours=0..80", "hours=0..80,km=0..9"])
def test_a_survey_may_ask_a_number_of_everybody(init, keys, questions):
    """Numbers that fit one line stood under a second ``[schema]``, which no TOML file may have."""
    init("--yes", *survey(questions=questions, tables=None), code=0)
    assert ps.Number("hours", 0, 80, missing=True) in ps.Plan.read("plan.toml").schema.numbers


def test_a_person_is_asked_for_a_survey_and_for_nothing_that_it_settles(init, terminal, keys):
    task, questions, _, *people = survey()[1::2]
    parties = people[6:9]  # asked before the panel; whether tables are crossed is not asked
    done = init(input="\n".join([task, questions, *parties, *people[:6], *people[9:], ""]), code=0)
    plan = ps.Plan.read("plan.toml")
    assert plan.schema.tables == (("age",), ("smokes",))
    assert (plan.privacy.model, plan.privacy.unit, plan.privacy.adjacency) == ("panel", "client", "add-remove")
    for question in ("Who adds the noise?", "Who is protected?", "What must stay secret?", "How many records"):
        assert question not in done.output
    init("again.toml", "--yes", *survey(panel=f"{keys['leader']},{keys['helper']}", tables=None), code=0)
    assert ps.Plan.read("again.toml") == plan


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"panel": "leader.pub"}, "needs a panel: the leader's identity and at least one helper's"),
        ({"panel": "leader.pub,nobody.pub"}, "cannot read nobody.pub"),
        ({"registrar_key": "leader.pub"}, "registrar_key is a panel member's key"),
        ({"registrar": "bonn clinic"}, "devices.registrar is 'Bonn Clinic', a member of the panel"),
        ({"organisations": "Ulm,Bonn,Graz"}, "organisations names 3 and the panel has 2 members"),
        ({"questions": "age"}, "questions must name each column once"),
        ({"questions": "age=18:40"}, "edges of age must be at least three finite numbers"),
        ({"tables": "age*weight"}, "weight"),
        ({"questions": "hours=80..0", "tables": None}, "low and high of hours"),
        ({"questions": "hours*age=0..80", "tables": None}, "by of hours names 'age', which is no variable"),
        ({"model": "central"}, "--model does not go with the other answers"),
        ({"max_records": "9"}, "--max-records does not go with the other answers"),
        ({"epsilon": None}, "missing: --epsilon"),
    ],
)
def test_a_survey_that_cannot_be_gets_a_sentence(init, keys, changes, told):
    done = init("--yes", *survey(**changes))
    assert isinstance(done.exception, ps.PrivstatsError)
    assert told in str(done.exception)
    assert not Path("plan.toml").exists()
