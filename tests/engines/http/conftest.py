"""Folders are written often here; that a disk has it is the business of the tests of kills, which count the waits."""

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(request, monkeypatch):
    if request.node.get_closest_marker("waits_for_disk") is None:
        monkeypatch.setattr(os, "fsync", lambda _: None)
