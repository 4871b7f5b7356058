"""Folders are written often here; that a disk has it is the business of the tests of kills, which count the waits."""

import os
from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("uvicorn") else ["test_serve.py"]  # the sockets are the extra's


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
