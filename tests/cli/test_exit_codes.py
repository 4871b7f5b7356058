"""Exit code 1 means that a claim is contradicted, and nothing else; whatever goes wrong is code 2 and one sentence."""

import os
import shutil
import subprocess
import sys
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import typer

import privstats as ps
from privstats.cli import main as entry
from privstats.cli.main import app
from tests import made

NAMES = ("ash", "beech")
NAMED = ps.ClassSchema(2, 3, "NAB", 4.0, class_names=NAMES, feature_names=("a", "b", "c"))


@pytest.fixture
def folder(tmp_path, files):
    """A folder of its own with all of these files."""
    return shutil.copytree(files, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A plan, feature sets right and wrong, and files that are something else."""
    tmp_path = tmp_path_factory.mktemp("files")
    (tmp_path / "plan.toml").write_bytes(resources.files("privstats.cli").joinpath("plan.toml").read_bytes())
    X, y = np.random.default_rng(0).random((40, 64)), np.arange(40) % 10
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "short.npy", y[1:])
    np.save(tmp_path / "objects.npy", np.array([{}, []], object), allow_pickle=True)
    sets = {"X_train": X, "y_train": y, "X_test": X, "y_test": y}
    np.savez(tmp_path / "right.npz", **sets)
    np.savez(tmp_path / "whole.npz", X=X, y=y)
    (tmp_path / "table.csv").write_text("a,b,y\n1,2,0\nash,3,1\n")
    wrong = {"empty": {"X_train": X[:0], "y_train": y[:0]}, "narrow": {"X_test": X[:, :9]}, "short": {"y_test": y[1:]}}
    wrong |= {
        "words": {"y_train": np.full(len(y), "ill")},
        "none": {"X_test": X[:0], "y_test": y[:0]},
        "flat": {"X_train": y},
    }
    for name, arrays in wrong.items():
        np.savez(tmp_path / f"{name}.npz", **(sets | arrays))
    text = (tmp_path / "plan.toml").read_text()
    (tmp_path / "utf16.toml").write_text(text, encoding="utf-16")
    (tmp_path / "bom.toml").write_text(text, encoding="utf-8-sig")
    (tmp_path / "none.toml").write_text(text[: text.index("[privacy]")] + '[privacy]\nmodel = "none"\n')
    (tmp_path / "folder").mkdir()
    (tmp_path / "study.json").write_text(
        f'{{"leader": "https://a.example", "run": "{"ab" * 16}", "study": "{"0f" * 32}"}}'
    )
    people = [ps.secagg.Identity(bytes([k + 1]) * 32) for k in range(3)]
    people[0].save(tmp_path / "me.pem")
    people[0].save(tmp_path / "locked.pem", "words")
    roster = ps.secagg.Roster([person.public for person in people[:2]], server=people[2].public)
    roster.save(tmp_path / "roster.toml")
    ps.dp.Ledger.create(tmp_path / "ledger.db")
    plan = made.plan(NAMED, ps.Cohort(2, 2, 9))
    (tmp_path / "two.toml").write_text(plan.to_toml())
    ps.Release(plan, np.zeros(plan.layout.size, np.int64), (0, 1)).save(tmp_path / "release")
    return tmp_path


CALLS = """
nonsense
--nonsense
plan
plan {nonsense,check,certify,suggest}
plan init {plan.toml,nowhere/plan.toml,--yes}
plan check {nowhere.toml,folder,x.npy,utf16.toml}
plan check plan.toml extra
plan {show,certify} nowhere.toml
identity {sign,verify}
identity {sign,verify} x.npy
identity sign nowhere.html --key me.pem
identity sign x.npy --key nowhere.pem
identity verify x.npy --signed-by nonsense
identity verify nowhere.html --signed-by me.pem
report plan.toml --out page --sign nowhere.pem
plan certify none.toml
plan init --from nowhere.csv --yes other.toml
plan diff plan.toml
plan diff plan.toml nowhere.toml
plan diff x.npy plan.toml
course
course {init,check}
course init study.toml
course init study.toml --plan {nowhere.toml,none.toml}
course check {nowhere.toml,plan.toml}
course show {plan.toml,x.npy}
course next plan.toml
course next nowhere.toml release
course admit plan.toml plan.toml
course rehearse {nowhere.toml,plan.toml} table.csv --out rehearsed
course sites {nowhere.toml,plan.toml} nothing.release
course sites plan.toml nothing.release --out .
stream
stream new study
stream new study --plan nowhere.toml --epochs 2
stream new study --plan plan.toml --epochs 0
stream new study --plan plan.toml --epochs 6 --mechanism tree
stream new study --plan plan.toml --epochs 2 --mechanism forest
stream new folder/.. --plan two.toml --epochs 2
stream epoch nowhere folder
stream epoch folder nowhere
stream show {nowhere,folder}
stream {init,bring}
stream init study.toml --plan nowhere.toml --epochs 2
stream init two.toml --plan two.toml --epochs 2
stream init study.toml --plan two.toml --epochs 6 --mechanism tree
stream bring {nowhere,folder} right.npz
synthesise
synthesise {nowhere.toml,plan.toml} release --rows 3 --out rows.csv
try table.csv --target y --epsilon 1
try table.csv {nowhere.csv,table.csv} --target y --epsilon 1
try table.csv table.csv --target z --epsilon 1
try table.csv table.csv --target y --epsilon 0
try table.csv table.csv --target y --epsilon 1 --out plan.toml
look {nowhere.csv,table.csv} --plan plan.toml
look table.csv --plan nowhere.toml
look table.csv --plan plan.toml --separator 1
plan suggest --public {nowhere.npy,plan.toml,right.npz,objects.npy,y.npy,table.csv}
plan suggest --public x.npy --labels {short.npy,x.npy}
plan suggest --public x.npy --plan nowhere.toml
plan suggest --public x.npy --tolerance {5,little}
report
report plan.toml
report nowhere.toml --out page
report plan.toml --out plan.toml
report plan.toml {--release,--head} x.npy --out page
report plan.toml --ethics
report plan.toml --ethics --audit --out page
report plan.toml --ledger nowhere.db --out page
head
head show
head show {nowhere,release}
head fit
head fit {nowhere,plan.toml,folder}
head fit release --head nonsense
head fit release --out {plan.toml,nowhere/model}
head predict
head predict {nowhere,release} table.csv
head verify x.npy
head verify release --plan nowhere.toml
report plan.toml --trials 1 --out page
score
score {nowhere.head,plan.toml} table.csv
score release right.npz
sql
sql nowhere.toml --dialect duckdb --table t
sql plan.toml --dialect {duckdb,oracle} --table t --target y
plan init omop.toml --omop {nowhere.toml,plan.toml,x.npy} --yes
plan init omop.toml --omop plan.toml --target y --yes
sweep
sweep plan.toml
sweep {nowhere.toml,none.toml} right.npz
sweep plan.toml {nowhere.npz,plan.toml,x.npy,objects.npy,empty.npz}
sweep plan.toml {narrow.npz,short.npz,words.npz,none.npz,flat.npz,whole.npz}
sweep plan.toml whole.npz --split {0,0.001}
sweep plan.toml nowhere.csv --target y --split 0.5
sweep plan.toml table.csv --split 0.5
sweep plan.toml table.csv --target {z,b} --split 0.5
sweep plan.toml table.csv --target b
plan suggest --public table.csv --target y
plan suggest --public table.csv --target y --labels y.npy
sweep plan.toml right.npz --head {SVM,Ridge}
sweep plan.toml right.npz --baseline adam
sweep plan.toml right.npz --epsilon {0,nan}
sweep plan.toml right.npz --repeats 1
sweep plan.toml right.npz --out plan.toml
audit
audit {nonsense,devices,inference,ledger,course,release} plan.toml
audit budget {nowhere.toml,none.toml}
audit budget plan.toml --client-records 0
audit budget plan.toml --crosscheck excel
audit {sensitivity,noise,canary,devices} none.toml
audit sensitivity plan.toml --starts 0
audit canary plan.toml --trials 1
audit devices plan.toml --runs 1
audit {inference,release} nowhere
audit ledger nowhere/ledger.db
audit course nowhere.toml
audit lists {nowhere.toml,plan.toml}
http {new,invite,renew,status}
http new {nowhere.toml,plan.toml} study --address https://a --page https://b --closes 2027-03-01T12:00:00Z
http new plan.toml study --address https://a --page https://b --closes soon
http {invite,renew} nowhere --identity plan.toml
audit release
audit plant {nowhere.toml,none.toml} canaries.npz entering.npz
audit plant plan.toml canaries.npz entering.npz --count 1
audit run nowhere known.npz canaries.npz
attack list extra
attack {run,sweep,matrix} nowhere.toml
attack run plan.toml --attack nonsense
identity
identity new {me.pem,nowhere/me.pem}
flower certificates folder --host a.example
flower certificates new
flower certificates new --host a:1
flower certificates new --host a.example --days 9999
flower register nowhere keys
flower {key,new,check} plan.toml
flower key nowhere/node
identity new new.pem --locked
identity new new.pem --passphrase-file {nowhere,x.npy}
identity show {nowhere.pem,folder,plan.toml,locked.pem}
identity lock {nowhere.pem,me.pem}
identity lock me.pem --new-passphrase-file nowhere
identity lock plan.toml --new-passphrase-file x.npy
identity {lock,show} locked.pem --passphrase-file plan.toml
identity show me.pem --passphrase-file plan.toml
roster make
roster make roster.toml --label x --server me.pem A=me.pem
roster make new.toml --label x --server me.pem A=nowhere
roster make new.toml --label x --server nowhere A=me.pem
roster make new.toml --server me.pem A=me.pem
roster show {nowhere.toml,plan.toml}
roster show roster.toml --plan {plan.toml,nowhere.toml}
roster renew nowhere.toml
roster renew roster.toml --out plan.toml
release show {nowhere,plan.toml}
table {nowhere,plan.toml}
release verify {nowhere,plan.toml}
release verify release --plan nowhere.toml
release verify release --signed-by {nonsense,me.pem,folder}
ledger open {plan.toml,nowhere/ledger.db}
ledger restored {plan.toml,nowhere.db} --yes
ledger cap ledger.db beds
ledger cap nowhere.db beds --unit record --adjacency add-remove --epsilon 1 --delta 1e-6
ledger cap ledger.db beds --unit bed --adjacency add-remove --epsilon 1 --delta 1e-6
ledger cap ledger.db beds --unit record --adjacency add --epsilon 1 --delta 1e-6
ledger cap ledger.db beds --unit record --adjacency add-remove --epsilon 0 --delta 1e-6
ledger show {nowhere.db,plan.toml}
ledger show ledger.db --dataset beds
ledger show ledger.db --expected-head 1-ab
ledger skip ledger.db {roster.toml,nowhere.toml}
flower
flower new plan.toml study
flower new {nowhere.toml,plan.toml} study --roster roster.toml
flower new plan.toml study --roster nowhere.toml
flower new two.toml {folder,nowhere/study} --roster roster.toml
flower {withdraw,check,status} nowhere
flower {withdraw,records,check,join,serve,give-up,status,renew} folder
flower records nowhere table.csv --target y
flower join nowhere --superlink localhost:1 --root-certificates ca.pem --key node
flower serve nowhere --certificates folder
flower give-up nowhere --yes
flower status
flower renew nowhere folder
flower renew folder nowhere
http
http {lead,help,close,status} nowhere
http {lead,help,close,give-up,status} folder
http lead folder --address {here,0.0.0.0:8443}
http lead plan.toml
http give-up nowhere --yes
http page {nowhere.json,plan.toml} site
http page study.json folder
http demo --seed many
"""


def alternatives(line):
    """The calls that a line stands for, as a shell expands its braces."""
    words = [word[1:-1].split(",") if word.startswith("{") else [word] for word in line.split()]
    return [" ".join(call) for call in product(*words)]


WRONG = [call for line in CALLS.strip().splitlines() for call in alternatives(line)]


@pytest.mark.parametrize("words", WRONG)
def test_what_goes_wrong_is_code_2_and_a_sentence(privstats, folder, words):
    done = privstats(*words.split(), cwd=folder, code=2)
    assert "bug" not in done.stderr
    assert len((done.stderr + done.stdout).strip()) > 20


def commands(group, *above):
    """Every command by its words."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands") and command.list_commands(None):
            yield from commands(command, *above, name)
        else:
            yield " ".join([*above, name]), command


def test_every_command_answers_to_the_short_word_for_help(privstats, tmp_path):
    every = dict(commands(typer.main.get_command(app)))
    assert all("-h" in each.context_settings["help_option_names"] for each in every.values())
    for words in ((), ("plan",), ("plan", "check"), ("audit", "budget")):
        asked = [privstats(*words, word, cwd=tmp_path) for word in ("-h", "--help")]
        assert [done.returncode for done in asked] == [0, 0]
        assert asked[0].stdout == asked[1].stdout != ""


def test_every_command_is_among_the_wrong_calls():
    every = set(dict(commands(typer.main.get_command(app))))
    assert {"try", "roster renew", "plan check"} <= every
    missing = [name for name in sorted(every) if not any(words.startswith(f"{name} ") for words in WRONG)]
    assert not missing, f"give a wrong call of: {missing}"


def test_every_command_is_on_a_page_for_people():
    """Next to the list of all commands, which is generated."""
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(page for page in (root / "docs").rglob("*.md") if page.name != "cli.md")]
    pages += (root / "benchmarks").glob("*/numbers.md")
    text = " ".join(" ".join(page.read_text("utf-8").split()) for page in pages)
    every = dict(commands(typer.main.get_command(app)))
    assert [name for name, each in every.items() if not each.hidden and f"privstats {name}" not in text] == []


def test_code_1_is_a_contradicted_claim(privstats, folder, monkeypatch):
    class Contradicted:
        violated = True

        def to_json(self):
            return "{}"

    monkeypatch.setattr("threat_models.audits.budget.audit_budget", lambda *_: Contradicted())
    assert privstats("audit", "budget", "plan.toml", "--json", cwd=folder).returncode == 1


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (RuntimeError("boom"), 2, "this is a bug in privstats"),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 2, ""),
        (EOFError(), 2, ""),
        (BrokenPipeError(32, "Broken pipe"), 2, ""),
        (OSError(28, "No space left on device"), 2, "cannot read or write: No space left on device; check"),
        (OSError(36, "File name too long", "aaa"), 2, "cannot use aaa: File name too long; name another path"),
        (OSError(36, "File name too long", b"aaa"), 2, "cannot use aaa: File name too long; name another path"),
        (OSError("raised by a library"), 2, "this is a bug in privstats"),
        (SystemExit("words"), 2, ""),
        (SystemExit(1), 2, ""),
        (SystemExit(0), 0, ""),
        (typer.Exit(1), 1, ""),
    ],
    ids=repr,
)
def test_no_accident_has_the_code_of_a_contradicted_claim(privstats, tmp_path, monkeypatch, raised, code, said):
    def accident(*_):
        raise raised

    monkeypatch.setattr(ps.Plan, "read", accident)
    done = privstats("plan", "check", "plan.toml", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize("words", [("plan", "init"), ("ledger", "show"), ("plan", "check"), ("head", "show")])
def test_a_name_that_the_system_does_not_take_is_no_bug_of_ours(privstats, tmp_path, words):
    done = privstats(*words, "a" * 257, cwd=tmp_path)
    assert (done.returncode, "File name too long" in done.stderr) == (2, True), done.stderr
    assert "bug" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("errors_too", [False, True])
def test_output_that_does_not_fit_is_no_bug_of_ours_and_no_contradicted_claim(tmp_path, errors_too, unbuffered):
    how = {"cwd": tmp_path, "check": False, "env": {**os.environ, "PYTHONUNBUFFERED": unbuffered}}
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "privstats", "--version"]
        errors = full if errors_too else subprocess.PIPE
        done = subprocess.run(words, stdout=full, stderr=errors, text=True, **how)
    assert done.returncode == 2
    assert errors_too or done.stderr.startswith("error: cannot read or write: No space left on device")


def test_a_run_without_a_system_exit_is_done(monkeypatch):
    monkeypatch.setattr(sys.modules["privstats.cli.main"], "app", lambda: None)
    with pytest.raises(SystemExit) as ending:
        entry()
    assert ending.value.code == 0


def test_a_byte_order_mark_is_no_mistake(privstats, folder):
    assert privstats("plan", "check", "bom.toml", cwd=folder).returncode == 0
    assert ps.Plan.read(folder / "bom.toml").digest == ps.Plan.read(str(folder / "plan.toml")).digest
    assert ps.Plan.from_toml("\ufeff" + (folder / "plan.toml").read_text()) == ps.Plan.read(folder / "plan.toml")


def test_a_reader_that_leaves_early_is_no_contradiction(tmp_path):
    (tmp_path / "plan.toml").write_text(made.plan(NAMED, ps.Cohort(3, 2, 9)).to_toml())
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "privstats", "plan", "show", "plan.toml"]
    assert subprocess.run(words, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE).returncode not in (0, 1)
    os.close(writing)


@pytest.mark.ci
def test_audits_of_a_plan_with_names_feed_it_without_them(privstats, folder):
    privacy = made.promise()
    (folder / "named.toml").write_text(made.plan(NAMED, ps.Cohort(3, 2, 99), privacy).to_toml())
    for words in ("noise named.toml --seed 1", "canary named.toml --trials 200 --seed 1", "budget named.toml"):
        privstats("audit", *words.split(), cwd=folder, code=0)


def test_a_sweep_takes_text_labels_by_the_names_of_the_plan(privstats, folder):
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + 2 * y[:, None]
    texts = np.array(NAMES)[y]
    privacy = made.promise()
    (folder / "named.toml").write_text(made.plan(NAMED, ps.Cohort(3, 2, 99), privacy).to_toml())
    np.savez(folder / "named.npz", X_train=X, y_train=texts, X_test=X, y_test=texts)
    done = privstats(
        "sweep", "named.toml", "named.npz", "--head", "lda", "--epsilon", "8", "--repeats", "2", cwd=folder, code=0
    )
    assert "no DP" in done.stdout
