"""Engines as users start them; a test is skipped with the reason where one is not installed."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"):  # which it sets itself
        monkeypatch.setenv(name, "")
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java on this machine")
    settings_ = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    builder = pyspark.SparkSession.builder.master("local[2]")
    for name, value in settings_.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()
