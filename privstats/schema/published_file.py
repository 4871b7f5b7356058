"""Read and write files of published values, in two versions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import PlanError
from privstats.files.decoding import from_json
from privstats.files.envelope import Content, Format, PathLike, Version, full_content
from privstats.files.packing import pack_into, packed_bytes, unpack
from privstats.files.signing import Verifier
from privstats.schema.checks import MAX_ENTRIES

if TYPE_CHECKING:
    from privstats.schema.public_values import Published, Values

Arrays: TypeAlias = Mapping[str, tuple[NDArray[Any], int]]
"""Each value's integers and exponent, by name, for ``Values``."""

# An entry of +-2**53 needs 55 bits, with its sign.
_MAX_BITS = 55
_MAX_AXES = 8


def read(make: Callable[[str, Arrays], Published], path: PathLike, signed_by: Verifier | None) -> Published:
    """Read a file and pass its values to ``make``.

    Raises:
        PlanError: no such file, damaged, wrongly signed, or inconsistent.
    """
    after, arrays = FORMAT.read(path, signed_by)
    try:
        return make(after, arrays)
    except PlanError as error:
        raise _not_together(path, error) from None


def content_of(published: Published) -> Content:
    """Return values as file content."""
    packed = {name: _Packed.of(value) for name, value in published.read().items()}
    manifest = _Manifest(published.after, {name: form for name, (form, _) in packed.items()})
    return Content(
        msgspec.json.encode(manifest, order="deterministic"), {name: data for name, (_, data) in packed.items()}
    )


class _Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value: entries of ``bits`` bits, offset by half their range; a symmetric matrix's lower triangle alone."""

    exponent: int
    shape: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=MAX_ENTRIES)], ...], msgspec.Meta(max_length=_MAX_AXES)]
    bits: Annotated[int, msgspec.Meta(ge=1, le=_MAX_BITS)]
    symmetric: bool

    @classmethod
    def of(cls, value: Values) -> tuple[_Packed, NDArray[np.uint8]]:
        integers = value.integers
        symmetric = (
            integers.ndim == 2 and integers.shape[0] == integers.shape[1] and np.array_equal(integers, integers.T)
        )
        maximum = max(abs(int(integers.min(initial=0))), abs(int(integers.max(initial=0))))
        form = cls(value.exponent, integers.shape, maximum.bit_length() + 1, symmetric)
        entries = integers[form._lower] if symmetric else integers.reshape(-1)
        data = np.empty(packed_bytes(entries.size, form.bits), np.uint8)
        pack_into((entries + form._offset).astype(np.uint64), form.bits, data)
        return form, data

    def value(self, data: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
        size = math.prod(self.shape)
        if self.symmetric:
            if len(self.shape) != 2 or self.shape[0] != self.shape[1]:
                raise PlanError("a symmetric array must be square; write the file again")
            size = (size + self.shape[0]) // 2
        if data.dtype != np.uint8 or data.shape != (packed_bytes(size, self.bits),):
            raise PlanError("an array has another number of bytes than declared; write the file again")
        entries = unpack(np.ascontiguousarray(data), size, self.bits).astype(np.int64) - self._offset
        if not self.symmetric:
            return entries.reshape(self.shape), self.exponent
        integers = np.empty(self.shape, np.int64)
        integers[self._lower] = entries
        integers.T[self._lower] = entries
        return integers, self.exponent

    @property
    def room(self) -> int:
        """Number of entries; an empty axis counts as one."""
        return math.prod(max(each, 1) for each in self.shape)

    @property
    def _lower(self) -> NDArray[np.bool_]:
        return np.tri(self.shape[0], dtype=np.bool_)

    @property
    def _offset(self) -> int:
        return 1 << (self.bits - 1)


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: str
    values: dict[str, _Packed]


class _ManifestOf1(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: str
    exponents: dict[str, int]


_Opened: TypeAlias = tuple[str, Arrays]


def _opened(content: Content) -> _Opened:
    manifest = from_json(content.manifest, _Manifest)
    _require_named(manifest.values, content)
    if sum(form.room for form in manifest.values.values()) > MAX_ENTRIES:
        raise PlanError("its arrays have over 2**26 entries; publish fewer")
    return manifest.after, {name: form.value(content.tensors[name]) for name, form in manifest.values.items()}


def _opened_1(content: Content) -> _Opened:
    """Read version 1: every entry in 8 bytes."""
    manifest = from_json(content.manifest, _ManifestOf1)
    _require_named(manifest.exponents, content)
    return manifest.after, {name: (content.tensors[name], each) for name, each in manifest.exponents.items()}


def _require_named(named: Mapping[str, object], content: Content) -> None:
    if set(named) != set(content.tensors):
        raise PlanError("its manifest names other arrays; write the file again")


def _reader(opened: Callable[[Content], _Opened]) -> Callable[[Content, PathLike], _Opened]:
    def read(content: Content, path: PathLike) -> _Opened:
        try:
            return opened(content)
        except (msgspec.DecodeError, PlanError) as error:
            raise _not_together(path, error) from None

    return read


def _most(_: bytes) -> int:
    return MAX_ENTRIES * np.dtype(np.int64).itemsize


def _not_together(path: PathLike, error: Exception) -> PlanError:
    return PlanError(f"{path} holds no consistent published values: {error}")


FORMAT = Format(
    name=domains.PUBLISHED_FILE,
    noun="file of published values",
    writer="Published.save",
    error=PlanError,
    readers={
        1: Version(_reader(_opened_1), full_content(domains.PUBLISHED_FILE_1), _most),
        2: Version(_reader(_opened), full_content(domains.PUBLISHED_FILE_2), _most),
    },
)
"""Files of published values."""
