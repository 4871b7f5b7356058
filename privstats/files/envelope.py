"""The envelope of files that parties exchange: format, version, manifest, checksum, signature.

A file is safetensors with the envelope in its header. The module is independent of releases and heads: a format defines
by version what its checksum covers and how it is read.

Releases and heads travel in one envelope. A format says by version what its checksum covers and how it is read, so a
new version is a new row, and one that a release of privstats wrote keeps its reader. Format 1 of releases signs
manifest and vector alone; format 3 of heads covers names, types and shapes of all tensors, under a name of its own,
so no signature on one kind of file is valid for another.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from privstats.errors import DataError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole
from privstats.files.packing import little_endian
from privstats.files.signing import Signer, Verifier, public_key, signing_key

__all__ = [
    "FORMATS",
    "Content",
    "Format",
    "PathLike",
    "Version",
    "safetensors_metadata",
    "whole_content",
]

T = TypeVar("T")
PathLike: TypeAlias = str | os.PathLike[str]

_FORMATS: dict[str, Format[Any]] = {}
FORMATS: Mapping[str, Format[Any]] = MappingProxyType(_FORMATS)
"""The formats of the modules that are loaded, by their name in files."""
_MOST_HEADER = 16 << 20


@dataclass(frozen=True)
class Content:
    """The content of an envelope: a JSON manifest, as bytes, and named arrays.

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
    """One version of a format.

    Attributes:
        read: from the content, and the path for its messages, to the value; raises the format's error.
        sealed: the bytes that checksum and signature cover.

    Example:
        >>> from privstats.files.envelope import Content
        >>> from privstats.release_file import FORMAT
        >>> version = FORMAT.readers[1]
        >>> version.sealed(Content(manifest=b"{}", tensors={"vector": np.arange(2)}))[:2]  # the manifest first
        b'{}'
    """

    read: Callable[[Content, PathLike], T]
    sealed: Callable[[Content], bytes]


@dataclass(frozen=True)
class Format(Generic[T]):
    """A kind of file; it registers itself in :data:`FORMATS`.

    Attributes:
        name: as files hold it.
        noun: what it holds, for messages.
        writer: the call that writes such files, for the remedy.
        error: the class of error raised where a file or a key is refused.
        readers: every version that a release of privstats wrote; the highest is written.

    Raises:
        DataError: another format has the name.

    Example:
        >>> from privstats.release_file import FORMAT
        >>> FORMAT.name, FORMAT.writer, max(FORMAT.readers)
        ('privstats-release', 'Release.save', 1)
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
        """Write a file whole, in the newest version; an existing one is replaced atomically.

        Args:
            path: where to.
            content: manifest and tensors.
            signer: an ``Identity``, an Ed25519 private key, or its 32 bytes.

        Raises:
            PrivstatsError: the format's error where the signer is no key; or the file cannot be written.
        """
        atomic_write(path, self.encode(content, signer))

    def encode(self, content: Content, signer: Signer | None = None) -> bytes:
        """The bytes of the file that :meth:`write` writes.

        Raises:
            PrivstatsError: the format's error where the signer is no key.
        """
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
        """Read a file that :meth:`write` wrote, in any known version, and check all that can be checked.

        The checksum catches corruption and careless edits; only a signature stops a forger.

        Args:
            path: the file.
            signed_by: the Ed25519 public key that must have signed it, in any form that ``signing`` reads.

        Raises:
            PrivstatsError: the format's error, for a file that is foreign, from another version, damaged, wrongly
                signed or inconsistent in itself; or where ``signed_by`` is no key.
        """
        key = None if signed_by is None else public_key(signed_by, "signed_by", self.error)
        return self._decoded(read_whole(path, self.error, self.writer), path, key)

    def decode(self, data: bytes, name: str) -> T:
        """What :meth:`read` gives of a file with these bytes; ``name`` stands for it in messages.

        Raises:
            PrivstatsError: the format's error, as for :meth:`read`.
        """
        return self._decoded(data, name, None)

    def checksum(self, content: Content) -> str:
        """SHA-256 of what the newest version seals, in hex: the same for equal contents, as its files have it."""
        return hashlib.sha256(self.readers[max(self.readers)].sealed(content)).hexdigest()

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
                f"{path} has {self.noun} format {header['version']}, from before the first release of privstats, and "
                f"is no longer read; write it anew with {self.writer}"
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
        if key is None:
            return
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(bytes.fromhex(header.get("ed25519", "")), sealed)
        except (InvalidSignature, ValueError):
            raise self.error(f"{path} is not signed by the key you trust; ask its maker for a signed copy") from None


def whole_content(domain: bytes) -> Callable[[Content], bytes]:
    """Seals the manifest and every tensor with its name, dtype and shape, under a name of its own.

    Args:
        domain: format and version, so that a signature on one is not valid for another.

    Example:
        >>> from privstats.files.envelope import Content, whole_content
        >>> seal = whole_content(b"privstats/example/1")
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


def safetensors_metadata(data: bytes) -> dict[str, str]:
    """The metadata in the header of a safetensors file, or nothing where the bytes are no such file.

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
        return msgspec.json.decode(data[8 : 8 + length], type=_Header).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
