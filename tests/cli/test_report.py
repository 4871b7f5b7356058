"""``privstats report``: the page appears whole, others may read it, and code 1 is a contradicted promise."""

import dataclasses
from contextlib import nullcontext

import msgspec
import numpy as np
import pytest

import privstats as ps
from privstats.contrib.evidence import cbom
from privstats.workflows import report as pages
from privstats.workflows.report import Finding
from privstats.workflows.report.further import FINDERS, PAGES, FurtherFindings, FurtherPage
from tests import made
from tests.planted import plant, plant_entries

PLAN = made.plan(ps.ClassSchema(2, 3, "NAB", 1.0), ps.Cohort(3, 2, 100), made.promise())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    return tmp_path


def found(violated):
    return lambda plan, search: (search.tick(), [Finding(title="T", summary="S.", violated=violated)])[1]


def plant_finders(patch, **finders):
    """Let the command have these searches alone."""
    plant_entries(patch, FINDERS.group, {}, alone=True)
    for name, find in finders.items():
        plant(patch, FINDERS, name, FurtherFindings(name, "Search.", find))


def test_the_page_can_be_read_by_the_colleague_it_is_for(privstats, folder):
    privstats("report", "plan.toml", "--out", "page", cwd=folder, code=0)
    page = folder / "page" / "report.html"
    assert "not promised" in page.read_text("utf-8")
    assert page.stat().st_mode & 0o044 == 0o044


def test_an_ethics_board_gets_pages_of_its_own_signed_and_the_same_every_time(privstats, folder):
    ps.secagg.Identity(bytes([1]) * 32).save(folder / "ulm.pem")
    words = ("report", "plan.toml", "--ethics", "--out", "page")
    done = privstats(*words, "--sign", "ulm.pem", cwd=folder)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "wrote ethics.html to page"), done.stderr
    page = (folder / "page" / "ethics.html").read_bytes()
    assert b"What will be computed" in page
    assert sorted(path.name for path in (folder / "page").iterdir()) == ["ethics.html", "ethics.html.sig"]
    assert privstats(*words, cwd=folder).returncode == 2  # it is there
    assert privstats(*words, "--force", cwd=folder).returncode == 0
    assert (folder / "page" / "ethics.html").read_bytes() == page


def test_an_authority_gets_one_table_and_the_bill_of_the_cryptography(privstats, folder, monkeypatch):
    plant_finders(monkeypatch, attack=lambda plan, search: [TRIED])
    done = privstats("report", "plan.toml", "--evidence", "--attack", "--out", "page", cwd=folder, code=0)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["evidence.html", "cbom.json"]
    assert "Measured: informed, AUC .55." in (folder / "page" / "evidence.html").read_text("utf-8")
    assert (folder / "page" / "cbom.json").read_text("utf-8") == cbom(PLAN)
    assert privstats("report", "plan.toml", "--evidence", "--out", "page", cwd=folder).returncode == 2  # it is there


TRIED = Finding(title="T", summary="S.", measured={"membership": "informed, AUC .55"})


def test_a_release_and_a_ledger_are_read(privstats, folder):
    X, y = np.zeros((9, 3)), np.arange(9) % 2
    ps.simulate(PLAN, [(X, y)] * 3).save(folder / "release")
    made.ledger(folder / "spent.db", epsilon=4.0)
    privstats("report", "plan.toml", "--release", "release", "--ledger", "spent.db", "--out", ".", cwd=folder, code=0)
    page = (folder / "report.html").read_text("utf-8")
    assert "What was released" in page
    assert "ward" in page


def test_a_model_is_on_the_page_with_what_is_promised_for_it(privstats, folder):
    X, y = np.eye(3)[np.arange(9) % 3], np.arange(9) % 2
    release = dataclasses.replace(ps.simulate(PLAN, [(X, y)] * 3), reproducible=False)
    ps.heads.LDA().fit_release(release).save(folder / "head")
    words = ("report", "plan.toml", "--out", ".")
    assert privstats(*words, "--head", "head", cwd=folder).returncode == 0
    page = (folder / "report.html").read_text("utf-8")
    assert "A model made from it" in page
    assert "LDA: epsilon 1 at delta 1e-05: central noise, one record, add-remove, while the server adds its" in page
    assumed = ps.heads.LDA().fit_release(release)
    assumed.provenance_ = msgspec.structs.replace(assumed.provenance_, assumed_public=("classes",))
    assumed.save(folder / "head")
    assert privstats(*words, "--head", "head", "--force", cwd=folder).returncode == 0
    assert "The promise does not cover what was read off" in (folder / "report.html").read_text("utf-8")
    ps.heads.LDA().fit_release(dataclasses.replace(release, reproducible=True)).save(folder / "head")
    assert privstats(*words, "--head", "head", "--force", cwd=folder).returncode == 1
    assert "A promise is contradicted" in (folder / "report.html").read_text("utf-8")
    ps.heads.LDA().fit(X, y).save(folder / "head")
    done = privstats(*words, "--head", "head", "--force", cwd=folder)
    assert (done.returncode, "names no plan" in done.stderr) == (2, True)


@pytest.mark.parametrize(("violated", "code"), [(False, 0), (True, 1)])
def test_a_contradicted_promise_is_code_1_and_on_the_page(privstats, folder, monkeypatch, violated, code):
    counted = []

    def bar(label):
        return nullcontext(lambda count: counted.append((label, count)))

    monkeypatch.setattr("privstats.progress.progress_bar", bar)
    plant_finders(monkeypatch, audit=found(False), attack=found(violated))
    done = privstats("report", "plan.toml", "--audit", "--attack", "--out", "page", cwd=folder, code=code)
    assert ("A promise is contradicted" in (folder / "page" / "report.html").read_text()) == violated
    assert (counted, done.stderr) == ([("audit", 1), ("attack", 1)], "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--release", "plan.toml", "--out", "x"), "not a privstats release"),
        (("--ledger", "nowhere.db", "--out", "x"), "nowhere.db"),
        (("--out", "plan.toml"), "--out plan.toml cannot be a folder"),
        (("--trials", "1", "--out", "x"), "--trials"),
        ((), "--out"),
        (("--ethics",), "--out"),
        (("--ethics", "--evidence", "--out", "x"), "--ethics and --evidence are two pages"),
        (("--evidence", "--ledger", "nowhere.db", "--out", "x"), "omit --ledger, or omit --evidence"),
        (("--ethics", "--audit", "--ledger", "nowhere.db", "--out", "x"), "omit --ledger, --audit, or"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_no_page(privstats, folder, words, said):
    assert said in privstats("report", "plan.toml", *words, cwd=folder, code=2).stderr
    assert not (folder / "x").exists()


def test_an_option_of_a_further_page_hides_none_of_the_command(privstats, folder, monkeypatch):
    plant(monkeypatch, PAGES, "sign", FurtherPage("sign", "Write sign.html.", "the plan alone", pages.page_of))
    said = privstats("report", "plan.toml", "--out", "x", cwd=folder, code=2).stderr
    assert "its option 'sign', --sign, is" in said


def test_what_is_written_is_signed_beside_it(privstats, folder):
    ulm, other = (ps.secagg.Identity(bytes([seed]) * 32) for seed in (1, 2))
    ulm.save(folder / "ulm.pem")
    words = ("report", "plan.toml", "--out", ".", "--sign", "ulm.pem")
    privstats(*words, cwd=folder, code=0)
    page = folder / "report.html"

    def verified(signer):
        return privstats("identity", "verify", "report.html", "--signed-by", signer.public.hex(), cwd=folder)

    by_signer = verified(ulm)
    assert (by_signer.returncode, "signed it" in by_signer.stdout) == (0, True), by_signer.stderr
    assert verified(other).returncode == 1
    page.write_text(page.read_text("utf-8").replace("not promised", "promised"), "utf-8")
    changed = verified(ulm)
    assert (changed.returncode, "was changed since" in changed.stdout) == (1, True)
    assert privstats("identity", "sign", "report.html", "--key", "ulm.pem", cwd=folder).returncode == 0
    assert verified(ulm).returncode == 0
    (folder / "report.html.sig").unlink()
    gone = verified(ulm)
    assert (gone.returncode, "cannot read report.html.sig" in gone.stderr) == (2, True)
    (folder / "report.html.sig").write_text('{"format": "privstats-signature", "version": 2, "ed25519": ""}')
    newer = verified(ulm)
    assert (newer.returncode, "no signature of version 1" in newer.stderr) == (2, True)


def test_a_locked_key_signs_with_its_passphrase_and_no_key_writes_nothing(privstats, folder):
    ps.secagg.Identity(bytes([1]) * 32).save(folder / "ulm.pem", "words")
    (folder / "words.txt").write_text("words\n")
    words = ("report", "plan.toml", "--out", ".", "--sign", "ulm.pem")
    refused = privstats(*words, cwd=folder)
    assert (refused.returncode, "pass --passphrase-file" in refused.stderr) == (2, True)
    assert not (folder / "report.html").exists()
    privstats(*words, "--passphrase-file", "words.txt", cwd=folder, code=0)
    assert (folder / "report.html.sig").exists()


def test_what_was_completed_by_hand_is_replaced_only_on_purpose(privstats, folder):
    words, page = ("report", "plan.toml", "--out", "."), folder / "report.html"
    assert privstats(*words, cwd=folder).returncode == 0
    page.write_text("completed for an hour")
    refused = privstats(*words, cwd=folder)
    assert (refused.returncode, "report.html exists; " in refused.stderr) == (2, True)
    assert page.read_text() == "completed for an hour"
    assert privstats(*words, "--force", cwd=folder).returncode == 0
    assert page.read_text() != "completed for an hour"


def test_no_signature_of_an_earlier_page_stays_beside_a_new_one(privstats, folder):
    ps.secagg.Identity(bytes([1]) * 32).save(folder / "ulm.pem")
    words = ("report", "plan.toml", "--out", ".")
    assert privstats(*words, "--sign", "ulm.pem", cwd=folder).returncode == 0
    (folder / "report.html").unlink()
    refused = privstats(*words, cwd=folder)
    assert (refused.returncode, "report.html.sig exists; " in refused.stderr) == (2, True)
    done = privstats(*words, "--force", cwd=folder)
    assert (done.returncode, "removed report.html.sig" in done.stdout) == (0, True)
    assert not (folder / "report.html.sig").exists()
    assert privstats(*words, "--sign", "ulm.pem", "--force", cwd=folder).returncode == 0
    assert (folder / "report.html.sig").exists()
