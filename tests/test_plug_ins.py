"""Rows of other packages, installed in a folder as pip would leave them: heads, attacks, rivals, notes and pages."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints, distributions, entry_points
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats import heads, plug_ins
from privstats.cli import main as command_line
from privstats.contrib.sweep.rivals import rivals
from privstats.errors import BrokenPackageWarning, DataError, HeadError, PrivstatsError, ReleaseError
from privstats.heads.registry import HEADS
from privstats.workflows.report import finder
from privstats.workflows.tables import READERS
from tests import made
from tests.brought import announce, install, points
from threat_models.attack import attacks, attacks_named

FITTED = """
import numpy as np
import privstats as ps
rng = np.random.default_rng(0)
y = np.arange(200) % 4
X = np.eye(4)[y] + .1 * rng.standard_normal((200, 4))
release = ps.Release.exact(schema := ps.ClassSchema(4, 4, "NA", clip_norm=9.0), ps.measure(schema, X, y))
head = ps.heads.NearestCentroid(floor=2.0).fit_release(release)
assert head.score(X, y) == 1.0
head.save("nearest.head")
"""
READ = """
import sys
import numpy as np
import privstats as ps
assert "nearest_centroid" not in sys.modules
head = ps.heads.load("nearest.head")
assert head.predict(np.eye(4)).tolist() == [0, 1, 2, 3]
assert (type(head).__module__, head.floor, head.rule_.kind) == ("nearest_centroid.head", 2.0, "nearest-centroid")
"""
LISTED = """
import sys
import privstats.heads
from privstats.heads.registry import HEADS, able
from privstats.cli.parts.options import heads_spelled
assert all("NearestCentroid" in names for names in (HEADS, privstats.heads.__all__, dir(privstats.heads)))
assert HEADS["NearestCentroid"].reads("NAB") == "NA" and "NearestCentroid" in able("NA")
assert heads_spelled(["nearestcentroid"]) == ("NearestCentroid",)
assert not {"nearest_centroid", "sklearn"} & set(sys.modules)
"""
PLAYED = """
import numpy as np
import privstats as ps
from privstats.randomness import seeded
from threat_models.attack import attacks, attacks_named
from threat_models.evaluate import Effort, evaluate
from threat_models.world import Pool
assert [attack.name for attack in attacks()][-1] == "aligned-sum"
PROMISE = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=.5, delta=1e-5)
def row(privacy):
    schema = ps.ClassSchema(2, 16, "NA", clip_norm=1.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 200, 1), privacy=privacy)
    X = np.random.default_rng(0).standard_normal((160, 16)) / 4
    pool = Pool.split(X, np.arange(160) % 2, seeded(0))
    return evaluate(plan, attacks_named(["aligned-sum"]), pool, Effort(trials=60, records=4, seed=1)).rows[0]
bare, promised = row(ps.NoPrivacy()), row(PROMISE)
assert bare.interval[0] > bare.baseline and bare.verdict == "leaks", bare
assert promised.interval[0] <= promised.ceiling and promised.number == 17, promised
"""
SWEPT = """
import json
import sys
import numpy as np
import privstats as ps
from privstats.cli import main
y = np.arange(600) % 3
X = np.eye(3)[y] + .1 * np.random.default_rng(0).standard_normal((600, 3))
np.savez("data.npz", X_train=X[:400], y_train=y[:400], X_test=X[400:], y_test=y[400:])
privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
plan = ps.Plan(schema=ps.ClassSchema(3, 3, "NAB", clip_norm=1.0), cohort=ps.Cohort(2, 2, 600), privacy=privacy)
open("plan.toml", "w").write(plan.to_toml())
words = ["--head", "LDA", "--baseline", "output-perturbation", "--epsilon", "4", "--repeats", "2", "--out", "found"]
sys.argv = ["privstats", "sweep", "plan.toml", "data.npz", *words]
try:
    main()
except SystemExit as ending:
    assert not ending.code
found = json.load(open("found/sweep.json"))
assert found["recipes"] == {"output perturbation, pooled": {"strength": 10.0}}
rows = [row for row in found["draws"] if row["head"] == "output perturbation, pooled"]
assert len(rows) == 4 and min(row["score"] for row in rows) > .9, rows
assert len({row["score"] for row in rows if row["epsilon"]} | {None}) > 1
"""


TABLED = """
import contextlib
import io
import os
import sys
import numpy as np
import privstats as ps
from privstats.cli import main
os.environ["COLUMNS"] = "400"
schema = ps.ClassSchema(2, 3, "NAB", clip_norm=9.0)
plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 90), privacy=ps.NoPrivacy())
open("plan.toml", "w").write(plan.to_toml())
ps.Release.exact(schema, ps.measure(schema, np.eye(3)[np.arange(90) % 3], np.arange(90) % 2)).save("r.release")
def said(*words, code=0):
    sys.argv = ["privstats", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ending:
            assert (ending.code or 0) == code, out.getvalue()
    return " ".join(out.getvalue().split())
printed = said("table", "r.release", "--reader", "totals", "--digits", "2")
assert "all 90.00 90.00 90.00" in printed and "Exact sums: no differential privacy." in printed
assert " all 90 90 90 -" in said("table", "r.release")
assert "--digits is for --reader totals, not table-one; omit it" in said(
    "table", "r.release", "--reader", "table-one", "--digits", "2", code=2
)
assert "--column is for ols, " in said("table", "r.release", "--reader", "totals", "--column", "x", code=2)
assert "totals: digits after the point." in said("table", "--help")
assert "totals reads not B" in said("plan", "check", "plan.toml", "--for", "totals")
assert ps.workflows.tables.read("totals", ps.Release.load("r.release"), digits=1).rows[0]["n"] == 90
os.environ["_PRIVSTATS_COMPLETE"] = "complete_bash"
for typed in ("privstats table --reader tot", "privstats plan check --for tot", "privstats plan suggest --for tot"):
    os.environ.update(COMP_WORDS=typed, COMP_CWORD=str(len(typed.split()) - 1))
    assert said() == "totals", typed
"""


def run(program: str, site: Path) -> None:
    """A program in a fresh interpreter that has these packages."""
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    told = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], cwd=site, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.ci
def test_a_head_of_another_package_is_fitted_saved_and_read_by_its_name(tmp_path: Path) -> None:
    site = install("nearest", tmp_path)
    run(FITTED, site)
    run(READ, site)
    with pytest.raises(HeadError, match="of the class 'NearestCentroid', which nothing here brings: install the"):
        heads.load(site / "nearest.head")


def test_a_list_of_heads_has_those_of_other_packages_and_imports_none(tmp_path: Path) -> None:
    run(LISTED, install("nearest", tmp_path))


@pytest.mark.ci
def test_an_attack_of_another_package_is_listed_and_played(tmp_path: Path) -> None:
    run(PLAYED, install("aligned", tmp_path))


@pytest.mark.ci
def test_a_rival_of_another_package_is_a_row_of_a_sweep(tmp_path: Path) -> None:
    run(SWEPT, install("perturbed", tmp_path))


@pytest.mark.ci
def test_a_reader_of_another_package_is_in_every_command_that_names_readers(tmp_path: Path) -> None:
    run(TABLED, install("totals", tmp_path))


def test_a_row_that_is_no_reader_is_refused_by_the_name_of_its_package(brought: Callable[..., None]) -> None:
    brought("privstats.readers", {"late": "privstats.workflows.tables.rows:_BY_GROUP"})
    with pytest.raises(ReleaseError, match="late0 0.1 announces the table reader 'late' as .*, which is no table"):
        READERS["late"]


def test_no_package_is_read_whose_entry_points_are_for_others() -> None:
    class Unread:
        @property
        def name(self) -> str:
            raise AssertionError("metadata was read")

    script: Any = EntryPoint("other", "other:main", "console_scripts")
    ours = EntryPoint("late", "late:command", "privstats.commands")
    groups = plug_ins.grouped(EntryPoints([script._for(Unread()), ours]))
    assert groups["privstats.commands"] == [ours]


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets distributions announce these entry points, in this process."""

    def announcing(group: str, *each: dict[str, str]) -> None:
        for place, entries in enumerate(each):
            announce(f"late{place}", tmp_path, group, entries)
        added = [entry for found in distributions(path=[str(tmp_path)]) for entry in found.entry_points]
        every = EntryPoints((*entry_points(group=group), *added))
        monkeypatch.setattr(plug_ins, "_groups", lambda: plug_ins.grouped(every))

    return announcing


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "LDA",
            "privstats.heads.lda:LDA",
            "privstats and late0 0.1 both have the head 'LDA'; rename it in",
        ),
        ("Late", "nowhere.far.late:Late", "late0 0.1 announces the head 'Late' as .* no class Late with a row"),
        ("Late", "privstats.heads.lda:LDA", "late0 0.1 announces the head 'Late' as .* no class Late with a row"),
        ("ClassHead", "privstats.heads.estimator:ClassHead", "no class ClassHead with a row, .*; fix or uninstall"),
    ],
    ids=["ours", "nowhere", "another name", "no row"],
)
def test_a_head_that_is_announced_wrongly_is_refused_by_the_name_of_its_package(name, value, words, brought):
    brought("privstats.heads", {name: value})
    found = type(HEADS)()
    with pytest.warns(BrokenPackageWarning, match=words):
        assert {"LDA", "QDA"} <= set(found)
    assert (name in list(found)) == (name == "LDA")
    if name != "LDA":
        with pytest.raises(HeadError, match=words):
            found.class_of(name)


def test_a_head_that_cannot_be_imported_is_refused_when_it_is_used(brought, tmp_path, monkeypatch):
    row = "class Late:\n    entry: ClassVar[Entry] = Entry()\n"
    (tmp_path / "late_head.py").write_text(f"import nowhere_at_all\n\n{row}")
    monkeypatch.syspath_prepend(tmp_path)
    brought("privstats.heads", {"Late": "late_head:Late"})
    found = type(HEADS)()
    assert found["Late"].task == "classes"
    with pytest.raises(HeadError, match="the head 'Late' of late0 0.1 cannot be loaded: ModuleNotFound.*nowhere"):
        found.class_of("Late")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("late", "threat_models.attacks.leverage:Leverage", "late0 0.1 announces the attack 'late' as .* of that name"),
        ("late", "threat_models.attack:Attack", "is no attack of that name: it lacks the method run; repair or"),
        ("late", "threat_models.attack:attacks", "is no attack of that name"),
        ("late", "nowhere:Late", "the attack 'late' of late0 0.1 cannot be loaded: ModuleNotFoundError: .*; mend or"),
    ],
    ids=["another name", "no method", "no class", "nowhere"],
)
def test_an_attack_that_is_announced_wrongly_is_refused_by_the_name_of_its_package(name, value, words, brought):
    brought("privstats.attacks", {name: value})
    with pytest.warns(BrokenPackageWarning, match=words):
        assert len(attacks()) > 9
    with pytest.warns(BrokenPackageWarning), pytest.raises(DataError, match=words):
        attacks_named([name])


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A folder with a plan, in a process that has a package with a note and a page."""
    site = install("ulm", tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    every = EntryPoints(entry for found in distributions() for entry in found.entry_points)
    monkeypatch.setattr(plug_ins, "_groups", lambda: plug_ins.grouped(every))
    plan = made.plan(ps.ClassSchema(2, 3, "NAB", 1.0), ps.Cohort(3, 2, 100), made.promise())
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    return tmp_path


@pytest.mark.ci
def test_a_note_of_another_package_is_a_fact_of_plan_check(privstats, office):
    said = " ".join(privstats("plan", "check", "plan.toml", cwd=office, code=0).stdout.split())
    assert "- WARNING: Ulm asks for 5 parties, and this plan has 3" in said
    assert "plan.toml is consistent, with 2 warnings" in said


@pytest.mark.ci
def test_a_page_of_another_package_is_an_option_of_report(privstats, office):
    done = privstats("report", "plan.toml", "--covering-letter", "--out", "page", cwd=office, code=0)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["covering-letter.html", "parties.txt"]
    assert ps.Plan.read(office / "plan.toml").digest in (office / "page" / "covering-letter.html").read_text()
    assert (office / "page" / "parties.txt").read_text() == "3\n"
    for words, refused in (
        (("--ethics",), "--ethics and --covering-letter are two pages"),
        (("--audit",), "--covering-letter uses only the plan alone: omit --audit"),
    ):
        words = ("report", "plan.toml", "--covering-letter", *words, "--out", "other")
        assert refused in privstats(*words, cwd=office, code=2).stderr
    assert "--covering-letter" in privstats("report", "--help", cwd=office, code=0).stdout


def test_two_packages_with_a_head_of_one_name_are_refused(brought: Callable[..., None]) -> None:
    brought("privstats.heads", points("nearest", "privstats.heads"), {"NearestCentroid": "late:Second"})
    with pytest.warns(BrokenPackageWarning, match="late1 0.1 and late0 0.1 both have the head 'NearestCentroid'"):
        assert "NearestCentroid" not in list(type(HEADS)())


def test_two_packages_with_an_attack_of_one_name_are_refused(brought: Callable[..., None]) -> None:
    brought("privstats.attacks", points("aligned", "privstats.attacks"), {"aligned-sum": "late:Second"})
    said = "late0 0.1 and late1 0.1 both have the attack 'aligned-sum'"
    with pytest.warns(BrokenPackageWarning, match=said):
        assert len(attacks()) > 9
    with pytest.warns(BrokenPackageWarning), pytest.raises(PrivstatsError, match=said):
        attacks_named(["aligned-sum"])


def test_a_command_that_cannot_be_loaded_is_one_sentence(brought, monkeypatch, capsys):
    brought("privstats.commands", {"late": "nowhere:late"})
    monkeypatch.setattr("sys.argv", ["privstats", "late"])
    with pytest.raises(SystemExit) as ending:
        command_line()
    said = capsys.readouterr().err
    assert ending.value.code == 2
    assert "error: the command 'late' of late0 0.1 cannot be loaded: ModuleNotFoundError" in said
    assert "bug in privstats" not in said


def test_a_finder_that_cannot_be_loaded_is_one_sentence(brought: Callable[..., None]) -> None:
    brought("privstats.findings", {"late": "nowhere:late"})
    with pytest.raises(PrivstatsError, match="the finder 'late' of late0 0.1 cannot be loaded: ModuleNotFoundError"):
        finder("late")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("late", "nowhere:late", "the rival 'late' of late0 0.1 cannot be loaded: ModuleNotFoundError"),
        ("late", "builtins:int", "late0 0.1 announces the rival 'late' as 'builtins:int', which is no rival of that"),
        ("late", "privstats:__name__", "which is no rival of that name: it must be a function without param"),
    ],
    ids=["nowhere", "no rival", "no maker"],
)
def test_a_rival_that_is_announced_wrongly_is_refused_by_the_name_of_its_package(name, value, words, brought):
    brought("privstats.rivals", {name: value})
    with pytest.raises(PrivstatsError, match=words):
        rivals("late")


def test_two_rivals_of_one_name_are_refused(brought):
    brought("privstats.rivals", {"late": "nowhere:one"}, {"late": "nowhere:two"})
    with pytest.raises(PrivstatsError, match="late0 0.1 and late1 0.1 both have the rival 'late'"):
        rivals("late")


def test_a_rival_that_nobody_brings_is_refused_with_those_there_are(brought):
    brought("privstats.rivals", {"late": "nowhere:one"})
    with pytest.raises(PrivstatsError, match=r"baseline must be one of .*late.*, got 'adam'"):
        rivals("adam")
