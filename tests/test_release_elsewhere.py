"""docs/release_file.md: its readers in R and JavaScript print the numbers that Python reads from a release."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.randomness import seeded
from tests.made import promise

PAGE = Path(__file__).parents[1] / "docs" / "release_file.md"
READERS = {"r": ["Rscript", "--vanilla"], "js": ["node"]}
SCHEMAS = {
    "one target": ps.RidgeSchema(4, clip_norm=1.5, target_bound=2.0, feature_names=("a", "b", "c", "d")),
    "several": ps.RidgeSchema(3, 2, clip_norm=0.3, target_bound=1e3, grid_bits=10),
    "small": ps.RidgeSchema(2, clip_norm=1e-3, target_bound=1.0),
}


def release_of(schema):
    rng = np.random.default_rng(0)
    cohort = ps.Cohort(2, 2, 100)
    y = (20, schema.targets) if schema.targets > 1 else 20
    shards = [(rng.normal(size=(20, schema.features)), rng.normal(size=y)) for _ in range(2)]
    return ps.simulate(ps.Plan(schema=schema, cohort=cohort, privacy=promise(epsilon=2.0)), shards, rng=seeded(0))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("language", READERS)
def test_the_pages_reader_prints_the_numbers_that_python_reads(language, schema, tmp_path):
    program, *flags = READERS[language]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    (code,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / f"read.{language}").write_text(code)
    release = release_of(schema)
    release.save(tmp_path / "sums.release")
    words = [program, *flags, f"read.{language}", "sums.release"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    real = release.moments
    expected = np.concatenate([np.ravel(real.G), np.ravel(real.h), [real.q]])
    np.testing.assert_allclose([float(line) for line in done.stdout.split()], expected, rtol=1e-14)


def test_the_page_states_every_key_of_the_manifest(tmp_path):
    release_of(SCHEMAS["one target"]).save(tmp_path / "sums.release")
    content = (tmp_path / "sums.release").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    keys = {*header["__metadata__"], *json.loads(header["__metadata__"]["manifest"])}
    assert {key for key in keys if f"`{key}`" not in PAGE.read_text()} == set()
