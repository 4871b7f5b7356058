"""The page's one file and its headers: what they name, and what they refuse."""

import base64
import hashlib
import json
import re

import pytest

from privstats.contrib.http.page import BUNDLE, client_file, page_of
from privstats.errors import LocalProtocolError

RUN, STUDY = "ab" * 16, "0f" * 32
PAGE = page_of("https://leader.example", RUN, STUDY)


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_a_browser_that_was_here_once_asks_by_tls_alone() -> None:
    """People type the address without https://, and the first answer to that may be anybody's."""
    assert PAGE.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_the_policy_allows_this_script_this_style_and_this_leader_alone():
    policy = dict(part.split(" ", 1) for part in PAGE.headers["Content-Security-Policy"].split("; "))
    (words, script), (style,) = (
        re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", PAGE.html, re.DOTALL) for tag in ("script", "style")
    )
    assert sorted(json.loads(words)) == ["de", "en", "es", "fr"]  # data, which no policy lets run
    assert policy.pop("script-src") == f"'{hash_of(script)}'" == f"'{PAGE.integrity}'"
    assert policy.pop("style-src") == f"'{hash_of(style)}'"
    assert policy.pop("connect-src") == "https://leader.example"
    assert policy.pop("require-trusted-types-for") == "'script'"
    assert policy.pop("img-src") == "data:"
    assert policy.pop("default-src") == "'none'"
    assert set(policy) == {"form-action", "base-uri", "frame-ancestors"}
    assert set(policy.values()) == {"'none'"}


def test_the_page_holds_its_pins_and_the_bundle_as_it_is_released():
    assert f'data-leader="https://leader.example" data-run="{RUN}" data-study="{STUDY}"' in PAGE.html
    assert client_file(BUNDLE).read_text("utf-8") in PAGE.html
    assert page_of("https://other.example/", RUN, "11" * 32).integrity == PAGE.integrity
    assert not re.findall(r'(?:src|href)="(?!data:)', PAGE.html)


@pytest.mark.parametrize(
    ("leader", "run", "study", "words"),
    [
        ("http://leader.example", RUN, STUDY, "https://"),
        ("https://leader.example/path", RUN, STUDY, "without a path"),
        ('https://leader.example"><script>', RUN, STUDY, "https://"),
        ("https://leader.example; script-src *", RUN, STUDY, "https://"),
        ("https://user:word@leader.example", RUN, STUDY, "https://"),
        ("https://leader.example", "ab" * 15, STUDY, "run must be"),
        ("https://leader.example", RUN.upper(), STUDY, "run must be"),
        ("https://leader.example", RUN, STUDY[:-2], "study must be"),
        ("https://leader.example", RUN, '"' * 64, "study must be"),
    ],
)
def test_what_is_no_address_run_or_study_is_refused(leader, run, study, words):
    with pytest.raises(LocalProtocolError, match=words):
        page_of(leader, run, study)
    assert page_of("http://127.0.0.1:8000", RUN, STUDY).headers["Referrer-Policy"] == "no-referrer"
