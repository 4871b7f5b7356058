"""Domains of hashes, labels and names of formats are in one file, distinct, and those of earlier versions."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from privstats import domains
from tests.project.core_graph import ROOT
from tests.without import WHOLE

STORED = Path(__file__).with_name("stored") / "domains.json"
"""Values of ``domains``, and purposes below them, which stored files, signatures and running sessions depend on."""
HASHES = {
    "sha256",
    "sha512",
    "shake_256",
    "blake2b",
    "scrypt",
    "file_digest",
    "hkdf",
    "HKDF",
    "HMAC",
    "digest",
    "update",
}
WRAPPERS = {"full_content", "bound_to", "Labels", "Format"}
"""Calls of the package whose first argument begins what is hashed, or names a format."""
PURPOSES = {"prefix", "labelled", "derive", "derived", "key"}
"""Calls that put a purpose below a protocol's domain or a folder's key."""
VALUES = {name: value for name, value in vars(domains).items() if name.isupper()}


@cache
def modules() -> Mapping[str, ast.Module]:
    package = ROOT / "privstats"
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in names:
            yield node


def is_a_word(value: object) -> bool:
    """Whether a literal names something: a separator, a number's bytes or a digest's name do not."""
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return isinstance(text, str) and sum(map(str.isalpha, text)) > 2


def words(node: ast.AST | None, known: Mapping[str, object]) -> Iterator[object]:
    """Literals that an expression joins or encodes, and those that a module's own names in it stand for."""
    match node:
        case ast.Constant(value=value) if is_a_word(value):
            yield value
        case ast.Name(id=name) if is_a_word(known.get(name)):
            yield known[name]
        case ast.BinOp(left=one, right=two):
            yield from (*words(one, known), *words(two, known))
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            yield from (word for part in parts for word in words(part, known))
        case ast.Call(func=ast.Attribute(value=text, attr="encode")):
            yield from words(text, known)
        case ast.Call(func=ast.Attribute(attr="join"), args=parts):
            yield from (word for part in parts for word in words(part, known))


def names_of(tree: ast.Module) -> dict[str, object]:
    """A module's names of literals, alone or in a tuple."""
    found: dict[str, object] = {}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in targets:
            pairs = (
                zip(target.elts, node.value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                else [(target, node.value)]
            )
            found |= {
                name.id: value.value
                for name, value in pairs
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
            }
    return found


def hashed_words(tree: ast.Module) -> set[object]:
    """Literals that a module passes to a hash or a derivation, apart from the names of hashes."""
    known, found = names_of(tree), list[ast.AST]()
    for call in calls(tree, HASHES):
        found += [*call.args, *(each.value for each in call.keywords)]
    for call in calls(tree, WRAPPERS):
        found += [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")]
    return {word for each in found for word in words(each, known)} - {"sha256", "sha512"}


def purposes() -> list[str]:
    """Purposes that the package puts below a domain, with ``*`` for a computed part."""
    found = set[str]()
    for tree in modules().values():
        known = names_of(tree)
        for argument in (argument for call in calls(tree, PURPOSES) for argument in call.args):
            match argument:
                case ast.Constant(value=str(text)):
                    found.add(text)
                case ast.Name(id=name) if isinstance(known.get(name), str):
                    found.add(str(known[name]))
                case ast.JoinedStr(values=parts):
                    found.add("".join(part.value if isinstance(part, ast.Constant) else "*" for part in parts))
    return sorted(found)


@pytest.mark.parametrize("name", [name for name in modules() if name != "domains.py"])
def test_no_other_module_has_a_literal_that_is_hashed_or_named_like_one(name: str) -> None:
    tree = modules()[name]
    literals = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not [each for each in literals if isinstance(each, bytes) and each.lstrip(b"\x93").startswith(b"privstats")]
    assert not hashed_words(tree), "move it to privstats/domains.py"


def test_the_rule_finds_a_literal_wherever_it_is_hashed() -> None:
    """Literals as the modules had them before."""
    for text in (
        'hashlib.sha256(b"privstats/course\\0" + facts)',
        'A, B = b"one", b"two"\nsha256(B + content)',
        'A: bytes = b"one"\ndef link(body):\n    return sha256(A + body)',
        'sha256(f"privstats/course/{label}".encode() + facts)',
        'hmac.digest(key, b"purpose", "sha256")',
        'hashlib.scrypt(digest, salt=b"salted")',
        'full_content(b"privstats-release/3")',
        'Format(name="privstats-release")',
    ):
        assert hashed_words(ast.parse(text)), text
    assert not hashed_words(ast.parse('sha256(domains.LEDGER + b"\\0" + n.to_bytes(8, "big") + name.encode("utf-8"))'))


def test_no_domain_is_another_or_begins_another() -> None:
    """A domain that is a root of purposes ends with a slash; a template ends before its first value."""
    sealed = [value.partition(b"%")[0] for value in VALUES.values() if isinstance(value, bytes)]
    whole = [value for value in sealed if not value.endswith((b"/", b"|"))]
    assert len({*VALUES.values()}) == len(VALUES)
    assert not [(one, two) for one in whole for two in sealed if one != two and two.startswith(one)]


@WHOLE
def test_values_and_purposes_are_those_of_earlier_versions() -> None:
    """A value that is missing here broke stored files; a new one is added to the file of values in the same commit."""
    now = {"domains": sorted(repr(value) for value in VALUES.values()), "purposes": purposes()}
    stored = json.loads(STORED.read_text("utf-8"))
    assert now == {name: stored[name] for name in now}


def test_no_value_or_purpose_of_an_earlier_protocol_is_used_again() -> None:
    """Signatures and ciphertexts over the retired ones exist: under a new meaning they would count."""
    stored = json.loads(STORED.read_text("utf-8"))
    for name, retired in stored["retired"].items():
        assert retired == sorted(set(retired))
        assert not set(retired) & set(stored[name])
