"""Write one of every stored kind of file, with the code of the version that is installed; later versions read it.

``python tests/stored/write.py ARCHIVE.zip`` runs in an environment of that version: it uses what 0.2.0 and all later
versions have, and nothing of the tests. An archive is never written again: ``tests/test_stored_files.py`` reads it.
``python tests/stored/write.py VERSION-hybrid.zip`` writes plans that name the hybrid key agreement, which versions
before it was the only one did not use by themselves.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.dp import Ledger, calibrate
from privstats.engines.journal import panel_member, rollback
from privstats.engines.network.host import Host
from privstats.engines.network.transport import Deadlines
from privstats.schema.public_values import Published
from privstats.secagg import Identity, Roster

try:
    from privstats.engines.network.study import LocalTransport
except ImportError:  # 0.2.0
    from privstats.engines.network.local import LocalTransport

PARTIES = ("bonn", "mary", "ulm")
LEFT_OUT = ("state", "app", "party", "changes", "records.npz", "status.json", "*.lock", "__pycache__")
"""What no test reads, and records that a session has measured."""
ROWS = np.array([[0.3, -0.1, 0.2], [-0.2, 0.4, 0.1]])
"""Rows at which a head's scores are stored."""
OF_RECORDS = {"unit": "record", "adjacency": "add-remove"}
NAMED: dict[str, str] = {}
"""Further settings of every plan."""


def privstats(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "privstats", *words], check=True, stdout=subprocess.DEVNULL)


def plan_of(schema: ps.ClassSchema, epsilon: float, model: str = "distributed") -> ps.Plan:
    cohort = ps.Cohort(clients=3, min_survivors=2, max_records=300)
    privacy = ps.Privacy(model=model, **OF_RECORDS, epsilon=epsilon, delta=1e-5)
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy, **NAMED)


def records(party: int) -> dict[str, Any]:
    rng = np.random.default_rng(party)
    return {"X": rng.normal(size=(90, 3)), "y": np.arange(90) % 2}


def write_documents() -> None:
    """Identities, one of them locked, plans, a course and a roster."""
    for name in ("server", *PARTIES):
        privstats("identity", "new", f"{name}.pem")
    Path("word").write_text("a long winter\n")
    privstats("identity", "new", "locked.pem", "--passphrase-file", "word")
    Path("plan.toml").write_text(plan_of(ps.ClassSchema(2, 3, "NA", clip_norm=4.0), 2.0).to_toml())
    unit = (ps.transforms.UnitNorm(),)
    whole = plan_of(ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, transform=unit), 4.0)
    Path("whole.toml").write_text(whole.to_toml())
    privstats("course", "init", "rounds.toml", "--plan", "whole.toml", "--rounds", "2")
    Path("stream.toml").write_text(plan_of(ps.ClassSchema(2, 3, "NA", clip_norm=4.0), 4.0, "central").to_toml())
    roster_of("named").save("roster.toml")


def roster_of(label: str) -> Roster:
    keys = [Identity.load(f"{name}.pem").public for name in PARTIES]
    server = Identity.load("server.pem").public
    return Roster.numbered(keys, server=server, label=label, counter=0, names=("Bonn", "St. Mary", "Ulm"))


def write_ledger() -> None:
    """Spends that are sent, begun, withdrawn and freed."""
    schema = ps.ClassSchema(3, 4, "NAB", 1.0)
    privacy = ps.Privacy(model="central", **OF_RECORDS, epsilon=0.5, delta=1e-6)
    ledger = Ledger.create("ledger")
    ledger.set_cap("hips", **OF_RECORDS, epsilon=12.0, delta=1e-5)
    noise = calibrate(schema, privacy, honest_shares=1)
    sent, _, withdrawn, freed = (
        ledger.spend("hips", plan="d1ce", run=run, schema=schema, privacy=privacy, noise=noise)
        for run in (b"sent", b"begun", b"withdrawn", b"freed")
    )
    ledger.finish(sent, b"upload")
    ledger.withdraw(withdrawn)
    ledger.finish(freed, b"excluded")
    ledger.free(freed, upload=b"excluded", proof=b"proof")
    ledger.accept_counter(b"m" * 32, 0, b"run")


def write_study(name: str, document: str, pushes: int = 0) -> None:
    """A session or a course of three parties; after ``pushes`` messages of the server its process is killed."""
    roster_of(name).save(f"{name}.roster")
    privstats("flower", "new", document, name, "--roster", f"{name}.roster")
    root = Path(name)
    shutil.copy("server.pem", root / "host" / "identity.pem")
    for place, party in enumerate(PARTIES):
        shutil.copytree(root / "party", root / party)
        shutil.copy(f"{party}.pem", root / party / "identity.pem")
        np.savez(root / party / "records.npz", **records(place))
        ledger = Ledger.create(str(root / party / "ledger"))
        ledger.set_cap("hips", **OF_RECORDS, epsilon=12.0, delta=1e-5)
    for key in root.glob("*/identity.pem"):
        key.chmod(0o600)
    child = os.fork()
    if not child:
        run(root, pushes)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == (signal.SIGKILL if pushes else 0)


def run(root: Path, pushes: int) -> None:
    class Killed(LocalTransport):  # type: ignore[misc]
        def push(self, *words: Any, **named: Any) -> Any:
            nonlocal pushes
            pushes -= 1
            if not pushes:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().push(*words, **named)

    Host.open(root / "host").run(Killed({node: root / name for node, name in enumerate(PARTIES)}), Deadlines())


def write_stream() -> None:
    """A stream after the first of its two epochs."""
    privstats("stream", "new", "stream", "--plan", "stream.toml", "--epochs", "2", "--deletions")
    Path("changes").mkdir()
    for party in range(3):
        ids = np.array([f"{party}-{k}" for k in range(90)])
        np.savez(f"changes/{party}.npz", ids=ids, **records(party))
    privstats("stream", "epoch", "stream", "changes")


def write_heads() -> None:
    """A head of one release and one of a course's rounds."""
    rounds = [ps.Release.load(f"rounds/host/nodes/{place}/release.safetensors") for place in range(3)]
    ps.heads.RefinedSoftmax().fit_releases(rounds).save("refined.head")
    ps.heads.LDA().fit_release(rounds[0]).save("lda.head")


def write_later_kinds() -> None:
    """What 0.2.0 had not: the signature of a document, and the note of a split."""
    from privstats.errors import DataError
    from privstats.files.envelope import sign_beside
    from privstats.intake.split_notes import note_split

    Path("report.txt").write_text("a page\n")
    sign_beside("report.txt", b"a page\n", Identity.load("server.pem"), DataError)
    Path("north.csv").write_text("age,ill\n40,0\n50,1\n")
    note_split(ps.moments.RecordFile("north.csv", "ill", split=0.25, seed=7), "d1ce", "c0", again=False)


def facts() -> dict[str, Any]:
    """What this version reads in its own files."""
    release, course = ps.Release.load("study/host/release.safetensors"), ps.course.read("rounds.toml")
    accounts = {str(path): ledger_facts(Ledger.open(path)) for path in sorted(Path().rglob("ledger")) if path.is_file()}
    return {
        "version": ps.__version__,
        "public": Identity.load("bonn.pem").public.hex(),
        "locked": Identity.load("locked.pem", passphrase="a long winter").public.hex(),
        "plan": ps.Plan.read("plan.toml").digest,
        "course": course.digest,
        "course mu": course.mu,
        "fingerprint": Roster.load("roster.toml").fingerprint,
        "accounts": accounts,
        "release": {"digest": release.digest, "sums": release.vector.tolist(), "survivors": list(release.survivors)},
        "values": Published.load("rounds/host/nodes/1/plan.values").sha256,
        "scores": {
            name: np.asarray(ps.heads.load(f"{name}.head").decision_function(ROWS)).tolist()
            for name in ("lda", "refined")
        },
    }


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    """The head, and each account's spent epsilon and runs."""
    accounts = {account.dataset: account for account in ledger.accounts()}
    return {
        "head": ledger.head,
        "runs": {name: [entry.run.hex() for entry in account.entries] for name, account in accounts.items()},
        "mu": {name: [entry.mu for entry in account.entries] for name, account in accounts.items()},
    }


def main(archive: Path) -> None:
    # A journal names its folder's inode, and the reader unpacks a copy: this one names none.
    rollback.inode_of = panel_member.inode_of = lambda folder: 0
    if archive.stem.endswith("-hybrid"):
        NAMED.update(key_agreement="mlkem768-x25519")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        os.chdir(folder)
        write_documents()
        write_ledger()
        for name, document, pushes in (
            ("study", "plan.toml", 0),
            ("rounds", "rounds.toml", 0),
            ("half", "plan.toml", 8),
            ("halfrounds", "rounds.toml", 14),
        ):
            write_study(name, document, pushes)
        write_stream()
        write_heads()
        with suppress(ImportError):
            write_later_kinds()
        Path("facts.json").write_text(json.dumps(facts(), indent=1) + "\n")
        with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(Path().rglob("*")):
                if path.is_file() and not any(part.match(word) for part in (path, *path.parents) for word in LEFT_OUT):
                    packed.writestr(zipfile.ZipInfo(path.as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
