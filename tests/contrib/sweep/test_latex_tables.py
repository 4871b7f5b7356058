"""LaTeX tables of a study are balanced, escaped, and hold the study's own numbers."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil
import subprocess

import pytest

import privstats as ps
from privstats.contrib.sweep import Axes, latex, study
from privstats.contrib.sweep.latex_tables import escaped
from tests.contrib.sweep.rivals.test_federated import QUICK

from .test_sweep import PLAN, TEST, TRAIN

HEADS = {"LDA_1 & {50 %}": ps.heads.LDA, "NaiveBayes": ps.heads.NaiveBayes}


def found(axes, heads=HEADS, **how):
    return study(PLAN, TRAIN, TEST, heads, axes, **{"repeats": 5, "seed": 1, "with_baselines": False} | how)


@pytest.fixture(scope="module")
def result():
    return found(Axes(model=["central", "local"], alpha=[0.1, 10.0], epsilon=[0.3, 8.0]), HEADS | QUICK)


def body(text, table=0):
    """Return the cells of a table's rows, with the values that a group of rows shares in each of them."""
    lines = text.split(r"\begin{table}")[table + 1].split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    rows = [line for line in lines if line != r"\addlinespace"]
    assert all(row.endswith((r" \\", r" \tabularnewline")) for row in rows)
    ended = [row.removesuffix(r" \\").removesuffix(r" \tabularnewline").replace(r"\raggedright ", "") for row in rows]
    found = [re.split(r"(?<!\\)& ", row) for row in ended]
    for before, row in itertools.pairwise(found):
        row[:] = [one if one.strip() else other for one, other in zip(row, before, strict=True)]
    return [[cell.strip() for cell in row] for row in found]


def require_structure(text):
    """Check what LaTeX would refuse: open braces and environments, odd dollars, and cells that the layout lacks."""
    plain = re.sub(r"\\[{}$%&#_\\]", "", text)
    depth = 0
    for letter in plain:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[#%_~](?![^$]*\$)", re.sub(r"\\label\{[^}]*\}|\$[^$]*\$", "", plain))
    assert plain.isascii()
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    for layout, rest in re.findall(r"\\begin\{tabular\}\{((?:[lr]|p\{[^}]*\})+)\}(.*?)\\end\{tabular\}", text, re.S):
        columns = len(re.sub(r"p\{[^}]*\}", "p", layout))
        rows = [line for line in rest.splitlines() if line.endswith((r"\\", r"\tabularnewline"))]
        assert rows
        assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {columns - 1}
        assert [rest.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


@pytest.mark.parametrize(
    "axes",
    [
        Axes(epsilon=[1.0]),
        Axes(epsilon=[1.0], clip_norm=[4.0, 8.0], dimension=[2, 3]),
        Axes(epsilon=[1.0], statistics=["NAB", "NABD"], clients=[4, 5]),
    ],
)
def test_each_table_has_the_structure_that_latex_needs(axes):
    require_structure(latex(found(axes, repeats=2)))


def test_a_table_of_rivals_has_the_structure_and_the_studys_own_numbers(result):
    text = latex(result)
    require_structure(text)
    rows = body(text)
    assert len(rows) == 2 * (2 * 2 + 3)  # alphas; heads under each model, and rivals without one
    cells = {tuple(row[:3]): row[3:] for row in rows}
    name = r"LDA\_1 \& \{50 \%\}"
    (row,) = result.summary.where(model="local", alpha=0.1, epsilon=0.3, head="LDA_1 & {50 %}")
    half = (row["high"] - row["low"]) / 2
    assert cells["local", "$0.1$", name][2] == rf"${100 * row['mean']:.1f} \pm {100 * half:.1f}$"
    (exact,) = result.summary.where(model="none", alpha=0.1, head="LDA_1 & {50 %}")
    assert cells["local", "$0.1$", name][0] == cells["central", "$0.1$", name][0] == f"${100 * exact['mean']:.1f}$"
    (open_,) = result.summary.where(head="FedAvg", alpha=10.0)
    assert cells["--", "$10$", "FedAvg"][1:] == ["--", "--"]
    assert cells["--", "$10$", "FedAvg"][0].startswith(f"${100 * open_['mean']:.1f} \\pm ")


def test_the_caption_states_interval_seeds_promise_and_methods_without_privacy(result):
    text = latex(result)
    assert r"95\,\% Student $t$ interval over 5 seeds" in text
    assert "$t = 2.776$" in text
    assert r"$\delta = 10^{-5}$, unit record, add-remove adjacency" in text
    assert "No privacy: FedAvg; FedProx; ensemble." in text
    promised = {row[0]: row[1] for row in body(text, 1)}
    assert promised[r"LDA\_1 \& \{50 \%\}"] == "yes"
    assert {promised[name] for name in QUICK} == {"no"}


@pytest.mark.parametrize(
    "axes",
    [
        Axes(epsilon=[8.0, 3.0, 1.0, 0.3]),
        Axes(alpha=[0.1, 10.0], epsilon=[8.0, 3.0, 1.0, 0.3]),
        Axes(model=["central", "local"], alpha=[0.1, 10.0], epsilon=[8.0, 1.0]),
    ],
    ids=["usual", "alpha", "two axes"],
)
def test_latex_compiles_the_tables_and_each_fits_the_text_of_an_article(axes, tmp_path):
    found_here = found(axes, {"LDA_1 & {50 %}": ps.heads.LDA}, repeats=2, baselines=["fedavg", "ensemble"])
    require_fit(latex(found_here), tmp_path)


def test_a_table_of_data_sets_with_long_names_fits_the_text_of_an_article(tmp_path):
    one = found(Axes(epsilon=[8.0, 1.0]), {"LDA_1 & {50 %}": ps.heads.LDA}, repeats=2)
    text = latex({"CIFAR-10, ResNet-18": one, "CLINC150_MiniLM & more": one})
    assert r"\small" in text
    require_fit(text, tmp_path)


def require_fit(text, folder):
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is not installed (Debian: texlive-latex-base and texlive-latex-recommended)")
    (folder / "sweep.tex").write_text(text, encoding="ascii")
    preamble, whole = r"\documentclass{article}\usepackage{booktabs}", r"\begin{document}\input{sweep}\end{document}"
    (folder / "paper.tex").write_text(preamble + whole, encoding="ascii")
    words = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "paper.pdf").exists()
    assert "Overfull" not in done.stdout


def test_a_regression_has_its_own_score():
    target = TRAIN[0] @ [0.05, 0.05, 0.05, 0.05]
    plan = dataclasses.replace(PLAN, schema=ps.RidgeSchema(4, clip_norm=40.0, target_bound=4.0))
    text = latex(study(plan, (TRAIN[0], target), (TRAIN[0], target), {"Ridge": ps.heads.Ridge}, repeats=2))
    require_structure(text)
    assert r"R\textsuperscript{2} on 600 test records" in text


def test_every_special_letter_is_escaped():
    assert escaped(r"\{}&%$#_~^<>|") == (
        r"\textbackslash{}\{\}\&\%\$\#\_\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"
    )
