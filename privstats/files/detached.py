"""A signature beside a file that people read: a page, an entry of a registry; the file itself stays as it is.

The same keys and checks as in the envelope of releases, with a name of its own in what is signed, so that a signature
on a document is none on a release. Above the keys.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from shlex import quote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from privstats.errors import PrivstatsError
from privstats.files.atomic import atomic_write, read_whole
from privstats.files.jsonable import json_text
from privstats.files.signing import Signer, Verifier, public_key, signing_key

__all__ = ["is_signed_by", "sign_beside", "signature_path"]

_FORMAT = "privstats-signature"
_VERSION = 1
_DOMAIN = b"privstats/document/1"
_MOST_BYTES = 1 << 12


def signature_path(path: str | os.PathLike[str]) -> Path:
    """Where the signature of a document lies: ``report.html.sig`` beside ``report.html``.

    Example:
        >>> from privstats.files.detached import signature_path
        >>> signature_path("page/report.html").name
        'report.html.sig'
    """
    return Path(f"{os.fspath(path)}.sig")


def sign_beside(path: str | os.PathLike[str], data: bytes, signer: Signer, error: type[PrivstatsError]) -> Path:
    """Write the signature of a document's bytes beside it.

    Args:
        path: the document.
        data: its bytes.
        signer: an ``Identity``, an Ed25519 private key, or its 32 bytes.
        error: what is raised where it is none of these.

    Returns:
        Where the signature is.

    Example:
        >>> from privstats.files.detached import is_signed_by, sign_beside
        >>> ulm = ps.secagg.Identity.generate(os.urandom)
        >>> _ = open("report.html", "w").write("<p>a page</p>")
        >>> sign_beside("report.html", b"<p>a page</p>", ulm, ps.DataError).name
        'report.html.sig'
        >>> is_signed_by("report.html", ulm.public, ps.DataError)
        True
    """
    key = signing_key(signer, "signer", error)
    found = {"format": _FORMAT, "version": _VERSION, "sha256": hashlib.sha256(data).hexdigest()}
    place = signature_path(path)
    atomic_write(place, json_text({**found, "ed25519": key.sign(_sealed(data)).hex()}).encode(), shared=True)
    return place


def is_signed_by(path: str | os.PathLike[str], signed_by: Verifier, error: type[PrivstatsError]) -> bool:
    """Whether the signature beside a document is of this key and of these bytes.

    Args:
        path: the document.
        signed_by: the public key, in any form that ``signing`` reads.
        error: what is raised.

    Raises:
        PrivstatsError: the given kind: a file is missing, or what lies beside the document is no signature.
    """
    public = public_key(signed_by, "signed_by", error)
    data, place = read_whole(path, error, "privstats report"), signature_path(path)
    if not place.exists():
        raise error(
            f"cannot read {place}: no signature lies beside {path}; who made it writes one with "
            f"`privstats identity sign {quote(str(path))} --key IDENTITY.PEM`"
        )
    beside = read_whole(place, error, "privstats report --sign")
    try:
        found = json.loads(beside[:_MOST_BYTES])
        if (found["format"], found["version"]) != (_FORMAT, _VERSION):
            raise ValueError
        signature, digest = bytes.fromhex(found["ed25519"]), str(found["sha256"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise error(f"{place} is no signature of version {_VERSION}; give the file that --sign wrote") from None
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _sealed(data))
    except InvalidSignature:
        return False
    return digest == hashlib.sha256(data).hexdigest()


def _sealed(data: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in (_DOMAIN, data))
