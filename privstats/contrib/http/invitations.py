"""Codes and links of invited people, and the digest by which their page knows its study.

Other languages repeat these functions (``tests/contrib/http/vectors``).
"""

from __future__ import annotations

import os
import re
from base64 import b32decode, b32encode
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import compare_digest

from privstats import domains
from privstats.errors import LocalProtocolError
from privstats.extend.support import Entropy
from privstats.secagg import Identity
from privstats.secagg.keys import draw

CODE_BYTES = 16

_VERSION = "1"
_LETTERS, _CHECK_LETTERS = 26, 4
_MOST_CHARACTERS = 4096
_LARGEST_INDEX = (1 << 32) - 1
_LONGEST_RUN = 255
_DIGEST_BYTES = 32
_FRAGMENT = re.compile(r"(\d{1,10})\.([A-Z2-7]{26})\.([A-Z2-7]{4})", re.ASCII)


def draw_code(entropy: Entropy = os.urandom) -> bytes:
    """Generate a code of 16 bytes. Its holder can answer for that person, once a run, and read nothing."""
    return draw(entropy, CODE_BYTES)


def identity_of(code: bytes) -> Identity:
    """Return a code's identity: Ed25519 from HKDF-SHA256(code, no salt, "privstats/devices/1/identity"), 32 bytes."""
    if not isinstance(code, bytes) or len(code) != CODE_BYTES:
        raise LocalProtocolError(f"a code has {CODE_BYTES} bytes: draw_code() draws one")
    return Identity.derived(code, domains.DEVICE_IDENTITY)


@dataclass(frozen=True)
class Invitation:
    """One person's roster index and code; the repr shows neither.

    Args:
        index: 0 to 2^32 - 1.
        code: 16 bytes.

    Example:
        >>> from privstats.contrib.http.invitations import Invitation
        >>> Invitation(7, bytes(16)).fragment
        '1.7.AAAAAAAAAAAAAAAAAAAAAAAAAA.DKCA'
        >>> Invitation.read("1.7.aaaaaa-aaaaaaaaaa-aaaaaaaaaa.dkca") == Invitation(7, bytes(16))
        True
    """

    index: int = field(repr=False)
    code: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if type(self.index) is not int or not 0 <= self.index <= _LARGEST_INDEX:
            raise LocalProtocolError(f"an invitation's index is an integer from 0 to {_LARGEST_INDEX}")
        if not isinstance(self.code, bytes) or len(self.code) != CODE_BYTES:
            raise LocalProtocolError(f"a code has {CODE_BYTES} bytes: draw_code() draws one")

    @property
    def letters(self) -> str:
        """The code in base32 (RFC 4648), 26 letters without padding."""
        return b32encode(self.code).decode().rstrip("=")

    @property
    def fragment(self) -> str:
        """Text after the ``#`` of the link: ``1.<index>.<code>.<check>``.

        The check, 20 bits of a SHA-256, detects a mistyped letter, not an attacker.
        """
        text = f"{_VERSION}.{self.index}.{self.letters}"
        return f"{text}.{_check_of(text)}"

    @property
    def identity(self) -> Identity:
        """The code's signing key."""
        return identity_of(self.code)

    def link(self, page: str) -> str:
        """Return the address to send; a browser omits the text after ``#`` from every request and Referer.

        Args:
            page: an https address (http on this machine alone), without a fragment or a query.
        """
        if not re.fullmatch(r"(https://|http://(localhost|127\.0\.0\.1)[:/])[^\s#?]+", page):
            raise LocalProtocolError(
                "the page's address must begin with https:// and have neither # nor ?: a code goes behind the #, and a "
                "query would be in logs"
            )
        return f"{page}#{self.fragment}"

    @classmethod
    def read(cls, text: str) -> Invitation:
        """Return the invitation of a link, a fragment, or typed text, ignoring case, blanks and hyphens.

        Raises:
            LocalProtocolError: no invitation; the error shows nothing of the text.
        """
        if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
            raise _unread()
        typed = re.sub(r"[\s-]", "", text.rpartition("#")[2])
        plain = typed.upper() if typed.isascii() else ""  # the capital of a dotless i is an I
        version, _, rest = plain.partition(".")
        match = _FRAGMENT.fullmatch(rest) if version == _VERSION else None
        if match is None or (match[1][0] == "0" and match[1] != "0") or int(match[1]) > _LARGEST_INDEX:
            raise _unread()
        invitation = cls(int(match[1]), b32decode(match[2] + "=" * 6))
        if not compare_digest(invitation.fragment, plain):  # also a last letter with bits to spare
            raise _unread()
        return invitation


def study_of(run: bytes, plan: bytes, roster: bytes) -> str:
    """Return the page's digest: SHA-256, in hex, over the run's name and the digests of plan and roster.

    A page with this digest accepts no other plan, panel or roster from a link or a leader.

    Args:
        run: the roster's run, 1 to 255 bytes.
        plan, roster: their digests, 32 bytes each.
    """
    if not 1 <= len(run) <= _LONGEST_RUN:
        raise LocalProtocolError(f"a run's name has 1 to {_LONGEST_RUN} bytes")
    if len(plan) != _DIGEST_BYTES or len(roster) != _DIGEST_BYTES:
        raise LocalProtocolError(f"the digests of plan and roster have {_DIGEST_BYTES} bytes each")
    return sha256(domains.DEVICE_STUDY + bytes([len(run)]) + run + plan + roster).hexdigest()


def _check_of(text: str) -> str:
    return b32encode(sha256(domains.DEVICE_LINK + text.encode()).digest()).decode()[:_CHECK_LETTERS]


def _unread() -> LocalProtocolError:
    return LocalProtocolError(
        "this is no invitation, or a letter of it is wrong: compare it with the message that you were sent"
    )
