"""The steps of an upload, as data."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["ENDS", "StepName"]

StepName: TypeAlias = Literal["report", "check", "reveal", "done", "failed"]
ENDS = ("done", "failed")
