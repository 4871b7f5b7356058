"""The names of an upload's steps and of its two ends, in order. Data only; under everything in this room."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["STEPS", "UPLOAD_STEP", "StepName"]

StepName: TypeAlias = Literal["report", "check", "reveal", "done", "failed"]

STEPS: tuple[StepName, ...] = ("report", "check", "reveal")
UPLOAD_STEP: StepName = "report"
