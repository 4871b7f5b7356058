"""docs/wire/release.md: its readers in R and JavaScript print the numbers that Python reads from a release."""

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

PAGE = Path(__file__).parents[1] / "docs" / "wire" / "release.md"
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


def test_r_reads_a_table_as_data(privstats, tmp_path):
    """Numbers in full, one in each cell; a row that noise hides has NA, and JSON null, in every number."""
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed here")
    names, constant = ("age", "dose"), ps.transforms.ConstantFeature(1.0)
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=2.0, feature_names=names, transform=(constant,))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    shards = [(X[k::2], (X @ [0.7, 0.0] + rng.normal(0, 0.3, 400))[k::2]) for k in (0, 1)]
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=promise(epsilon=0.26))
    ps.simulate(plan, shards, rng=seeded(0)).save(tmp_path / "sums.release")
    privstats("table", "sums.release", "--out", "rows.csv", cwd=tmp_path, code=0)
    rows = json.loads(privstats("table", "sums.release", "--format", "json", cwd=tmp_path, code=0).stdout)["rows"]
    numbers = ("estimate", "conf_low", "conf_high")
    reader = (
        'x <- read.csv("rows.csv"); stopifnot(is.logical(x$reported)); '
        f"cat(x$reported, format(c({', '.join(f'x${name}' for name in numbers)}), digits = 17))"
    )
    done = subprocess.run(["Rscript", "-e", reader], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[: len(rows)] == [str(row["reported"]).upper() for row in rows]
    read = [None if word == "NA" else float(word) for word in words[len(rows) :]]
    assert read == [row[name] for name in numbers for row in rows]
    assert {row["reported"] for row in rows} == {True, False}
    assert all(row["reported"] or all(row[name] is None for name in numbers) for row in rows)


def test_the_page_states_every_key_of_the_manifest(tmp_path):
    release_of(SCHEMAS["one target"]).save(tmp_path / "sums.release")
    content = (tmp_path / "sums.release").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    keys = {*header["__metadata__"], *json.loads(header["__metadata__"]["manifest"])}
    assert {key for key in keys if f"`{key}`" not in PAGE.read_text()} == set()
