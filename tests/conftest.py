"""Profiles for the property tests: ``dev`` is quick, ``ci`` is thorough, ``nightly`` is for a free machine.

Choose one with HYPOTHESIS_PROFILE; CI chooses ``ci`` by itself.
"""

import os

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors]

settings.register_profile("dev", max_examples=25, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("ci", max_examples=60, deadline=None, suppress_health_check=_SLOW_IS_FINE, derandomize=True)
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
