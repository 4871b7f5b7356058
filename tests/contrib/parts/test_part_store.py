"""Objects of settled parts: the bytes that were written or a sentence, whatever a store does to them."""

import sys
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from privstats.contrib.parts.part_store import PartStore, StoredPart, StoreError, content_of
from privstats.errors import MissingExtraError, PrivstatsError

RUN = "ab" * 16
PIECES = (b"first body", b"", b"second body")
WHOLE = b"".join(PIECES)


def test_what_was_written_is_read_from_a_folder_and_from_memory(tmp_path: Path) -> None:
    for url in (str(tmp_path), tmp_path.as_uri(), "memory://objects/deep"):
        store = PartStore(url, RUN)
        parts = [store.put(7, PIECES) for _ in range(2)]
        assert parts[0].url != parts[1].url
        assert [content_of(part) for part in parts] == [WHOLE, WHOLE]
        store.remove(parts[0])
        with pytest.raises(StoreError, match="cannot be read: FileNotFoundError"):
            content_of(parts[0])
        store.remove(parts[0])
        store.clear()
        with pytest.raises(StoreError, match="cannot be read"):
            content_of(parts[1])
        store.clear()


@pytest.mark.parametrize("place", [0, 9, len(WHOLE) - 1])
def test_every_changed_byte_is_refused(tmp_path: Path, place: int) -> None:
    part = PartStore(str(tmp_path), RUN).put(0, PIECES)
    file = Path(part.url.removeprefix("file://"))
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError, match="holds other bytes than were written"):
        content_of(part)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b""])
def test_another_length_is_refused_before_it_is_verified(tmp_path: Path, change) -> None:
    part = PartStore(str(tmp_path), RUN).put(0, PIECES)
    Path(part.url.removeprefix("file://")).write_bytes(change(WHOLE))
    with pytest.raises(StoreError, match=f"does not have the {len(WHOLE)} bytes that were written"):
        content_of(part)


def test_another_object_under_the_name_is_refused(tmp_path: Path) -> None:
    store = PartStore(str(tmp_path), RUN)
    first, second = store.put(0, [b"one"]), store.put(1, [b"two"])
    with pytest.raises(StoreError, match="other bytes"):
        content_of(replace(first, url=second.url))


def test_a_store_that_cannot_be_written_or_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="^a store of nowhere cannot be used: ValueError$"):
        PartStore("nowhere://user:secret@x", RUN)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="part 3 cannot be stored"):
        PartStore(str(tmp_path / "file"), RUN).put(3, PIECES)


def test_a_password_in_an_address_is_in_no_sentence() -> None:
    part = StoredPart(f"memory://user:secret@host/deep/{RUN}/3-ab", 4, bytes(32), bytes(16))
    with pytest.raises(StoreError, match=f"^object {RUN}/3-ab cannot be read: FileNotFoundError$"):
        content_of(part)
    assert "secret" not in repr(part)
    assert part.key.hex() not in repr(part)


def test_an_error_of_whoever_gives_the_bodies_is_its_own(tmp_path: Path) -> None:
    def pieces():
        yield b"one"
        raise PrivstatsError("the journal has gone")

    with pytest.raises(PrivstatsError, match=r"^the journal has gone$"):
        PartStore(str(tmp_path), RUN).put(0, pieces())


def test_without_fsspec_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'privstats\[dask\]'"):
        PartStore("x", RUN)


def test_the_names_of_objects_follow_from_run_and_part_alone(tmp_path: Path) -> None:
    part = PartStore(str(tmp_path), RUN).put(12, PIECES)
    files, path = fsspec.core.url_to_fs(part.url)
    folder, _, name = path.rpartition("/")
    assert folder == f"{tmp_path}/{RUN}"
    assert name.startswith("12-")
    assert len(name) == 19
    assert files.size(path) == len(WHOLE)
