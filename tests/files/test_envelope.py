"""Whatever happens to a file on its way: it is the same, or it is refused in one sentence; forgers meet a signature."""

import hashlib
import importlib
import json
import operator
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats import heads
from privstats.contrib.personal import Personal
from privstats.errors import DataError, ReleaseError
from privstats.files.envelope import FORMATS, Content, full_content, is_signed_by, sign_beside, signature_path
from privstats.heads.file_formats import HEAD_FORMATS
from privstats.heads.persistence import FORMAT as HEADS
from privstats.schema.public_values import Published, Values
from privstats.schema.published_file import FORMAT as PUBLISHED
from tests.without import STATED, needing

PACKAGE = Path(ps.__file__).parent
OLD = Path(__file__).parents[1] / "vectors"
SIGNER = bytes(range(32))
VERIFIER = Ed25519PrivateKey.from_private_bytes(SIGNER).public_key().public_bytes_raw()


def a_release():
    return ps.Release.load(OLD / "release-3.safetensors")


def a_head():
    return heads.LDA().fit_release(a_release())


def a_personal_head():
    head = a_head()
    return Personal(head, offset=True, pull=1.0).fit(np.eye(3), head.classes_[[0, 1, 0]])


def published_values():
    values = {"W": Values(np.array([[3, -4], [0, 7]]), 2), "c": Values(np.array(5), -1)}
    return Published.of(values, after=b"\5" * 32)


def same_heads(one, other):
    known = (one.get_params(), one.provenance_) == (other.get_params(), other.provenance_)
    return known and all(
        np.array_equal(value, other.rule_.arrays()[name]) for name, value in one.rule_.arrays().items()
    )


def same_personal_heads(one, other):
    return same_heads(one.head, other.head) and np.array_equal(one._scores(np.eye(3)), other._scores(np.eye(3)))


def same_values(one, other):
    return one == other and dict(one.read()) == dict(other.read())


@dataclass(frozen=True)
class Sample:
    """A value of a format, what reads its files, and when two are the same."""

    make: Callable[[], Any]
    read: Callable[..., Any]
    same: Callable[[Any, Any], bool]


SAMPLES = {
    "privstats-release": Sample(a_release, ps.Release.load, operator.eq),
    "privstats-head": Sample(a_head, heads.load, same_heads),
    PUBLISHED.name: Sample(published_values, Published.load, same_values),
}
if "privstats-personal-head" in HEAD_FORMATS:
    SAMPLES["privstats-personal-head"] = Sample(a_personal_head, Personal.load, same_personal_heads)


def subject(kind):
    return SAMPLES[kind].make()


def same(kind, one, other):
    return SAMPLES[kind].same(one, other)


def vector(kind, version):
    """The file of a version of a format that was kept when the version was written."""
    return OLD / f"{kind.removeprefix('privstats-')}-{version}.safetensors"


def parts(data):
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, body):
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + body


@pytest.fixture
def written_then(monkeypatch):
    """A release's file names the version of the package that wrote it, and the vectors are 0.1.0's."""
    monkeypatch.setattr("privstats.release_file.__version__", "0.1.0")


def test_every_format_has_a_sample_and_every_version_a_vector():
    """Formats register themselves, so none of them, and no version, can be forgotten here."""
    for path in PACKAGE.rglob("*.py"):
        if "files.envelope import" in path.read_text("utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            importlib.import_module(".".join(parts))
    assert set(FORMATS) == set(SAMPLES)
    wanted = {vector(kind, version) for kind, each in FORMATS.items() for version in each.readers}
    assert wanted == set(OLD.iterdir()) - ({vector("privstats-personal-head", 2)} - wanted if STATED else set())


@pytest.mark.usefixtures("written_then")
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_vector_of_every_version_is_read_and_written_again_as_it_was(kind, tmp_path):
    newest = max(FORMATS[kind].readers)
    for version in FORMATS[kind].readers:
        value = SAMPLES[kind].read(vector(kind, version), VERIFIER if version == newest else None)
        value.save(tmp_path / "again", signer=SIGNER)
        assert same(kind, SAMPLES[kind].read(tmp_path / "again", VERIFIER), value)
    assert parts((tmp_path / "again").read_bytes()) == parts(vector(kind, newest).read_bytes())


def test_a_second_format_of_a_name_is_refused():
    with pytest.raises(DataError, match="'privstats-head' is taken"):
        replace(HEADS)
    assert FORMATS["privstats-head"] is HEADS


@pytest.fixture(params=SAMPLES)
def saved(request, tmp_path):
    """A kind of file, one that was saved, and what was in it."""
    path, value = tmp_path / "file", subject(request.param)
    value.save(path, signer=SIGNER)
    return request.param, path, value


@pytest.mark.parametrize("flip", [1, pytest.param(0x80, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("key", [None, VERIFIER])
def test_every_byte_counts(saved, flip, key):
    kind, path, value = saved
    data, read = path.read_bytes(), 0
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ flip]) + data[position + 1 :])
        try:
            again = SAMPLES[kind].read(path, key)
        except FORMATS[kind].error as error:
            assert "\n" not in str(error)
        else:
            assert same(kind, again, value)
            read += 1
    assert read < len(data) / 4  # what may change is the padding, and without a key the signature


@given(size=st.integers(0, 2000), tail=st.binary(max_size=30))
@settings(deadline=None, max_examples=60)
def test_a_file_that_ends_too_early_or_too_late_is_refused(tmp_path_factory, size, tail):
    path = tmp_path_factory.mktemp("cut") / "file"
    for kind, file in (("privstats-release", "release-3.safetensors"), ("privstats-head", "head-3.safetensors")):
        data = (OLD / file).read_bytes()
        path.write_bytes(data[:size] + tail)
        if data[:size] + tail != data:
            with pytest.raises(FORMATS[kind].error):
                SAMPLES[kind].read(path)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "C64", "U64", "F64", "NONE"])
def test_a_type_of_numbers_that_nobody_expects_is_refused(saved, dtype):
    kind, path, _ = saved
    header, body = parts(path.read_bytes())
    for name, tensor in header.items():
        if name != "__metadata__":
            width = {"BF16": 2, "F8_E4M3": 1}.get(dtype, 8)
            start, end = tensor["data_offsets"]
            same_type = tensor["dtype"] == dtype
            tensor.update(dtype=dtype, shape=[(end - start) // width])
            if same_type:
                tensor["dtype"] = "I64"
    path.write_bytes(joined(header, body))
    with pytest.raises(FORMATS[kind].error):
        SAMPLES[kind].read(path)


@pytest.mark.parametrize("shape", [[1 << 62, 0], [0] * 80, [1 << 40, 1 << 40, 0]])
def test_a_shape_that_no_array_has_is_refused(saved, shape):
    kind, path, _ = saved
    header, _ = parts(path.read_bytes())
    empty = {"dtype": "I64", "shape": shape, "data_offsets": [0, 0]}
    path.write_bytes(joined({"__metadata__": header["__metadata__"], "vector": empty}, b""))
    with pytest.raises(FORMATS[kind].error):
        SAMPLES[kind].read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "another"}, "is not a privstats"),
        ({"version": None}, "is not a privstats"),
        ({"manifest": None}, "is not a privstats"),
        ({"version": "9"}, "format '9' and this privstats reads"),
        ({"version": "01"}, "format '01' and this privstats reads"),
        ({"sha256": None}, "does not match its own checksum"),
        ({"sha256": "é"}, "does not match its own checksum"),
        ({"ed25519": "zz"}, "is not signed by the key you trust"),
        ({"ed25519": None}, "is not signed by the key you trust"),
        ({"ed25519": "00" * 64}, "is not signed by the key you trust"),
    ],
)
def test_a_header_that_was_edited_is_refused_by_name(saved, change, words):
    kind, path, _ = saved
    header, body = parts(path.read_bytes())
    metadata = {**header["__metadata__"], **change}
    header["__metadata__"] = {name: value for name, value in metadata.items() if value is not None}
    path.write_bytes(joined(header, body))
    with pytest.raises(FORMATS[kind].error, match=words):
        SAMPLES[kind].read(path, VERIFIER)


@pytest.mark.parametrize("where", ["header", "manifest"])
def test_a_pit_of_brackets_is_refused(saved, where):
    kind, path, _ = saved
    header, body = parts(path.read_bytes())
    pit = '{"head":"LDA","parameters":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}"
    if where == "manifest":
        tensors = subject("privstats-release").vector if kind == "privstats-release" else np.zeros(1)
        FORMATS[kind].write(path, Content(pit.encode(), {"vector": tensors}))
    else:
        encoded = json.dumps(header).replace("{", '{"pit":' + "[" * 100_000 + "]" * 100_000 + ",", 1).encode()
        path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + body)
    with pytest.raises(FORMATS[kind].error):
        SAMPLES[kind].read(path)


def test_only_a_signature_stops_a_forger(saved):
    kind, path, value = saved
    read, error = SAMPLES[kind].read, FORMATS[kind].error
    assert same(kind, read(path, VERIFIER), value)
    other = Ed25519PrivateKey.generate()
    with pytest.raises(error, match="not signed by the key you trust"):
        read(path, other.public_key())
    value.save(path)
    assert same(kind, read(path), value)
    with pytest.raises(error, match="not signed by the key you trust"):
        read(path, VERIFIER)
    for key in (b"short", "ab" * 32):
        with pytest.raises(error, match="signer must be an Ed25519 private key or its 32 bytes"):
            value.save(path, signer=key)


def test_a_release_of_format_3_is_read_and_its_signature_still_counts():
    release = ps.Release.load(OLD / "release-3.safetensors", signed_by=VERIFIER)
    assert release.plan.digest == "efa20bc635260b26b05eb6b54d1d516d55165dcb5920c862210e12a7ab2a8c81"
    assert release.vector[:4].tolist() == [156382, 144029, -4719, 2245]
    assert release.reproducible


def test_only_the_name_of_the_version_tells_a_release_written_today_from_one_of_0_1_0(tmp_path):
    old = OLD / "release-3.safetensors"
    release = ps.Release.load(old)
    release.save(tmp_path / "r", signer=SIGNER)
    (before, body), (after, again) = parts(old.read_bytes()), parts((tmp_path / "r").read_bytes())
    before, after = (json.loads(each["__metadata__"]["manifest"]) for each in (before, after))
    assert (before.pop("privstats"), after.pop("privstats")) == ("0.1.0", ps.__version__)
    assert (before, body) == (after, again)
    assert ps.Release.load(tmp_path / "r").digest == release.digest


@pytest.mark.usefixtures("written_then")
def test_what_a_release_signs_is_what_format_3_signed(tmp_path):
    """A label of its own first, then the parts with their lengths, as docs/wire/release.md has them."""
    old = (OLD / "release-3.safetensors").read_bytes()
    subject("privstats-release").save(tmp_path / "r", signer=SIGNER)
    (before, body), (after, again) = parts(old), parts((tmp_path / "r").read_bytes())
    before, after = before["__metadata__"], after["__metadata__"]
    assert (body, before["manifest"]) == (again, after["manifest"])
    assert (before["sha256"], before["ed25519"]) == (after["sha256"], after["ed25519"])
    form = f"int64 ({len(body) // 8},)"
    parts_of = [b"privstats-release/3", after["manifest"].encode(), b"vector", form.encode(), body]
    sealed = b"".join(struct.pack("<Q", len(part)) + part for part in parts_of)
    assert after["sha256"] == hashlib.sha256(sealed).hexdigest()
    Ed25519PrivateKey.from_private_bytes(SIGNER).public_key().verify(bytes.fromhex(after["ed25519"]), sealed)


def test_attack_a_signature_of_a_release_is_of_no_other_document_of_its_bytes(tmp_path):
    """Format 1 signed manifest and sums, one after the other, with nothing before or between them."""
    path = tmp_path / "r"
    subject("privstats-release").save(path, signer=SIGNER)
    header, body = parts(path.read_bytes())
    key, metadata = Ed25519PrivateKey.from_private_bytes(SIGNER), header["__metadata__"]
    metadata["ed25519"] = key.sign(metadata["manifest"].encode() + body).hex()
    path.write_bytes(joined(header, body))
    with pytest.raises(ReleaseError, match="is not signed by the key you trust"):
        ps.Release.load(path, VERIFIER)


def test_no_kind_of_file_is_sealed_as_another_is():
    """So no signature of a key over one of them is its signature over the other."""
    labels = set()
    for kind in SAMPLES:
        sealed = FORMATS[kind].readers[max(FORMATS[kind].readers)].sealed(Content(b"{}", {"vector": np.arange(3)}))
        (length,) = struct.unpack("<Q", sealed[:8])
        labels.add(sealed[8 : 8 + length])
    assert len(labels) == len(SAMPLES)
    assert all(label.startswith(b"privstats") for label in labels)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("privstats-release", 1),
        ("privstats-release", 2),
        ("privstats-head", 1),
        ("privstats-head", 2),
        pytest.param("privstats-personal-head", 1, marks=needing("privstats.head_formats:privstats-personal-head")),
    ],
)
def test_a_version_that_is_no_longer_read_is_refused_by_name_whatever_else_the_file_says(kind, version, tmp_path):
    path = tmp_path / "file"
    subject(kind).save(path, signer=SIGNER)
    header, body = parts(path.read_bytes())
    header["__metadata__"]["version"] = str(version)
    for lacking in ((), ("sha256",), ("sha256", "ed25519")):
        for name in lacking:
            header["__metadata__"].pop(name, None)
        path.write_bytes(joined(header, body))
        words = f"{FORMATS[kind].noun} format {version}.*, which is no longer read"
        with pytest.raises(FORMATS[kind].error, match=words):
            SAMPLES[kind].read(path)


def test_a_head_of_no_known_origin_says_so_after_a_file_too(tmp_path):
    head = a_head()
    head.provenance_ = heads.Provenance()
    head.save(tmp_path / "h")
    assert heads.load(tmp_path / "h").provenance_.exact is None
    assert heads.load(vector("privstats-head", 3)).provenance_.exact is False


@pytest.mark.ci
@given(
    one=st.dictionaries(st.text(max_size=3), st.lists(st.integers(0, 127), max_size=3), max_size=3),
    other=st.dictionaries(st.text(max_size=3), st.lists(st.integers(0, 127), max_size=3), max_size=3),
    manifests=st.tuples(st.binary(max_size=4), st.binary(max_size=4)),
)
def test_different_contents_are_sealed_differently(one, other, manifests):
    def sealed(manifest, tensors, dtype):
        return full_content(b"x")(Content(manifest, {name: np.array(v, dtype) for name, v in tensors.items()}))

    first, second = sealed(manifests[0], one, np.uint8), sealed(manifests[1], other, np.uint8)
    assert (first == second) == ((manifests[0], one) == (manifests[1], other))
    assert first == sealed(manifests[0], dict(reversed(one.items())), np.uint8)
    if one:
        assert first != sealed(manifests[0], one, np.int8)


ULM, BONN = ps.secagg.Identity.generate(os.urandom), ps.secagg.Identity.generate(os.urandom)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(b"<p>a page</p>")
    sign_beside(path, path.read_bytes(), ULM, ps.DataError)
    return path


def test_a_signature_is_of_its_key_and_of_the_bytes(page):
    assert is_signed_by(page, ULM.public, ps.DataError)
    assert not is_signed_by(page, BONN.public, ps.DataError)
    page.write_bytes(b"<p>another</p>")
    assert not is_signed_by(page, ULM.public, ps.DataError)


@pytest.mark.parametrize(("field", "value"), [("sha256", "0" * 64), ("sha256", None), ("ed25519", "0" * 128)])
def test_no_field_of_a_signature_may_say_something_else(page, field, value):
    found = json.loads(signature_path(page).read_text())
    signature_path(page).write_text(json.dumps({**found, field: value}))
    assert not is_signed_by(page, ULM.public, ps.DataError)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "privstats-signature", "version": 2}', "[" * 4000])
def test_what_is_no_signature_is_one_sentence(page, text):
    signature_path(page).write_text(text)
    with pytest.raises(ps.DataError, match=r"report\.html\.sig is no signature of version 1"):
        is_signed_by(page, ULM.public, ps.DataError)


def test_a_file_of_an_older_format_is_refused_with_the_version_that_wrote_it(tmp_path):
    path = tmp_path / "r"
    subject("privstats-release").save(path)
    header, body = parts(path.read_bytes())
    metadata = header["__metadata__"]
    metadata["version"] = "2"
    for manifest, named in (
        ('{"privstats":"0.1.0"}', r" \(version 0\.1\.0 wrote it\)"),
        ('{"privstats":"0.1\\u001b[2J"}', r" \(version 0\.1\\x1b\[2J wrote it\)"),
        ('{"privstats":1}', ""),
        ("{}", ""),
        ("no JSON", ""),
    ):
        metadata["manifest"] = manifest
        path.write_bytes(joined(header, body))
        with pytest.raises(ReleaseError, match=f"format 2{named}, which is no longer read"):
            ps.Release.load(path)
