"""The metadata in the header of a safetensors file, read within bounds and without the file's tensors."""

from __future__ import annotations

import msgspec

__all__ = ["safetensors_metadata"]

_MOST_HEADER = 16 << 20


class _Header(msgspec.Struct):
    metadata: dict[str, str] = msgspec.field(name="__metadata__")


def safetensors_metadata(data: bytes) -> dict[str, str]:
    """The metadata in the header of a safetensors file, or nothing where the bytes are no such file.

    Example:
        >>> from privstats.files.safetensors_header import safetensors_metadata
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
