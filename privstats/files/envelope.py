"""Read and write the envelope of files that parties exchange, and detached signatures.

A file is safetensors with the envelope, checksum and signature in its header. Each version of a format defines what its
checksum covers. Each kind is sealed under a separate name, so no signature on one kind is valid for another.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Generic, TypeAlias, TypeVar

import msgspec
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from privstats import domains
from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import MOST_SIGNED, atomic_write, opened, read_bounded, read_open
from privstats.files.decoding import from_json
from privstats.files.packing import little_endian
from privstats.files.signing import Signer, Verifier, public_key, signing_key, verify
from privstats.files.text import json_text
from privstats.printable import printable
from privstats.printable.command_line import command_line

T = TypeVar("T")
PathLike: TypeAlias = str | os.PathLike[str]

_FORMATS: dict[str, Format[Any]] = {}
FORMATS: Mapping[str, Format[Any]] = MappingProxyType(_FORMATS)
"""The formats of the modules that are loaded, by their name in files."""
_MOST_HEADER, _START = 16 << 20, 8
_MOST_VERSION = 32
MOST_ARRAYS = 4 << 30
"""Maximum bytes of one file's arrays, whatever its manifest states."""
MOST_UNSTATED = 64 << 20
"""Maximum bytes of the arrays where the manifest cannot be read; the reader then names the cause."""


@dataclass(frozen=True)
class Content:
    """An envelope's content: a JSON manifest, as bytes, and named arrays.

    Example:
        >>> from privstats.files.envelope import Content
        >>> content = Content(manifest=b"{}", tensors={"x": np.arange(3)})
        >>> content.tensors["x"].tolist()
        [0, 1, 2]
    """

    manifest: bytes
    tensors: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Version(Generic[T]):
    """One version of a format: ``read`` maps content to the value, ``sealed`` to the bytes that a signature covers.

    ``most`` maps a manifest to the maximum bytes of its arrays, so that a file is refused before its arrays are read.

    Example:
        >>> from privstats.files.envelope import Content
        >>> from privstats.release_file import FORMAT
        >>> version = FORMAT.readers[3]
        >>> version.sealed(Content(manifest=b"{}", tensors={"vector": np.arange(2)}))[8:27]  # the label first
        b'privstats-release/3'
    """

    read: Callable[[Content, PathLike], T]
    sealed: Callable[[Content], bytes]
    most: Callable[[bytes], int] = lambda _: MOST_ARRAYS


@dataclass(frozen=True)
class Format(Generic[T]):
    """A kind of file; it registers itself in :data:`FORMATS`.

    Attributes:
        noun: what it holds, for messages.
        writer: the call that writes such files.
        readers: every published version; the highest is written.

    Example:
        >>> from privstats.release_file import FORMAT
        >>> FORMAT.name, FORMAT.writer, max(FORMAT.readers)
        ('privstats-release', 'Release.save', 3)
    """

    name: str
    noun: str
    writer: str
    error: type[PrivstatsError]
    readers: Mapping[int, Version[T]]

    def __post_init__(self) -> None:
        if self.name in _FORMATS:
            raise DataError(f"the file format {self.name!r} is taken; give the second another name")
        _FORMATS[self.name] = self

    def write(self, path: PathLike, content: Content, signer: Signer | None = None) -> None:
        """Write a file in the newest version; an existing one is replaced atomically.

        Args:
            signer: an ``Identity``, an Ed25519 private key, or its 32 bytes.
        """
        atomic_write(path, self.encode(content, signer))

    def encode(self, content: Content, signer: Signer | None = None) -> bytes:
        """Return the bytes that :meth:`write` writes."""
        key = None if signer is None else signing_key(signer, "signer", self.error)
        version = max(self.readers)
        header = {
            "format": self.name,
            "version": str(version),
            "manifest": content.manifest.decode(),
            "sha256": self.checksum(content),
        }
        if key is not None:
            header["ed25519"] = key.sign(self.readers[version].sealed(content)).hex()
        return save_tensors(dict(content.tensors), metadata=header)

    def read(self, path: PathLike, signed_by: Verifier | None = None) -> T:
        """Read a file in any known version, and check all that can be checked.

        Args:
            signed_by: the required signer's public key, in any form that ``signing`` reads.

        Raises:
            PrivstatsError: the file is foreign, from another version, damaged, wrongly signed or inconsistent.
        """
        key = None if signed_by is None else public_key(signed_by, "signed_by", self.error)
        with opened(path, self.error) as file:
            data = read_open(file, path, self.error, self.writer, self._most(_header(file), path))
        return self._decoded(data, path, key)

    def decode(self, data: bytes, name: str) -> T:
        """Decode a file's bytes as :meth:`read` does; messages call the file ``name``."""
        return self._decoded(data, name, None)

    def checksum(self, content: Content) -> str:
        """Return SHA-256 of what the newest version seals, in hex."""
        return hashlib.sha256(self.readers[max(self.readers)].sealed(content)).hexdigest()

    def _most(self, start: bytes, path: PathLike) -> int:
        """Return the maximum size of a file with this header."""
        header = safetensors_metadata(start)
        version = self.readers[self._version(header, path)]
        return len(start) + min(version.most(header["manifest"].encode()), MOST_ARRAYS)

    def _decoded(self, data: bytes, path: PathLike, key: bytes | None) -> T:
        header = safetensors_metadata(data)
        version = self._version(header, path)
        try:
            content = Content(header["manifest"].encode(), load_tensors(data))
        except (SafetensorError, KeyError, ValueError, OverflowError):  # numpy lacks the type or shape
            raise self.error(f"{path} is damaged: its tensors cannot be read; fetch it again") from None
        self._check(version, header, content, key, path)
        return self.readers[version].read(content, path)

    def _version(self, header: Mapping[str, str], path: PathLike) -> int:
        known = {str(version): version for version in self.readers}
        if header.get("format") != self.name or not {"version", "manifest"} <= set(header):
            raise self.error(f"{path} is not a privstats {self.noun}; give a file written by {self.writer}")
        if header["version"] in map(str, range(1, min(self.readers))):
            raise self.error(
                f"{path} has {self.noun} format {header['version']}{_named_writer(header['manifest'])}, which is no "
                f"longer read: read it with the version that wrote it, or make a new one with {self.writer}"
            )
        if header["version"] not in known:
            raise self.error(
                f"{path} has {self.noun} format {header['version'][:20]!r} and this privstats reads "
                f"{' and '.join(known)}; use the version that wrote it"
            )
        return known[header["version"]]

    def _check(
        self, version: int, header: Mapping[str, str], content: Content, key: bytes | None, path: PathLike
    ) -> None:
        sealed = self.readers[version].sealed(content)
        checksum = hashlib.sha256(sealed).hexdigest()
        if not hmac.compare_digest(header.get("sha256", "").encode(), checksum.encode()):
            raise self.error(f"{path} does not match its own checksum: it was damaged or edited; fetch it again")
        if key is not None and not verify(key, _hex(header.get("ed25519", "")), sealed):
            raise self.error(f"{path} is not signed by the key you trust; ask its maker for a signed copy")


class _Writer(msgspec.Struct):
    privstats: str = ""


def _named_writer(manifest: str) -> str:
    """Return which version a manifest states as its writer, for an error; empty if it states none."""
    try:
        version = from_json(manifest, _Writer).privstats
    except msgspec.DecodeError:
        return ""
    return f" (version {printable(version)[:_MOST_VERSION]} wrote it)" if version else ""


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def full_content(domain: bytes) -> Callable[[Content], bytes]:
    """Return a function that seals manifest and tensors under ``domain``, which no other kind of file uses.

    Example:
        >>> from privstats.files.envelope import Content, full_content
        >>> seal = full_content(b"privstats/example/1")
        >>> one, two = (seal(Content(b"{}", {"x": np.array([value])})) for value in (1, 2))
        >>> one == two  # a signature over one does not fit the other
        False
    """

    def sealed(content: Content) -> bytes:
        parts = [domain, content.manifest]
        for name, tensor in sorted(content.tensors.items()):
            parts += [name.encode(), f"{tensor.dtype.name} {tensor.shape}".encode(), little_endian(tensor)]
        return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

    return sealed


class _Header(msgspec.Struct):
    metadata: dict[str, str] = msgspec.field(name="__metadata__")


def _header(file: BinaryIO) -> bytes:
    """Return the beginning of a safetensors file, up to its arrays."""
    start = file.read(_START)
    return start + file.read(min(int.from_bytes(start, "little"), _MOST_HEADER))


def file_metadata(path: PathLike, error: type[PrivstatsError]) -> dict[str, str]:
    """Return the metadata in the header of a safetensors file, whose arrays are not read; empty for other files.

    Example:
        >>> from privstats.files.envelope import file_metadata
        >>> _ = open("notes.txt", "w").write("no tensors")
        >>> file_metadata("notes.txt", ps.ReleaseError)
        {}
    """
    with opened(path, error) as file:
        return safetensors_metadata(_header(file))


def safetensors_metadata(data: bytes) -> dict[str, str]:
    """Return the metadata in a safetensors header; empty for other bytes.

    Example:
        >>> from privstats.files.envelope import safetensors_metadata
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> ps.Release.exact(schema, ps.measure(schema, [[0.5, 0.0]], [0])).save("study.release")
        >>> safetensors_metadata(open("study.release", "rb").read())["format"]
        'privstats-release'
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MOST_HEADER):
        return {}
    try:
        return from_json(data[8 : 8 + length], _Header).metadata
    except msgspec.DecodeError:
        return {}


_VERSION = 1
_MOST_BYTES = 1 << 12


def signature_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a document's signature.

    Example:
        >>> from privstats.files.envelope import signature_path
        >>> signature_path("page/report.html").name
        'report.html.sig'
    """
    return Path(f"{os.fspath(path)}.sig")


def sign_beside(path: str | os.PathLike[str], data: bytes, signer: Signer, error: type[PrivstatsError]) -> Path:
    """Write a document's signature into a file next to it, and return its path.

    Args:
        signer: as for :meth:`Format.write`; otherwise ``error`` is raised.

    Example:
        >>> from privstats.files.envelope import is_signed_by, sign_beside
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> _ = open("report.html", "w").write("<p>a page</p>")
        >>> sign_beside("report.html", b"<p>a page</p>", ulm, ps.DataError).name
        'report.html.sig'
        >>> is_signed_by("report.html", ulm.public, ps.DataError)
        True
    """
    key = signing_key(signer, "signer", error)
    document = {"format": domains.SIGNATURE_FILE, "version": _VERSION, "sha256": hashlib.sha256(data).hexdigest()}
    place = signature_path(path)
    atomic_write(place, json_text({**document, "ed25519": key.sign(_sealed(data)).hex()}).encode(), shared=True)
    return place


def is_signed_by(path: str | os.PathLike[str], signed_by: Verifier, error: type[PrivstatsError]) -> bool:
    """Return whether the signature next to a document is this key's, over the document's bytes.

    Example:
        >>> from pathlib import Path
        >>> from privstats.errors import DataError
        >>> from privstats.files.envelope import is_signed_by, sign_beside
        >>> key = ps.secagg.Identity.generate(os.urandom)
        >>> _ = Path("page.html").write_bytes(b"what was promised")
        >>> _ = sign_beside("page.html", b"what was promised", key, DataError)
        >>> is_signed_by("page.html", key.public, DataError)
        True
    """
    public = public_key(signed_by, "signed_by", error)
    data, place = read_bounded(path, error, "privstats report", MOST_SIGNED), signature_path(path)
    if not place.exists():
        raise error(
            f"cannot read {place}: no signature is stored next to {path}; who made it writes one with "
            f"`{command_line('identity', 'sign', path, options={'--key': 'IDENTITY.PEM'})}`"
        )
    beside = read_bounded(place, error, "privstats report --sign")
    try:
        document = json.loads(beside[:_MOST_BYTES])
        if (document["format"], document["version"]) != (domains.SIGNATURE_FILE, _VERSION):
            raise ValueError
        signature, digest = bytes.fromhex(document["ed25519"]), str(document["sha256"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise error(f"{place} is no signature of version {_VERSION}; give the file that --sign wrote") from None
    return verify(public, signature, _sealed(data)) and digest == hashlib.sha256(data).hexdigest()


def _sealed(data: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in (domains.DOCUMENT, data))
