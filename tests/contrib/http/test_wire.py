"""The wire by ``docs/wire/device.md`` alone: a client in Java is counted, and a manifest is as its schema says."""

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.contrib.http.wire_steps import steps
from tests.javascript.test_engine import PEOPLE, mailed, ready
from tests.javascript.test_study import ANSWERS, wanted

HERE = Path(__file__).parent
FROZEN = json.loads((HERE / "vectors" / "wire.json").read_text("utf-8"))
needs_java = pytest.mark.skipif(not shutil.which("javac"), reason="no compiler of Java is installed here")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The client, compiled; a call gives what it prints."""
    place = tmp_path_factory.mktemp("java")
    subprocess.run(["javac", "-d", place, HERE / "Client.java"], check=True, timeout=120)

    def say(*words, **properties):
        given = [f"-D{name}={value}" for name, value in properties.items()]
        return subprocess.run(
            ["java", "-cp", place, *given, "Client", *words], capture_output=True, text=True, timeout=60
        )

    return say


@pytest.fixture(scope="module")
def schema():
    """The manifest's schema; jsonschema takes a second and a half to import."""
    from jsonschema import Draft202012Validator

    path = files("privstats.contrib.http") / "manifest.schema.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8")))


def said(answers):
    return [f"{name}={'-' if value is None else value}" for name, value in answers.items()]


def test_the_frozen_steps_are_the_librarys():
    assert json.loads(json.dumps(steps())) == FROZEN


@pytest.mark.ci
@needs_java
@pytest.mark.slow
def test_the_client_in_java_takes_the_frozen_steps(client, tmp_path):
    manifest, given = tmp_path / "manifest.json", {name: value for name, (value,) in FROZEN["answers"].items()}
    manifest.write_text(json.dumps(FROZEN["manifest"]))
    named = [FROZEN[name] for name in ("run", "study", "link")]
    done = client(manifest, *named, *said(given), root=FROZEN["root"])
    assert dict(line.split("=") for line in done.stdout.splitlines()) == FROZEN["steps"], done.stderr
    for place, words in ((0, "another study"), (2, "a letter of the link is wrong")):
        wrong = [each[:-1] + ("0" if place == 0 else "A") if i == place else each for i, each in enumerate(named)]
        assert words in client(manifest, *wrong, *said(given), root=FROZEN["root"]).stderr


@pytest.mark.ci
@needs_java
@pytest.mark.slow
def test_the_release_counts_what_java_sent_to_the_engine(client, schema, tmp_path):
    with mailed(tmp_path / "run") as run:
        ready(run)
        pins = [run.pins[name] for name in ("leader", "run", "study")]
        with urlopen(f"{pins[0]}/v1/runs/{pins[1]}", timeout=10) as answer:
            schema.validate(json.load(answer))
        for index, (age, smokes) in enumerate(ANSWERS):
            answers = said({"How old are you?": age, "Do you smoke?": smokes})
            done = client(*pins, run.link(index), *answers)
            assert done.stdout.strip() == "201", done.stderr
        assert len(ANSWERS) < PEOPLE
        assert run.counts() == wanted(ANSWERS)


WRONG = {
    "version": 2,
    "run": "ab",
    "plan": {},
    "roster": "AB" * 32,
    "panel": ["00" * 32],
    "offers": ["00"] * 2,
    "clients": 1.5,
    "min_survivors": 0,
    "colluders": -1,
    "segments": [[15]],
    "noisy_helpers": None,
    "closes": "2027-03-01",
    "report_bytes": 0,
}


def test_a_manifest_is_as_its_schema_says(schema):
    from jsonschema import ValidationError

    manifest = FROZEN["manifest"]
    schema.validate(manifest)
    assert set(manifest) == set(schema.schema["required"]) == set(WRONG)
    for name, value in WRONG.items():
        without = {key: kept for key, kept in manifest.items() if key != name}
        for changed in ({**manifest, name: value}, without):
            with pytest.raises(ValidationError):
                schema.validate(changed)
    with pytest.raises(ValidationError):
        schema.validate({**manifest, "more": 1})
