"""A score over folders: a head from the records that a split leaves, scored on those that it keeps out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import records_of
from privstats.engines.network.records_script import name_file
from privstats.engines.network.round_host import Ended
from privstats.errors import DataError
from privstats.intake.split_notes import notes_path
from privstats.moments import RecordFile
from privstats.schema.public_values import values_path
from tests import made
from tests.engines.network.fake import RECORDS, FolderNet, Study, study_of

TEMPLATE = RECORDS.encode()
COHORT = ps.Cohort(5, 5, 1000)
SCHEMA = ps.ClassSchema(2, 3, "NAB", clip_norm=4.0)


def file_of(place: Path, peer: int, **how: Any) -> RecordFile:
    rng = np.random.default_rng(peer)
    y = np.arange(80) % 2
    path = place / f"{peer}.npz"
    np.savez(path, X=rng.normal(size=(80, 3)) + y[:, None], y=y)
    return RecordFile(path, split=0.4, seed=3, **how)


def run(study: Study, place: Path, **how: Any) -> ps.Release:
    net = FolderNet(study)
    for peer in range(5):
        name_file(Folder.open(study.home(peer)), file_of(place, peer, **how), TEMPLATE)
    assert isinstance(net.run(), Ended)
    return ps.Release.load(study.host / "release.safetensors")


def test_parties_score_what_they_kept_out(tmp_path: Path) -> None:
    trained = run(study_of(tmp_path / "sums", schema=SCHEMA, cohort=COHORT), tmp_path)
    head = ps.heads.LDA().fit_release(trained)
    scoring = ps.Scoring(head, score_bins=8)
    terms = {"schema": scoring.schema, "cohort": COHORT, "published": scoring.published}
    study = study_of(tmp_path / "score", **terms)
    for home in (study.host, *map(study.home, range(5))):
        scoring.published.save(values_path(home / "plan.toml"))
    found = ps.inference.head_score(run(study, tmp_path, kept_out=True))
    parts = [file_of(tmp_path, peer).parts() for peer in range(5)]
    X, y = (np.concatenate([getattr(kept, name) for _, kept in parts]) for name in "Xy")
    assert found.records == len(y)
    assert trained.moments.N.sum() == 400 - len(y)
    assert found.accuracy.value == pytest.approx(head.score(X, y))
    folder, file = Folder.open(study.home(0)), file_of(tmp_path, 0, kept_out=True)
    assert json.loads(notes_path(file).read_text())["splits"] == [
        {
            "plan": trained.plan.digest,
            "course": ps.course.Single(trained.plan).digest,
            "split": 0.4,
            "seed": 3,
            "rule": 2,
        }
    ]
    for other in (replace(file, seed=4), replace(file, split=0.5)):
        with pytest.raises(DataError, match=r"used --split 0.4 --seed 3, so another split would score records"):
            name_file(folder, other, TEMPLATE)
    (study.home(0) / "records.py").write_text(
        f"from privstats.moments import RecordFile\n\n\ndef load():\n"
        f"    return RecordFile({str(file.path)!r}, split=0.4, seed=4, kept_out=True)  # by hand\n"
    )
    with pytest.raises(DataError, match="used --split 0.4 --seed 3"):
        records_of(folder.round(0))
    (study.home(0) / "records.py").write_bytes(TEMPLATE)
    assert name_file(folder, replace(file, split=0.3), TEMPLATE).remarks == ()  # all of these were kept out, too
    notes_path(file).unlink()
    (believed,) = name_file(folder, replace(file, seed=4), TEMPLATE).remarks
    assert "split and seed are taken as stated" in believed
    name_file(folder, file, TEMPLATE)
    script = (study.home(0) / "records.py").read_text()
    assert "split=0.4, seed=3, kept_out=True)" in script


def test_a_split_that_was_named_by_mistake_counts_until_something_was_charged(tmp_path: Path) -> None:
    study = study_of(tmp_path / "sums", schema=SCHEMA, cohort=COHORT, privacy=made.promise(epsilon=4.0))
    folder, file = Folder.open(study.home(0)), file_of(tmp_path, 0)

    def seeds() -> list[int]:
        return [each["seed"] for each in json.loads(notes_path(file).read_text())["splits"]]

    name_file(folder, replace(file, seed=1), TEMPLATE)
    name_file(folder, file, TEMPLATE)
    assert seeds() == [3]
    folder.ledger.set_cap("beds", **made.cap(9.0))
    terms = {"schema": study.plan.schema, "privacy": study.plan.privacy, "noise": study.plan.noise}
    folder.ledger.spend("beds", plan=study.plan.digest, run=b"1" * 16, **terms)
    name_file(folder, replace(file, seed=2), TEMPLATE)
    assert seeds() == [3, 2]


def test_records_that_made_the_head_are_refused_where_the_ledger_knows(tmp_path: Path) -> None:
    promise = made.promise(epsilon=4.0)
    study = study_of(tmp_path / "sums", schema=SCHEMA, cohort=COHORT, privacy=promise)
    release = ps.simulate(study.plan, [(np.ones((20, 3)), np.arange(20) % 2)] * 5)
    scoring = ps.Scoring(ps.heads.LDA().fit_release(release), score_bins=8)
    scored = study_of(
        tmp_path / "score", schema=scoring.schema, cohort=COHORT, privacy=promise, published=scoring.published
    )
    scoring.published.save(values_path(scored.home(0) / "plan.toml"))
    folder = Folder.open(scored.home(0))
    whole = RecordFile(file_of(tmp_path, 0).path)
    name_file(folder, whole, TEMPLATE)  # nothing is known of these records
    folder.ledger.set_cap("beds", **made.cap(9.0))
    terms = {"schema": study.plan.schema, "privacy": promise, "noise": study.plan.noise}
    folder.ledger.spend("beds", plan=study.plan.digest, run=b"1" * 16, **terms)
    for file, words in ((whole, "charged for the sums that made the head"), (file_of(tmp_path, 0), "add --kept-out")):
        with pytest.raises(DataError, match=words):
            name_file(folder, file, TEMPLATE)
    assert name_file(folder, file_of(tmp_path, 0, kept_out=True), TEMPLATE).held_out > 20


def test_records_are_kept_out_by_a_split_alone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="held out: pass"):
        RecordFile("trees.npz", kept_out=True)
    file, kept = file_of(tmp_path, 0), file_of(tmp_path, 0, kept_out=True)
    assert len(file.read().X) + len(kept.read().X) == 80
    assert np.array_equal(kept.read().X, file.parts()[1].X)
    assert np.array_equal(np.concatenate([X for X, _ in kept.batches()]), kept.read().X)
