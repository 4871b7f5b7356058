"""The cryptography that a plan rests on, and its cryptographic bill of materials (CBOM).

TLS is excluded, because no promise rests on it. Security levels: bits against a computer of today; NIST's category, 1
to 5, against a quantum computer; 0 for a broken algorithm; None where no computer helps or a passphrase decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, TypeAlias

from privstats.course import Course
from privstats.extend.support import optional_dependencies
from privstats.plan import Plan
from privstats.version import __version__

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

Primitive: TypeAlias = Literal[
    "ae", "block-cipher", "drbg", "hash", "kdf", "kem", "key-agree", "other", "signature", "xof"
]  # fmt: skip


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a plan.

    Attributes:
        name: as its standard has it.
        primitive, functions: its kind and uses, in CycloneDX's terms.
        bits: security against a computer of today, or None.
        category: NIST's, against a quantum computer; 0 where it breaks, or None.
    """

    name: str
    primitive: Primitive
    functions: tuple[str, ...]
    bits: int | None
    category: int | None
    use: str


_ENCAPSULATES = ("keygen", "encapsulate", "decapsulate")
_ALWAYS = (
    Algorithm("Ed25519", "signature", ("keygen", "sign", "verify"), 128, 0, "signs messages, rosters and releases"),
    Algorithm("X25519", "key-agree", ("keygen", "keyderive"), 128, 0, "agrees on the keys of one session"),
    Algorithm("ML-KEM-768", "kem", _ENCAPSULATES, 192, 3, "agrees on keys next to X25519"),
    Algorithm("HKDF-SHA256", "kdf", ("keyderive",), 256, 5, "derives keys and mask seeds"),
    Algorithm("AES-256-GCM", "ae", ("encrypt", "decrypt"), 256, 5, "seals messages, and journals on the disk"),
    Algorithm("AES-256-CTR", "block-cipher", ("generate", "encrypt"), 256, 5, "streams of masks"),
    Algorithm("AES-256-CTR-generator", "drbg", ("generate",), 256, 5, "noise, from a seed of the operating system"),
    Algorithm("SHA-256", "hash", ("digest",), 128, 2, "digests of plans, transcripts and releases"),
    Algorithm("scrypt", "kdf", ("keyderive",), None, None, "derives keys from passphrases of identity files"),
    Algorithm("AES-256-CBC", "block-cipher", ("encrypt", "decrypt"), 256, 5, "locks identity files that have one"),
)
_OF: dict[str, tuple[Algorithm, ...]] = {
    "interactive": (
        Algorithm("SHA-512", "hash", ("digest",), 256, 5, "challenges of dealings"),
        Algorithm("Shamir-Ed25519-order", "other", ("generate", "other"), None, None, "key shares of vanished parties"),
    ),
    "split": (
        Algorithm("HPKE-HKDF-SHA256", "other", ("encapsulate", "decapsulate"), 128, 3, "boxes to the panel"),
        Algorithm("X-Wing", "kem", _ENCAPSULATES, 128, 3, "the KEM of boxes: ML-KEM-768 and X25519 together"),
        Algorithm("SHAKE256", "xof", ("digest",), 256, 5, "keys of X-Wing from a seed"),
    ),
}
"""Further algorithms by masking protocol."""


def algorithms(plan: Plan) -> tuple[Algorithm, ...]:
    """Return every algorithm of a plan's sessions."""
    return (*_ALWAYS, *_OF[plan.protocol])


def cbom(plan: Plan, course: Course | None = None) -> str:
    """Return the bill as deterministic CycloneDX 1.6 JSON.

    Args:
        plan: all sessions use its cryptography.

    Raises:
        MissingExtraError: cyclonedx-python-lib is not installed.

    Example:
        >>> from privstats.contrib.evidence.bill_of_materials import cbom
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> '"cryptographic-asset"' in cbom(plan)
        True
    """
    optional_dependencies.require("cyclonedx", by="a bill of materials")
    from uuid import NAMESPACE_URL, uuid5

    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    ours = Component(name="privstats", version=__version__, bom_ref="privstats")
    theirs = Component(name="cryptography", version=version("cryptography"), bom_ref="cryptography")
    digests = [("plan", plan.digest), *([] if course is None else [("course", course.digest)])]
    for name, digest in digests:
        ours.properties.add(Property(name=f"privstats:{name}", value=digest))
    bom = Bom(
        components=[theirs, *_components(plan)],
        metadata=BomMetaData(component=ours),
        serial_number=uuid5(NAMESPACE_URL, f"privstats/{__version__}/{theirs.version}/{digests[-1][1]}"),
    )
    bom.metadata.timestamp = None  # type: ignore[assignment]  # the same bytes for everybody
    bom.register_dependency(ours, [theirs])
    return str(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)) + "\n"


def _components(plan: Plan) -> Iterator[Component]:
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.crypto import (
        AlgorithmProperties,
        CryptoAssetType,
        CryptoFunction,
        CryptoPrimitive,
        CryptoProperties,
    )

    for algorithm in algorithms(plan):
        properties = AlgorithmProperties(
            primitive=CryptoPrimitive(algorithm.primitive),
            crypto_functions=map(CryptoFunction, algorithm.functions),
            classical_security_level=algorithm.bits,
            nist_quantum_security_level=algorithm.category,
        )
        yield Component(
            name=algorithm.name,
            type=ComponentType.CRYPTOGRAPHIC_ASSET,
            bom_ref=f"algorithm/{algorithm.name}",
            description=algorithm.use,
            crypto_properties=CryptoProperties(asset_type=CryptoAssetType.ALGORITHM, algorithm_properties=properties),
        )
