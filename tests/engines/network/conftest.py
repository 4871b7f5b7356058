"""Folders are written a thousand times here; that a disk has it is the business of the journal's own tests."""

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
