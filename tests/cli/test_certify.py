"""``privstats plan certify``: the certificate, and its checker as a file that runs without this library."""

import subprocess
import sys

import pytest

import privstats as ps
from tests.cli.test_report import PLAN


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    return tmp_path


def test_a_certificate_and_its_checker_are_written(privstats, folder):
    done = privstats("plan", "certify", "plan.toml", "--checker", "checker.py", cwd=folder, code=0)
    assert "python checker.py plan.toml plan.certificate.json" in done.stdout
    words = [sys.executable, "-S", "-I", "checker.py", "plan.toml", "plan.certificate.json"]
    checked = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert (checked.returncode, PLAN.digest in checked.stdout) == (0, True)


def test_what_cannot_be_certified_is_one_sentence_and_no_file(privstats, folder):
    text = PLAN.to_toml()
    (folder / "none.toml").write_text(text[: text.index("[privacy]")] + '[privacy]\nmodel = "none"\n')
    ps.course.write(folder / "course.toml", ps.Stream(PLAN, epochs=4))
    for name, why in (("none", "without differential privacy"), ("course", "is a stream")):
        done = privstats("plan", "certify", f"{name}.toml", cwd=folder)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    assert not list(folder.glob("*.json"))
