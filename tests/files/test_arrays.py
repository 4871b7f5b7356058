"""No file of records makes a machine allocate what its header claims: sizes are checked before anything is read."""

import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from privstats.contrib.streams.inbox import read_batch
from privstats.errors import DataError
from privstats.files import arrays
from privstats.files.arrays import read_arrays
from privstats.intake import table_files
from privstats.intake.arrays import file_rows
from privstats.intake.record_files import RecordFile
from privstats.randomness import Generator
from tests.threat_models.test_data import plan_of
from threat_models.audits.known_inputs import known_inputs
from threat_models.data import from_file

GB_32 = 4_000_000_000
CLAIMS = r"the header of (X|ids) claims [\d,]+ bytes, and the file has at most"


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def claiming(path: Path, shape: tuple[int, ...] = (GB_32,), kind: str = "<f8", *names: str) -> Path:
    """An npz of a kilobyte whose arrays claim this shape."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("X", "y", "ids"):
            archive.writestr(f"{name}.npy", header(shape, kind) + bytes(64))
    return path


def lying(path: Path) -> Path:
    """The same, with the size of each member in the archive as its header claims it."""
    data = bytearray(claiming(path, (GB_32 // 8,), "|u1").read_bytes())
    for at in [at for at in range(len(data) - 4) if data[at : at + 4] == b"PK\x01\x02"]:
        data[at + 24 : at + 28] = struct.pack("<I", GB_32 // 8 + 128)
    path.write_bytes(data)
    return path


READERS: dict[str, Callable[[Path], object]] = {
    "arrays of a record file": lambda path: RecordFile(path).arrays("X y"),
    "a record file": lambda path: RecordFile(path).all_records(),
    "a stream's batch": read_batch,
    "known inputs": lambda path: known_inputs(path, plan_of().schema),
    "an attack's records": lambda path: from_file(plan_of(), path, Generator(bytes(32))),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("write", [claiming, lying])
def test_a_file_that_claims_more_than_it_has_is_one_sentence_and_no_memory(
    tmp_path: Path, reader: str, write: Callable[[Path], Path]
) -> None:
    path = write(tmp_path / "claims.npz")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=CLAIMS) as said:
            READERS[reader](path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "write it again with numpy.savez" in str(said.value)
    assert "\n" not in str(said.value)
    assert peak < 1 << 22


def test_arrays_that_are_all_there_and_too_large_are_named_with_the_bound(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(arrays, "MOST_BYTES", 1000)
    np.savez_compressed(tmp_path / "r.npz", X=np.zeros((50, 2)), y=np.zeros(50))
    with pytest.raises(DataError, match="X, y hold 1,456 bytes, and at most 1,000 are read: give fewer records"):
        read_arrays(tmp_path / "r.npz")
    assert read_arrays(tmp_path / "r.npz", lambda _: ["y"])["y"].shape == (50,)


def test_a_machine_without_the_memory_says_so(tmp_path: Path, monkeypatch) -> None:
    np.savez(tmp_path / "r.npz", X=np.zeros(3))

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np.lib.format, "read_array", full)
    with pytest.raises(DataError, match="holds more than this machine has memory for: give fewer records"):
        read_arrays(tmp_path / "r.npz")


@pytest.mark.parametrize("kind", ["|O", "<U0", "|V0"])
def test_objects_and_entries_of_no_size_are_no_plain_arrays(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DataError, match="as an npz file of plain arrays"):
        read_arrays(claiming(tmp_path / "r.npz", (1,), kind))


@pytest.mark.parametrize("shape", [(-1,), (1 << 70,), (1 << 40, 1 << 40), (-(1 << 40), -8)])
def test_no_shape_is_allocated(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError):
        read_arrays(claiming(tmp_path / "r.npz", shape))
    (tmp_path / "r.npy").write_bytes(header(shape) + bytes(64))
    with pytest.raises(DataError, match="X is no complete .npy file of numbers"):
        file_rows(tmp_path / "r.npy", "X")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match="cannot read"):
        read_arrays(tmp_path / "pipe.npz")


def test_damage_anywhere_is_one_sentence_or_the_same_arrays(tmp_path: Path) -> None:
    full = {"X": np.arange(6.0).reshape(2, 3), "y": np.array(["a", "b"])}
    np.savez(tmp_path / "r.npz", **full)
    data = (tmp_path / "r.npz").read_bytes()
    for place in range(0, len(data), 3):
        (tmp_path / "r.npz").write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            found = read_arrays(tmp_path / "r.npz", sorted)
        except DataError as error:
            assert "\n" not in str(error), place
        else:
            assert all(np.array_equal(found[name], array) for name, array in full.items() if name in found), place


def test_a_parquet_file_that_repeats_one_value_is_not_unrolled(tmp_path: Path, monkeypatch) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = pyarrow.DictionaryArray.from_arrays(np.zeros(100_000, np.int8), ["x"])
    parquet.write_table(pyarrow.table({"X": values, "ill": values}), tmp_path / "r.parquet")
    monkeypatch.setattr(table_files, "MOST_BYTES", 1_000_000)
    with pytest.raises(DataError, match="2 columns hold 1,600,000 bytes, and at most 1,000,000 are read: pass fewer"):
        RecordFile(tmp_path / "r.parquet", "ill").table(["X", "ill"])
