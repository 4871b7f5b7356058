"""The world widens classes that never meet, and leaves the others alone."""

from __future__ import annotations

import pytest

from privstats.heads import FisherMix

pytest.importorskip("torch")


def test_dispersion_widens_classes_that_do_not_overlap(blobs):
    assert FisherMix(per_class=50, max_rounds=1).fit(*blobs(spread=30.0)).dispersion_ > 1
    assert FisherMix(per_class=50, max_rounds=1).fit(*blobs(spread=0.3)).dispersion_ == 1
