"""An error names the first record that cannot be read, by its position among all that were passed."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import privstats as ps
from privstats.errors import RecordError
from privstats.schema.public_values import Published, Values
from tests.cards import DEVICES, tensors_elsewhere
from tests.moments.test_persons import CLASSES, PLAN

torch = pytest.importorskip("torch", reason="torch is an extra")
N, D, C = 120, 6, 4
SCHEMAS = {
    "moments": ps.ClassSchema(C, D, "NAB", clip_norm=3.0),
    "by class": ps.ClassSchema(C, D, "NAS", clip_norm=3.0),
    "mapped": ps.ClassSchema(C, D, "NA", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),)),
}


def records(row=None, label=None):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, D)), rng.integers(0, C, N)
    if row is not None:
        X[[row, N - 1], [2, 0]] = np.nan
    if label is not None:
        y[[label, N - 2]] = C
    return X, y


def batches(X, y, size=50):
    return [(X[at : at + size], y[at : at + size]) for at in range(0, len(X), size)]


def position(schema, *data, **more):
    with pytest.raises(RecordError) as caught:
        ps.measure(schema, *data, **more)
    stated = re.search(r"position (\d+)", str(caught.value))
    assert stated is not None
    assert caught.value.position == int(stated[1])
    return caught.value.position


@pytest.mark.parametrize("bad", [{"row": 77}, {"label": 77}], ids=["a row", "a label"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_error_names_the_record_in_every_container(schema, bad):
    X, y = records(**bad)
    assert position(schema, X, y) == 77
    assert position(schema, X.tolist(), y.tolist()) == 77
    assert position(schema, sp.csr_array(X), y) == 77
    assert position(schema, batches(X, y)) == 77
    assert position(schema, iter(batches(X.tolist(), y.tolist()))) == 77


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad", [{"row": 77}, {"label": 77}], ids=["a row", "a label"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_error_of_a_device_names_the_record_over_all_batches(monkeypatch, device, schema, bad):
    """Its tile holds several batches, and one batch may be in two tiles."""
    tensors_elsewhere(monkeypatch)
    X, y = (torch.as_tensor(each, device=device) for each in records(**bad))
    for rows in (1 << 20, 32):
        monkeypatch.setattr("privstats.moments.device_tiles._TILE_BYTES", 8 * D * rows)
        assert position(schema, X, y) == 77
        assert position(schema, batches(X, y)) == 77


def test_records_of_files_are_counted(tmp_path):
    X, y = records(row=77)
    paths = []
    for place, (rows, labels) in enumerate(batches(X, y)):
        paths.append((tmp_path / f"X{place}.npy", str(tmp_path / f"y{place}.npy")))
        for path, array in zip(paths[-1], (rows, labels), strict=True):
            np.save(path, array)
    assert position(SCHEMAS["moments"], paths) == 77


def test_a_target_is_named_too():
    X, y = records()
    targets = y.astype(float)
    targets[[40, 90]] = np.inf
    assert position(ps.RidgeSchema(D, clip_norm=1.0, target_bound=4.0), X, targets) == 40


@pytest.mark.parametrize("device", DEVICES)
def test_a_label_of_a_round_is_named(monkeypatch, device):
    """A row that is not finite adds nothing to a round, so the label is the first that is refused there."""
    tensors_elsewhere(monkeypatch)
    monkeypatch.setattr("privstats.moments.device_tiles._TILE_BYTES", 8 * D * 32)
    schema = ps.GradientSchema(D, C, residual_norm=0.3, expected_records=N, course_mu=1.0)
    zeros = {name: Values.rounded(np.zeros(shape)) for name, shape in schema.needs.items()}
    X, y = records(label=77)
    there = torch.as_tensor(X, device=device), torch.as_tensor(y, device=device)
    for data in ((X, y), there, (batches(X, y),), (batches(*there),)):
        assert position(schema, *data, published=Published.of(zeros)) == 77


def test_batches_of_both_kinds_name_no_record(monkeypatch):
    """Sums of a device count its records alone."""
    there = []
    tensors_elsewhere(monkeypatch, lambda rows: any(rows is each for each in there))
    X, y = records(row=77)
    there = [torch.as_tensor(X[50:])]
    with pytest.raises(RecordError) as caught:
        ps.measure(SCHEMAS["moments"], [(X[:50], y[:50]), (there[0], torch.as_tensor(y[50:]))])
    assert "position" not in str(caught.value)


def test_persons_are_read_in_another_order_and_named_by_none():
    X, y = np.zeros((6, 4)), np.zeros(6, int)
    X[4] = np.nan
    with pytest.raises(RecordError) as caught:
        ps.measure(CLASSES, X, y, persons=[1, 2, 1, 2, 1, 2], person_clip=PLAN.person_clip)
    assert "position" not in str(caught.value)
