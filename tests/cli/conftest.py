"""Commands of these tests forecast from three draws: tests/inference/test_forecasts.py is about the numbers."""

import pytest


@pytest.fixture(autouse=True)
def forecasts(few_draws: int) -> None:
    """Draw few releases in every forecast that a command prints."""
