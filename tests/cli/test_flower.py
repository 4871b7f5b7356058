"""``privstats flower``: what the coordinator hands out, what a party reads before it joins, what is started then."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.engines.flower import launch
from privstats.engines.network.folder import Folder
from privstats.engines.network.key_agreement import key_agreement
from privstats.engines.network.measuring import own_seed
from privstats.engines.network.party import Party
from privstats.engines.network.status_file import supervised
from privstats.moments import RecordFile
from tests.course.cases import plan_of
from tests.engines.network.courses.study import course_study
from tests.engines.network.fake import FolderNet, study_of

PRIVACY = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)


def test_certificates_and_a_nodes_key_say_who_gets_which_file(privstats, tmp_path: Path) -> None:
    done = privstats(
        "flower", "certificates", "tls", "--host", "a.example", "--host", "192.0.2.7", cwd=tmp_path, code=0
    )
    assert "give tls/ca.pem to every party; keep server.key on this machine" in done.stdout
    done = privstats("flower", "key", cwd=tmp_path)
    assert done.stdout == "wrote node: keep it here; give node.pub to the coordinator\n"
    assert {path.name for path in tmp_path.rglob("*.*")} == {"ca.pem", "server.pem", "server.key", "node.pub"}


def test_a_study_is_an_app_and_folders_of_ones_own(privstats, tmp_path: Path) -> None:
    made = study_of(tmp_path, "split")
    (tmp_path / "plan.toml").write_text(made.plan.to_toml())
    made.roster.save(tmp_path / "roster.toml")
    done = privstats("flower", "new", "plan.toml", "new", "--roster", "roster.toml", cwd=tmp_path, code=0)
    assert "put the server's identity into new/host/identity.pem" in done.stdout
    found = sorted(path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*.*"))
    assert found == [
        *("app/privstats_app/__init__.py", "app/privstats_app/client.py", "app/privstats_app/server.py"),
        *("app/pyproject.toml", "helper/plan.toml", "helper/roster.toml", "host/plan.toml", "host/roster.toml"),
        *("party/plan.toml", "party/records.py", "party/roster.toml"),
    ]
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o77 == 0
    assert (tmp_path / "new" / "party" / "plan.toml").read_text() == made.plan.to_toml()
    assert (
        "exists; name another folder"
        in privstats("flower", "new", "plan.toml", "new", "--roster", "roster.toml", cwd=tmp_path).stderr
    )


@pytest.mark.ci
def test_folders_for_another_carrier_need_no_flower(tmp_path: Path) -> None:
    """``pip install "privstats[nvflare]"`` brings no flwr, and its folders are the same."""
    made = study_of(tmp_path)
    (tmp_path / "plan.toml").write_text(made.plan.to_toml())
    made.roster.save(tmp_path / "roster.toml")
    commands = (
        ("flower", "new", "plan.toml", "new", "--roster", "roster.toml"),
        ("flower", "status", "study/host"),
        ("flower", "check", "study/party 0"),
        ("flower", "key"),
    )
    without = (
        "import importlib.util, sys; found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'flwr' else found(name, *more)\n"
        "sys.modules['flwr'] = None\n"
        "from privstats.cli import main\n"
        f"for words in {commands}:\n"
        "    sys.argv = ['privstats', *words]\n"
        "    try: main()\n"
        "    except SystemExit as end: print('ended', end.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", without], cwd=tmp_path, capture_output=True, text=True)
    ends = re.findall(r"^ended (\w+)$", done.stdout, re.MULTILINE)
    assert [end in ("0", "None") for end in ends] == [True, True, True, False], done.stderr
    assert (tmp_path / "new" / "party" / "records.py").is_file()
    assert (ends[-1], "needs flwr; install with" in done.stderr) == ("2", True), "that key is Flower's own"


def test_a_plan_without_helpers_gets_no_folder_for_them(privstats, tmp_path: Path) -> None:
    host = study_of(tmp_path).host.relative_to(tmp_path)
    privstats("flower", "new", f"{host}/plan.toml", "new", "--roster", f"{host}/roster.toml", cwd=tmp_path, code=0)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["app", "host", "party"]


def test_the_app_is_what_flower_looks_for(tmp_path: Path) -> None:
    """A bare import is not found: Flower reads the syntax tree for the name."""
    from importlib.resources import files

    app = files("privstats.engines.flower") / "template" / "app" / "privstats_app"
    for side in ("server", "client"):
        names: dict[str, object] = {}
        exec((app / f"{side}.py").read_text(), names)
        assert (names["__all__"], type(names["app"]).__name__) == (["app"], f"{side.capitalize()}App")


def test_records_that_no_plan_reads_are_said_in_one_sentence_and_not_counted(privstats, tmp_path: Path) -> None:
    study_of(tmp_path, privacy=PRIVACY)
    rows = "".join(f"0.{place},0.1,0.2,{('mild', 'severe')[place % 2]}\n" for place in range(8))
    (tmp_path / "text.csv").write_text(f"a,b,c,ill\n{rows}")
    unnamed = privstats("flower", "records", "study/party 0", "text.csv", cwd=tmp_path)
    assert "text.csv: name the column to predict with --target" in " ".join(unnamed.stderr.split())
    done = privstats("flower", "records", "study/party 0", "text.csv", "--target", "ill", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("warning: no record remains: 8 of the records cannot be read")
    assert "records.py: 0 records of text.csv" in " ".join(done.stdout.split())


def test_the_servers_folder_is_named_where_a_party_is_asked_for(privstats, tmp_path: Path) -> None:
    study_of(tmp_path)
    done = privstats("flower", "check", "study/host", cwd=tmp_path, code=2)
    assert "identity.pem is the server's on roster.toml: name the folder of a party" in " ".join(done.stderr.split())
    assert re.search(r"connected +no\b", privstats("flower", "status", "study/party 0", cwd=tmp_path).stdout)


def test_a_party_that_names_a_file_writes_no_line(privstats, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    study = study_of(tmp_path)
    rows = "".join(f"0.{place},0.1,0.2,{place % 2}\n" for place in range(8))
    (study.home(0) / "patients.csv").write_text(f"a,b,c,ill\n{rows}")
    named = ("flower", "records", "study/party 0", "study/party 0/patients.csv", "--target")
    done = privstats(*named, "ill", "--split", "0.5", cwd=tmp_path, code=0)
    summed, held_out = map(int, re.findall(r"(\d+) (?:records of|held out)", done.stdout.replace("\n", " ")))
    assert summed + held_out == 8
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path).stdout)
    assert facts["records"] == summed
    assert facts["tls_key_agreement"].startswith(key_agreement().group)
    wrong = privstats(*named, "sick", cwd=tmp_path, code=2)
    assert "has no column 'sick': name the column to predict" in " ".join(wrong.stderr.split())


def test_each_party_s_split_has_a_seed_of_its_own(privstats, tmp_path: Path) -> None:
    """Except with ids: a person's rows at all parties are on one side. A seed that was noted for these sums stays."""
    pytest.importorskip("pandas")
    study = study_of(tmp_path)
    rows = "".join(f"0.{place},0.1,0.2,{place % 2}\n" for place in range(40))
    for number in (0, 2):
        file, script = f"{number}.csv", study.home(number) / "records.py"
        (tmp_path / file).write_text(f"a,b,c,ill\n{rows}")
        named = ("flower", "records", f"study/party {number}", file, "--target", "ill", "--split", "0.5")
        for words, seed in ((("--seed", "7"), 7), ((), 7), (None, number * 1_000_000_000)):
            if words is None:
                (tmp_path / f"{file}.splits.json").unlink()
            privstats(*named, *(words or ()), cwd=tmp_path, code=0)
            assert re.search(rf"seed={seed}\b", script.read_text()), (number, words)
        by_person = RecordFile(tmp_path / "ids.csv", "ill", split=0.5, persons="pid")
        assert own_seed(Folder.open(study.home(number)), by_person) == 0


@pytest.mark.parametrize("peer", [0, 5])
def test_check_prints_what_would_be_sent_and_sends_nothing(privstats, tmp_path: Path, peer: int) -> None:
    study = study_of(tmp_path, "split", privacy=PRIVACY)
    home = f"study/party {peer}"
    if peer < 5:
        done = privstats("flower", "check", home, cwd=tmp_path, code=2)
        remedy = " ".join(done.stderr.split()).partition("`privstats ")[2].partition("`")[0]
        words = shlex.split(remedy.replace("DATASET", "beds").replace("CAP", "2"))
        assert privstats(*words, cwd=tmp_path / "study").returncode == 0, "it is pasted, wherever one stands"
    assert "nothing was sent" in privstats("flower", "check", home, cwd=tmp_path, code=0).stdout
    facts = json.loads(privstats("flower", "check", home, "--json", cwd=tmp_path).stdout)
    assert (facts["plan"], facts["fingerprint"]) == (study.plan.digest, study.roster.fingerprint)
    if peer == 5:
        assert facts["place"] == "helper 1"
        assert "records" not in facts
    else:
        assert (facts["place"], facts["records"], facts["account"]) == ("0 (Aachen)", 9, "beds")
        assert facts["spends"].startswith(f"epsilon 1 at delta 1e-05, while {study.plan.condition}; toward another")
        assert facts["ledger"].startswith("spent epsilon 0 of 2")
    assert not (study.home(peer) / "sessions").exists()


def test_check_of_a_party_that_has_released_before(privstats, tmp_path: Path) -> None:
    FolderNet(study_of(tmp_path)).run()
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path).stdout)
    said = "exact sums were released: no cap can hold for these data; masks hide each party's sums while no party works"
    assert facts["ledger"] == f"{said} with the server"


def test_check_of_moments_without_a_clip_report(privstats, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    (study.home(0) / "records.py").write_text(
        "from pathlib import Path\n"
        "import numpy as np, privstats as ps\n"
        "from privstats.kinds import ClassMoments\n"
        "def load():\n"
        "    return ClassMoments(ps.Plan.read(Path(__file__).with_name('plan.toml')).schema, np.ones(2, int), "
        "np.ones((2, 3), int))\n"
    )
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path, code=0).stdout)
    assert facts["records"] == 2
    assert "clipped" not in facts


def test_a_party_whose_rows_are_all_clipped_reads_it_before_it_takes_part(privstats, tmp_path: Path) -> None:
    """Columns in years under a clip norm of 1: what `fit_private` says alone is said here, to the party alone."""
    study = study_of(tmp_path)
    years = "import numpy as np\ndef load():\n    return np.full((20, 3), 61.0), np.arange(20) % 2\n"
    (study.home(0) / "records.py").write_text(years)
    done = privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path, code=0)
    (remark,) = json.loads(done.stdout)["remarks"]
    assert remark.startswith("clip_norm shortens 100% of the rows of X")
    shown = " ".join(privstats("flower", "check", "study/party 0", cwd=tmp_path).stdout.split())
    assert "treat it as you treat the records" in shown
    assert "Warning" not in done.stderr
    (study.home(0) / "records.py").unlink()
    np.savez(tmp_path / "rows.npz", X=np.full((20, 3), 61.0), y=np.arange(20) % 2)
    named = privstats("flower", "records", "study/party 0", "rows.npz", cwd=tmp_path, code=0)
    assert "clip_norm shortens 100% of the rows" in named.stdout
    fine = json.loads(privstats("flower", "check", "study/party 1", "--json", cwd=tmp_path).stdout)
    assert fine["remarks"] == []


def test_a_party_reads_how_many_of_its_times_lie_beyond_the_edges(privstats, tmp_path: Path) -> None:
    """Measured, and read again from the sums that are kept; nothing of it is in the vector that is sent."""
    schema = ps.CountSchema(
        (ps.Bins("months", (0, 6, 12)), ps.Categories("died", ("no", "yes"))), (("months", "died"),)
    )
    study = study_of(tmp_path, schema=schema)
    coded = "def load():\n    return {'months': [-9] * 3 + [7] * 17, 'died': ['no', 'yes'] * 10}\n"
    (study.home(0) / "records.py").write_text(coded)
    seen = [json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path).stdout) for _ in range(2)]
    for facts in seen:
        assert (facts["records"], facts["beyond_edges"]) == (20, "months 15.00% below and 0.00% above")
        (remark,) = facts["remarks"]
        assert remark.startswith("15% of the values of months are below its edges and 0% above")
    done = privstats("flower", "check", "study/party 0", cwd=tmp_path)
    assert "months 15.00% below" in " ".join(done.stdout.split())
    assert "Warning" not in done.stderr


def test_who_is_not_on_the_roster_is_told_before_it_joins(privstats, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    (study.home(0) / "identity.pem").unlink()
    ps.secagg.Identity.generate(os.urandom).save(study.home(0) / "identity.pem")
    joining = ("join", "study/party 0", "--superlink", "localhost:1", "--root-certificates", "ca.pem", "--key", "node")
    for words in (("check", "study/party 0"), joining):
        done = privstats("flower", *words, cwd=tmp_path, code=2)
        assert "identity.pem is not on roster.toml: ask the coordinator for a roster with your key" in done.stderr


def test_status_prints_a_table_and_its_exit_code_is_the_answer(privstats, tmp_path: Path) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    said = " ".join(privstats("flower", "status", "study/host", cwd=tmp_path, code=0).stdout.split())
    assert "2 (Celle) has not connected since the session began, since 20" in said
    assert "resumes at step advertise" in said
    facts = json.loads(privstats("flower", "status", "study/party 0", "--json", cwd=tmp_path).stdout)
    assert (facts["role"], facts["answers"], facts["last_message"]) == ("party", 1, "open")
    for home in ("study/host", "study/party 0"):
        for question in ("--healthy", "--ready"):
            assert privstats("flower", "status", home, question, cwd=tmp_path, code=1).stdout
    with supervised(net.study.home(0), "joined", "host:8000") as connected:
        assert privstats("flower", "status", "study/party 0", "--healthy", cwd=tmp_path).returncode == 0
        assert privstats("flower", "status", "study/party 0", "--ready", cwd=tmp_path).returncode == 1
        connected(True)
        assert privstats("flower", "status", "study/party 0", "--ready", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("code", [0, 7])
def test_join_and_serve_look_at_the_folder_and_start_flowers_programs(privstats, tmp_path, monkeypatch, code):
    study, started = study_of(tmp_path), []

    def start(home: Path, **named: object) -> int:
        started.append((home, {name: str(value) for name, value in named.items() if name != "say"}))
        return code

    monkeypatch.setattr(launch, "join", start)
    monkeypatch.setattr(launch, "serve", start)
    joined = privstats(
        *("flower", "join", "study/party 1", "--superlink", "host:8000"),
        *("--root-certificates", "ca.pem", "--key", "node"),
        cwd=tmp_path,
    )
    served = privstats("flower", "serve", "study/host", "--certificates", "certificates", cwd=tmp_path)
    assert joined.returncode == served.returncode == (2 if code else 0)
    metrics = {"metrics_port": "None"}
    more = {**metrics, "idle_seconds": "3.0"}
    assert ("ended with code 7" in joined.stderr) == bool(code)
    assert started == [
        (Path("study/party 1"), {"superlink": "host:8000", "root_certificates": "ca.pem", "key": "node"} | more),
        (
            Path("study/host"),
            {"certificates": "certificates", "address": "127.0.0.1:8000", "control_port": "8001"} | metrics,
        ),
    ]
    assert (study.home(1) / "moments").exists()


def test_a_study_of_a_course(privstats, tmp_path: Path) -> None:
    made = course_study(tmp_path, helpers=2)
    host = made.host.relative_to(tmp_path)
    privstats("flower", "new", f"{host}/course.toml", "new", "--roster", f"{host}/roster.toml", cwd=tmp_path, code=0)
    for home in ("host", "party", "helper"):
        assert {path.name for path in (tmp_path / "new" / home).glob("*.toml")} == {
            *("course.toml", "course.first.toml", "roster.toml")
        }
        assert ps.course.read(tmp_path / "new" / home / "course.toml") == made.course
    stream = ps.Stream(plan_of(model="distributed"), 2)
    ps.course.write(tmp_path / "stream.toml", stream)
    privstats("flower", "new", "stream.toml", "other", "--roster", f"{host}/roster.toml", cwd=tmp_path, code=0)
    assert ps.course.read(tmp_path / "other" / "party" / "course.toml") == stream
    assert not (tmp_path / "other" / "party" / "records.py").exists()


def test_check_and_giving_up_of_a_course(privstats, tmp_path: Path) -> None:
    made = course_study(tmp_path)
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path).stdout)
    assert facts["course"] == made.course.digest
    assert (facts["sessions"], facts["place"], facts["records"]) == (3, "0 (Aachen)", 120)
    assert (facts["plan"], facts["fingerprint"]) == (made.course.first.digest, made.roster.fingerprint)
    assert facts["upload_bytes"] == sum(plan.masking.upload_bytes for plan in made.course.priced)
    assert facts["spends"].startswith(
        f"epsilon 4 at delta 1e-05, while {made.course.first.condition}; toward another party, which can subtract"
    )
    assert "refused" not in facts
    assert facts["ledger"].startswith("spent epsilon 0 of 4.001")
    net = FolderNet(made)
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    assert net.run().sentence.startswith("course, round 0: step advertise: 2 of 5 answered")
    done = privstats("flower", "give-up", "study/host", "--yes", cwd=tmp_path, code=0)
    assert done.stdout.startswith("course, round 0: this session ended on ")


def test_check_refuses_a_course_that_the_ledger_has_no_room_for(privstats, tmp_path: Path) -> None:
    made = course_study(tmp_path)
    party = Party.open(made.home(0))
    ps.course.spend(made.course, party.folder.ledger, "ward", os.urandom(16))
    before = [len(account.entries) for account in party.folder.ledger.accounts()]
    done = privstats("flower", "check", "study/party 0", cwd=tmp_path, code=1)
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path, code=1).stdout)
    assert re.search(r"would reach epsilon \d+\.\d+ with a cap of 4\.001 at delta 1e-05", facts["refused"])
    assert "is left for one more release; nothing was spent" in facts["refused"]
    assert "would reach epsilon" in " ".join(done.stdout.split())
    with pytest.raises(ps.LedgerError, match="would reach epsilon") as refused:
        party.folder.entry("ward")
    assert str(refused.value) == facts["refused"]
    assert [len(account.entries) for account in party.folder.ledger.accounts()] == before


def test_check_of_a_course_without_a_promise(privstats, tmp_path: Path) -> None:
    schema = ps.GaussianSchema(6, 4.0, shrinkage=0.1, rounds=1)
    course_study(tmp_path, ps.Alignment(ps.Plan(schema=schema, cohort=ps.Cohort(9, 8, 600), privacy=ps.NoPrivacy())))
    facts = json.loads(privstats("flower", "check", "study/party 0", "--json", cwd=tmp_path).stdout)
    assert facts["spends"].startswith("no differential privacy; masks hide each party's sums while no party works")
    assert facts["ledger"] == "nothing was released yet"


def test_giving_up_asks_first(privstats, tmp_path: Path, monkeypatch) -> None:
    net = FolderNet(study_of(tmp_path))
    net.goes = dict.fromkeys(range(102, 105), 0.0)
    net.run()
    monkeypatch.setattr("typer.confirm", lambda *_, **named: named["abort"] and (_ for _ in ()).throw(SystemExit(1)))
    assert privstats("flower", "give-up", "study/host", cwd=tmp_path).returncode == 2
    assert not (net.study.host / "ended.json").exists()
    done = privstats("flower", "give-up", "study/host", "--yes", cwd=tmp_path, code=0)
    assert "without a sum: it was given up" in done.stdout
    assert privstats("flower", "give-up", "study/host", "--yes", cwd=tmp_path).returncode == 2


def test_renew_moves_what_outlives_a_run(privstats, tmp_path: Path) -> None:
    study = study_of(tmp_path)
    study.roster.renewed().save(tmp_path / "roster.toml")
    plan = f"{study.host.relative_to(tmp_path)}/plan.toml"
    assert privstats("flower", "new", plan, "new", "--roster", "roster.toml", cwd=tmp_path).returncode == 0
    done = privstats("flower", "renew", "study/party 0", "new/party", cwd=tmp_path, code=0)
    assert done.stdout == "moved to new/party: records.npz, records.py, identity.pem\n"
    facts = json.loads(privstats("flower", "check", "new/party", "--json", cwd=tmp_path).stdout)
    assert facts["records"] == 9
    again = privstats("flower", "renew", "study/party 0", "new/party", cwd=tmp_path, code=2)
    assert "has no identity.pem: it was renewed before" in " ".join(again.stderr.split())


@pytest.mark.parametrize("command", ["check", "join", "serve"])
def test_where_nothing_can_be_counted_outside_of_the_folder_nothing_begins(privstats, tmp_path, monkeypatch, command):
    study = study_of(tmp_path / "here")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    words = {
        "check": [str(study.home(0))],
        "join": [str(study.home(0)), "--superlink", "a:1", "--root-certificates", "x", "--key", "y"],
        "serve": [str(study.host), "--certificates", "x"],
    }
    refused = privstats("flower", command, *words[command], cwd=tmp_path, code=2)
    assert "cannot keep counters outside the folder: Not a directory" in refused.stderr
    assert "XDG_STATE_HOME may name another folder" in refused.stderr
