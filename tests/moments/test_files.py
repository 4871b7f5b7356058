"""Files larger than memory are read in pieces, and a file that is cut short ends in a sentence, not in a crash."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError
from privstats.intake.arrays import FileRows, GuardedRows, mapped_rows

SCHEMA = ps.ClassSchema(4, 6, "NAS", clip_norm=3.0, grid_bits=10)


@pytest.fixture
def stored(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 6)).astype(np.float32), rng.integers(0, 4, 3000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    np.save(tmp_path / "y.npy", y)
    return tmp_path, X, y


def test_paths_and_memory_maps_give_the_same_bits_as_arrays(stored):
    folder, X, y = stored
    whole = ps.measure(SCHEMA, X, y)
    assert ps.measure(SCHEMA, folder / "X.npy", folder / "y.npy") == whole
    assert ps.measure(SCHEMA, str(folder / "columns.npy"), y) == whole
    for name in ("X.npy", "columns.npy"):
        for mode in ("r", "r+", "c"):
            assert ps.measure(SCHEMA, np.load(folder / name, mmap_mode=mode), y) == whole


def test_views_of_memory_maps_are_read_where_they_lie(stored):
    folder, X, y = stored
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    assert isinstance(mapped_rows(mapped[100:2000], "X"), FileRows)
    assert ps.measure(SCHEMA, mapped[100:2000], y[100:2000]) == ps.measure(SCHEMA, X[100:2000], y[100:2000])
    assert isinstance(mapped_rows(mapped[::2], "X"), GuardedRows)
    assert ps.measure(SCHEMA, mapped[::2], y[::2]) == ps.measure(SCHEMA, X[::2], y[::2])
    narrow = ps.ClassSchema(4, 3, "NA", clip_norm=3.0)
    assert ps.measure(narrow, mapped[:, 1:4], y) == ps.measure(narrow, X[:, 1:4], y)


def test_a_raw_memory_map_with_an_offset_beyond_a_page_is_read_where_it_lies(tmp_path):
    X, y = np.arange(60000.0).reshape(10000, 6) % 7, np.arange(10000) % 4
    path = tmp_path / "raw.bin"
    path.write_bytes(b"h" * 5000 + X.tobytes())
    mapped = np.memmap(path, np.float64, "r", offset=5000, shape=X.shape)
    assert ps.measure(SCHEMA, mapped[17:], y[17:]) == ps.measure(SCHEMA, X[17:], y[17:])


def test_changes_in_a_copy_on_write_map_count(stored):
    folder, X, y = stored
    mapped = np.load(folder / "X.npy", mmap_mode="c")
    mapped[0] = 9.0
    assert ps.measure(SCHEMA, mapped, y) == ps.measure(SCHEMA, np.array(mapped), y)
    assert ps.measure(SCHEMA, mapped, y) != ps.measure(SCHEMA, X, y)


def test_half_a_file_is_refused(stored):
    folder, _, y = stored
    os.truncate(folder / "X.npy", 30000)
    with pytest.raises(DataError, match="no whole .npy file"):
        ps.measure(SCHEMA, folder / "X.npy", y)


def test_a_missing_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="X cannot be read"):
        ps.measure(SCHEMA, tmp_path / "none.npy", np.zeros(3, int))
    (tmp_path / "text.npy").write_text("1,2,3")
    with pytest.raises(DataError, match="no whole .npy file"):
        ps.measure(SCHEMA, tmp_path / "text.npy", np.zeros(3, int))
    np.save(tmp_path / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="no whole .npy file"):
        ps.measure(SCHEMA, tmp_path / "objects.npy", np.zeros(2, int))


@pytest.mark.parametrize("kind", ["plain", "strided"])
def test_a_map_that_shrinks_while_it_is_read_is_refused_and_the_process_lives(tmp_path, kind):
    """In a process of its own: reading a shrunken map the naive way is a bus error."""
    code = f"""
        import os, numpy as np, privstats as ps
        np.save("X.npy", np.ones((4000, 6)))
        mapped = np.load("X.npy", mmap_mode="r")
        rows = mapped if {kind!r} == "plain" else mapped[::2]
        def batches():
            yield rows[:100], np.zeros(100, int)
            os.truncate("X.npy", 10000)
            yield rows[100:2000], np.zeros(1900, int)
        try:
            ps.measure(ps.ClassSchema(4, 6, "NA", clip_norm=3.0), batches())
        except ps.DataError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "is truncated" in done.stdout


def test_a_file_that_vanishes_is_refused(stored):
    folder, _, y = stored
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    (folder / "X.npy").unlink()
    with pytest.raises(DataError, match="X cannot be read"):
        ps.measure(SCHEMA, mapped, y)
