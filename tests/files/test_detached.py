"""A signature beside a document: of these bytes and of this key, in every field that it has."""

import json
import os

import pytest

import privstats as ps
from privstats.files.detached import is_signed_by, sign_beside, signature_path

SIGNER, OTHER = ps.secagg.Identity.generate(os.urandom), ps.secagg.Identity.generate(os.urandom)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "report.html"
    path.write_bytes(b"<p>a page</p>")
    sign_beside(path, path.read_bytes(), SIGNER, ps.DataError)
    return path


def test_a_signature_is_of_its_key_and_of_the_bytes(page):
    assert is_signed_by(page, SIGNER.public, ps.DataError)
    assert not is_signed_by(page, OTHER.public, ps.DataError)
    page.write_bytes(b"<p>another</p>")
    assert not is_signed_by(page, SIGNER.public, ps.DataError)


@pytest.mark.parametrize(("field", "value"), [("sha256", "0" * 64), ("sha256", None), ("ed25519", "0" * 128)])
def test_no_field_of_a_signature_may_say_something_else(page, field, value):
    found = json.loads(signature_path(page).read_text())
    signature_path(page).write_text(json.dumps({**found, field: value}))
    assert not is_signed_by(page, SIGNER.public, ps.DataError)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "privstats-signature", "version": 2}', "[" * 4000])
def test_what_is_no_signature_is_one_sentence(page, text):
    signature_path(page).write_text(text)
    with pytest.raises(ps.DataError, match=r"report\.html\.sig is no signature of version 1"):
        is_signed_by(page, SIGNER.public, ps.DataError)
