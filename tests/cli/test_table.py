"""``privstats table``: its forms, its exit codes."""

import csv
import io
import json
import math
import re
import shutil

import numpy as np
import pytest

import privstats as ps
from privstats import contrib
from privstats.cli.table import _options
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from privstats.workflows.tables import READERS as ROWS
from privstats.workflows.tables import TableResult
from privstats.workflows.tables.options import names_in, stated
from privstats.workflows.tables.reading import table_of
from tests import made
from tests.contrib.imputation import cases as gaps
from tests.contrib.imputation import counts as gap_counts
from tests.hazard import worlds as hazards
from tests.inference import test_effects as effects
from tests.inference import test_sites as sites
from tests.inference.test_counts import exact as counted
from tests.inference.test_counts import people
from tests.inference.test_regression import exact, noisy, records
from tests.inference.test_score import LOGISTIC, course_of, played, world


@pytest.fixture
def folder(tmp_path, files):
    """A folder of its own with all of these releases."""
    return shutil.copytree(files, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A release for each reader."""
    place = tmp_path_factory.mktemp("releases")
    X, y = records()
    exact(X, y, feature_names=("age", "dose", "site")).save(place / "exact.privstats")
    noisy(X, y, 1.0).save(place / "noisy.privstats")
    counted(people()).save(place / "counts.privstats")
    sites.release_of(sites.world(sites.SIZES)).save(place / "sites.privstats")
    sites.intercepts(sites.clinics(0.3)).save(place / "pulls.privstats")
    gaps.exact(gaps.table(400)).save(place / "gaps.privstats")
    schema = ps.ClassSchema(2, 3, "NAD", 2.0, class_names=("old", "new"))
    labels = np.where(y > 0.2, "new", "old")
    ps.Release.exact(schema, ps.measure(schema, X, labels)).save(place / "classes.privstats")
    return place


READERS = {
    "km": ("counts.privstats", "--time", "months", "--event", "died", "--by", "sex", "--times", "discrete"),
    "proportions": ("counts.privstats", "--column", "sex"),
    "table-one": ("classes.privstats",),
    "fixed-effects": ("sites.privstats",),
    "mixed": ("pulls.privstats",),
    "ols": ("exact.privstats",),
    "imputed": ("gaps.privstats", "--outcome", "days"),
}
BEGINS = {"text": "", "csv": "", "latex": r"% needs \usepackage{booktabs}", "html": "<table>", "markdown": "**"}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", BEGINS)
def test_every_reader_writes_every_form(privstats, folder, reader, form):
    done = privstats("table", *READERS[reader], "--reader", reader, "--format", form, cwd=folder, code=0)
    assert max(map(len, done.stdout.splitlines())) <= 80 or form != "text"
    assert "an interval that misses" in done.stdout or form == "csv"
    assert done.stdout.startswith(BEGINS[form])


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_writes_numbers(privstats, folder, reader):
    facts = json.loads(privstats("table", *READERS[reader], "--reader", reader, "--format", "json", cwd=folder).stdout)
    assert facts["reader"] == reader
    assert len(facts["rows"]) >= 2
    assert {name for row in facts["rows"] for name in row} <= set(ps.inference.FRAME_COLUMNS)


def test_sums_by_gap_pattern_need_the_outcome_by_name(privstats, folder):
    assert "--reader imputed needs --outcome NAME" in privstats("table", "gaps.privstats", cwd=folder, code=2).stderr
    words = ("table", "gaps.privstats", "--reader", "imputed")
    assert "--reader imputed needs --outcome" in privstats(*words, cwd=folder, code=2).stderr
    assert "no column of the release" in privstats(*words, "--outcome", "crp", cwd=folder, code=2).stderr
    some = privstats(*words, "--outcome", "days", "--column", "age", "--format", "csv", cwd=folder, code=0)
    assert [line.partition(",")[0] for line in some.stdout.splitlines()[1:]] == ["const", "age"]
    refused = privstats("table", "exact.privstats", "--outcome", "days", cwd=folder, code=2).stderr
    assert "--outcome is for --reader imputed" in refused


def test_counts_with_gaps_have_imputed_odds_and_risks(privstats, folder):
    gap_counts.exact(gap_counts.records(4_000)).save(folder / "gap-counts.privstats")
    words = ("table", "gap-counts.privstats", "--reader", "imputed", "--outcome", "ill")
    odds = privstats(*words, "--exponentiate", "--reference", "dose=high", "--column", "dose", cwd=folder, code=0)
    assert "odds ratio" in odds.stdout
    assert "dose: low" in odds.stdout
    assert "sex" not in odds.stdout.split("At most")[0]
    by_arm = privstats(*words, "--by", "arm", cwd=folder, code=0)
    assert "Risks of ill = 1 by arm" in by_arm.stdout
    assert max(map(len, by_arm.stdout.splitlines())) <= 80
    rows = json.loads(privstats(*words, "--by", "arm", "--format", "json", cwd=folder, code=0).stdout)["rows"]
    assert [row["measure"] for row in rows] == ["risk", "risk", "difference", "ratio"]
    assert {name for row in rows for name in row} <= set(ps.inference.FRAME_COLUMNS)
    both = privstats(*words, "--by", "arm", "--exponentiate", cwd=folder, code=2)
    assert "--exponentiate is for odds ratios, and --by prints risks" in both.stderr
    for more in (("--by", "age"), ("--reference", "age=old"), ("--interaction", "age*dose")):
        wrong = privstats("table", *READERS["imputed"], "--reader", "imputed", *more, cwd=folder, code=2)
        assert f"{more[0]} is for imputed counts, and these are sums by gap pattern; omit it" in wrong.stderr


def test_products_of_imputed_counts_are_declared(privstats, folder):
    counts = gap_counts.exact(gap_counts.records(4_000))
    counts.save(folder / "gap-counts-of-products.privstats")
    words = ("table", "gap-counts-of-products.privstats", "--reader", "imputed", "--outcome", "ill")
    how = ("--interaction", "sex * arm", "--format", "json")
    rows = json.loads(privstats(*words, *how, cwd=folder, code=0).stdout)["rows"]
    expected = contrib.imputation.logit(counts, outcome="ill", interactions=[("sex", "arm")])
    assert rows[-1]["term"] == expected.names[-1] == "sex: m vs f x arm: placebo vs drug"
    assert rows[-1]["estimate"] == expected.params[-1]
    by_arm = json.loads(privstats(*words, *how, "--by", "arm", cwd=folder, code=0).stdout)["rows"]
    risks = contrib.imputation.risks(counts, outcome="ill", by="arm", interactions=[("sex", "arm")])
    assert [row["estimate"] for row in by_arm] == [each.estimate for each in risks.measures]
    for wrong in ("sex", "sex*", "*"):
        done = privstats(*words, "--interaction", wrong, cwd=folder, code=2)
        assert '--interaction names two columns with a star between: --interaction "arm*sex"' in done.stderr
    assert "pairs of different columns of" in privstats(*words, "--interaction", "sex*sex", cwd=folder, code=2).stderr


@pytest.mark.parametrize("reader", list(ROWS))
def test_an_option_is_for_the_readers_that_its_help_names_and_refused_by_others(reader):
    listed = _options().joined()
    for name in set(names_in(listed)) - {"alpha"}:
        named = re.search(rf"\b{reader}\b", stated(listed, name).help)
        assert bool(named) == (name in names_in(ROWS[reader].options)), name
        if not named:
            with pytest.raises(ReleaseError, match=rf"^--\S+ is for .*, not {reader}; omit it(: |$)"):
                table_of(reader, [None], {name: "age"}, flags=True)


def test_an_option_of_every_reader_names_none():
    assert stated(_options().joined(), "alpha").help == "Level of the intervals."


def test_a_row_that_noise_hides_has_no_number_in_data():
    rows = [
        {"name": "a", "estimate": 1 / 3, "n": 5, "reported": True, "conf_high": math.inf, "p_value": math.nan},
        {
            "name": "b",
            "estimate": 0.25,
            "n": np.int64(7),
            "reported": False,
            "conf_high": 1.5,
            "p_value": np.float64(0.1),
        },
    ]
    made = TableResult(None, rows, reported=True)
    assert made.data[0] == rows[0]
    assert made.data[1] == {
        "name": "b",
        "estimate": None,
        "n": None,
        "reported": False,
        "conf_high": None,
        "p_value": None,
    }
    assert made.csv.splitlines() == [
        "name,estimate,n,reported,conf_high,p_value",
        "a,0.3333333333333333,5,TRUE,Inf,NA",
        "b,NA,NA,FALSE,NA,NA",
    ]
    points = TableResult(None, rows, reported=True, hides=False)
    assert points.data == rows


def test_rounds_are_read_together(privstats, folder):
    names = []
    for place, release in enumerate(played(course_of(LOGISTIC, 2_000, 8.0), *world(2_000), 1)):
        names.append(f"{place}.privstats")
        release.save(folder / names[-1])
    done = privstats("table", *names, "--reader", "logit", cwd=folder, code=0)
    assert "Logistic regression" in done.stdout
    assert privstats("table", *names, cwd=folder).stdout == done.stdout
    for form in ("text", "csv", "latex"):
        ratios = privstats("table", *names, "--exponentiate", "--format", form, cwd=folder)
        assert ("odds_ratio" if form == "csv" else "odds ratio") in ratios.stdout, ratios.stderr
        assert "const" not in ratios.stdout.splitlines()[0]
    told = json.loads(privstats("table", *names, "--exponentiate", "--format", "json", cwd=folder).stdout)["rows"]
    assert [row["odds_ratio"] for row in told] == [math.exp(row["estimate"]) for row in told]
    wrong = privstats("table", *names, "--reader", "ols", cwd=folder).stderr
    assert "ols reads a RidgeSchema, and the plan measures" in wrong
    assert "reads one release" in privstats("table", *names, "--reader", "table-one", cwd=folder).stderr
    assert "poisson" in privstats("table", *names, "--reader", "poisson", cwd=folder).stderr


@pytest.mark.parametrize("reader", [*READERS, "effect"])
def test_ratios_of_what_is_no_logarithm_are_refused_by_name(privstats, folder, reader):
    files = READERS.get(reader, ("exact.privstats",))
    done = privstats("table", *files, "--reader", reader, "--exponentiate", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    if reader == "imputed":
        assert "--exponentiate is for imputed counts, and these are sums by gap pattern" in done.stderr
        return
    served = "logit, poisson, hazards, imputed and site-levels"
    assert f"--exponentiate is for {served}, whose coefficients are logarithms, not {reader}" in done.stderr


CELLS = ps.Cells((ps.Numeric("age"), ps.Categories("stage", ("a", "b", "c")), ps.Truth("smoker")), signs=2, ramp=False)
CONSTANT = ps.transforms.ConstantFeature(1.0)


def declared(folder, what):
    """Files of all releases of a course over declared columns, whose cut points are found."""
    rng, privacy = np.random.default_rng(0), made.promise(epsilon=10.0, delta=1e-6)
    table = {"age": rng.normal(60, 15, 6_000), "smoker": rng.integers(0, 2, 6_000).astype(float)}
    table["stage"] = rng.choice(["a", "b", "c"], 6_000)
    y = (table["age"] - 60) / 15 + table["smoker"] + rng.normal(size=6_000)
    if what == "ols":
        schema = ps.RidgeSchema(CELLS.width + 1, clip_norm=2**0.5, target_bound=6.0, transform=(CELLS, CONSTANT))
    else:
        schema, y = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,)), (y > 0.5).astype(int)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 12_000), privacy=privacy)
    then = {"ols": None, "classes": "centred", "rounds": "rounds"}[what]
    course = ps.Binned.within(plan, then, expected_records=6_000)
    parts = [({name: values[i::2] for name, values in table.items()}, y[i::2]) for i in range(2)]
    names = [f"{place:02}.privstats" for place in range(course.most)]
    for name, release in zip(names, ps.simulate(course, parts, rng=seeded(1)), strict=True):
        release.save(folder / name)
    return names


def test_declared_columns_are_told_cell_by_cell_and_against_the_cell_that_is_asked_for(privstats, tmp_path):
    names = declared(tmp_path, "ols")
    done = privstats("table", *names, cwd=tmp_path, code=0)
    assert "contrasts of cells" in done.stdout
    said = " ".join(done.stdout.split())
    assert f"epsilon 10, delta 1e-06, all {len(names)} sessions, the counts of its cut points among them" in said
    facts = json.loads(privstats("table", *names, "--reference", "stage=c", "--format", "json", cwd=tmp_path).stdout)
    assert facts["rows"][0]["level"] == "all references"
    assert [row["level"] for row in facts["rows"] if row["variable"] == "stage" and row["reference"]] == ["c"]
    smoker = next(row for row in facts["rows"] if (row["variable"], row["level"]) == ("smoker", "true"))
    assert smoker["conf_low"] < 1 < smoker["conf_high"]
    (level,) = (row for row in facts["rows"] if row["level"] == "all references")
    assert level["conf_low"] < level["estimate"] < level["conf_high"]
    said = privstats("table", *names, "--reference", "stage", cwd=tmp_path).stderr
    assert "--reference ward=B" in said
    assert "stage has no cell 'z'" in privstats("table", *names, "--reference", "stage=z", cwd=tmp_path).stderr
    other = privstats("table", names[-1], "--reader", "table-one", "--reference", "stage=c", cwd=tmp_path)
    assert "not table-one" in other.stderr


@pytest.mark.ci
@pytest.mark.parametrize("what", ["classes", "rounds"])
def test_a_classifier_of_declared_columns_is_a_scorecard(privstats, tmp_path, what):
    names = declared(tmp_path, what)
    assert "Scorecard from a release" in privstats("table", *names, "--figure", "card.svg", cwd=tmp_path, code=0).stdout
    assert (tmp_path / "card.svg").stat().st_size > 1_000
    facts = json.loads(privstats("table", *names, "--format", "json", cwd=tmp_path).stdout)
    assert facts["reader"] == "scorecard"
    assert {row["variable"] for row in facts["rows"]} == {"", "age", "stage", "smoker"}
    assert {name for row in facts["rows"] for name in row} <= set(ps.inference.FRAME_COLUMNS)
    assert any(row.get("reported") for row in facts["rows"])


def test_a_reader_names_what_it_misses(privstats, folder):
    assert "--time" in privstats("table", "counts.privstats", "--reader", "km", cwd=folder).stderr
    assert "--column" in privstats("table", "counts.privstats", "--reader", "proportions", cwd=folder).stderr
    assert "RidgeSchema" in privstats("table", "counts.privstats", "--reader", "ols", cwd=folder).stderr


def test_json_is_one_object_with_finite_numbers_or_null(privstats, folder):
    facts = json.loads(privstats("table", "noisy.privstats", "--format", "json", cwd=folder).stdout)
    assert {row["term"] for row in facts["rows"]} == {"const", "x0", "x1", "x2"}
    assert all(row["conf_low"] is None for row in facts["rows"] if not row["reported"])
    hidden = privstats("table", "noisy.privstats", "--format", "json", "--alpha", "0.000001", cwd=folder)
    assert [row["estimate"] for row in json.loads(hidden.stdout)["rows"]] == [None] * 4


def test_columns_are_chosen_by_name(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "dose", "--column", "age", cwd=folder)
    assert "2 of 3 released columns" in done.stdout


def test_nothing_told_is_exit_code_1(privstats, folder):
    words = ("table", "noisy.privstats", "--alpha", "0.000001")
    shown = privstats(*words, cwd=folder, code=1)
    done = privstats(*words, "--figure", "hidden.svg", cwd=folder)
    assert (done.returncode, done.stdout) == (1, shown.stdout)
    assert "noise hides every row, so hidden.svg is not drawn" in done.stderr
    assert not (folder / "hidden.svg").exists()


def test_a_wrong_column_is_exit_code_2_and_a_sentence(privstats, folder):
    done = privstats("table", "exact.privstats", "--column", "height", cwd=folder, code=2)
    assert "it has age, dose, site" in done.stderr


def test_without_a_reader_the_first_that_fits_is_taken(privstats, folder):
    for release, title in (
        ("exact", "Linear regression"),
        ("classes", "Means by group"),
        ("sites", "Regression with fixed site effects"),
    ):
        done = privstats("table", f"{release}.privstats", cwd=folder)
        assert done.stdout.startswith(title), done.stdout + done.stderr
    assert (
        "--reader km needs --time and --event, and --times" in privstats("table", "counts.privstats", cwd=folder).stderr
    )


def test_a_curve_is_drawn_beside_its_table(privstats, folder):
    words = ("table", *READERS["km"], "--figure", "km.svg")
    privstats(*words, "--times", "continuous", cwd=folder, code=0)
    assert "<svg" in (folder / "km.svg").read_text()
    assert "end its name with" in privstats(*words[:-1], "km.docx", cwd=folder).stderr
    words = ("table", *READERS["proportions"], "--reader", "proportions", "--figure", "km.svg")
    assert "cannot draw" in privstats(*words, cwd=folder).stderr


def test_ratios_are_drawn_as_survival_by_arm_or_as_a_forest_and_said_what_they_are_not(privstats, folder):
    names = []
    for place, release in enumerate(hazards.played(hazards.course_of(4_000, 8.0), hazards.world(4_000), 1)):
        names.append(f"{place}.privstats")
        release.save(folder / names[-1])
    done = privstats("table", *names, "--figure", "km.svg", "--format", "csv", cwd=folder)
    assert (done.returncode, done.stderr.startswith("A hazard ratio is not a causal effect")) == (0, True)
    assert "survival" in (folder / "km.svg").read_text()
    assert privstats("table", *names, "--figure", "forest.svg", "--forest", cwd=folder).returncode == 0
    assert "<!-- exploratory -->" in (folder / "forest.svg").read_text()
    paragraph = privstats("table", *names, "--methods", cwd=folder).stdout
    assert "Prentice and Gloeckler" in paragraph
    assert ps.Release.load(folder / names[-1]).plan.digest in paragraph
    facts = json.loads(privstats("table", *names, "--format", "json", cwd=folder).stdout)
    assert facts["caution"].startswith("A hazard ratio is not")
    assert facts["methods"] == paragraph.strip()
    assert "is for --reader effect" in privstats("table", *names, "--balance", cwd=folder).stderr
    assert "is for --reader hazards" in privstats("table", "exact.privstats", "--forest", cwd=folder).stderr
    wrong = privstats("table", *names, "--gaps-as-cells", cwd=folder)
    assert "--gaps-as-cells is for ols, logit and poisson, not hazards; omit it" in wrong.stderr


def test_an_effect_has_its_row_its_balance_and_their_pictures(privstats, folder):
    names = []
    for place, release in enumerate(
        effects.played(effects.course_of(2_000, 3.0), *effects.world(2_000, np.random.default_rng(0)), seeded(0))
    ):
        names.append(f"{place}.privstats")
        release.save(folder / names[-1])
    assert privstats("table", *names, "--figure", "forest.svg", cwd=folder).returncode == 0
    assert "<!-- exploratory -->" in (folder / "forest.svg").read_text()
    done = privstats("table", *names, "--balance", "--figure", "balance.svg", cwd=folder, code=0)
    assert "Balance of both arms" in done.stdout
    assert "before any weighting" in done.stdout
    assert "standardised difference" in (folder / "balance.svg").read_text()
    facts = json.loads(privstats("table", *names, "--balance", "--format", "json", cwd=folder).stdout)
    assert [row["variable"] for row in facts["rows"]] == list(effects.RANGES)
    assert "no Methods paragraph" in privstats("table", *names, "--balance", "--methods", cwd=folder).stderr


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_has_a_paragraph_for_a_paper(privstats, folder, reader):
    done = privstats("table", *READERS[reader], "--reader", reader, "--methods", cwd=folder, code=0)
    digest = ps.Release.load(folder / READERS[reader][0]).plan.digest
    for part in (digest, "Software: privstats", "Assumed: ", "were not pooled"):
        assert part in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("reader", READERS)
def test_a_csv_file_holds_the_rows_as_data(privstats, folder, reader):
    given = ("table", *READERS[reader], "--reader", reader)
    privstats(*given, "--out", "rows.csv", cwd=folder, code=0)
    assert (folder / "rows.csv").read_text() == privstats(*given, "--format", "csv", cwd=folder).stdout


def test_a_table_is_written_to_a_file_and_never_over_one(privstats, folder, monkeypatch):
    given = ("table", *READERS["km"], "--reader", "km")
    done = privstats(*given, "--out", "curves.tex", "--methods", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "curves.tex is written\n"), done.stderr
    text = (folder / "curves.tex").read_text()
    assert r"\toprule" in text
    assert "Software: privstats" in text
    assert "curves.tex exists" in privstats(*given, "--out", "curves.tex", cwd=folder).stderr
    assert privstats(*given, "--out", "curves.tex", "--force", cwd=folder).returncode == 0
    assert "ends otherwise" in privstats(*given, "--out", "curves.pdf", cwd=folder).stderr
    assert "omit --format" in privstats(*given, "--out", "curves.csv", "--format", "csv", cwd=folder).stderr
    monkeypatch.setenv("PATH", str(folder))
    assert "pandoc, which is not on the PATH" in privstats(*given, "--out", "curves.docx", cwd=folder).stderr


def test_groups_of_count_tables_are_a_first_table(privstats, folder):
    done = privstats("table", "counts.privstats", "--reader", "table-one", "--by", "sex", cwd=folder, code=0)
    assert "f, n (%)" in done.stdout
    assert "Yang and Dalton" in done.stdout
    assert "need by=" in privstats("table", "counts.privstats", "--reader", "table-one", cwd=folder).stderr


def test_counts_by_group_without_times_are_a_first_table(privstats, folder):
    done = privstats("table", "counts.privstats", "--by", "sex", cwd=folder, code=0)
    assert done.stdout.startswith("Cells by sex from a release")
    bare = privstats("table", "counts.privstats", cwd=folder)
    assert "for table-one pass --by alone" in " ".join(bare.stderr.split())


def test_a_column_of_0_and_1_and_the_order_are_said_on_the_command_line(privstats, tmp_path):
    X = np.column_stack([np.linspace(0, 1, 200), np.arange(200) % 3 == 0])
    schema = ps.ClassSchema(2, 2, "NAD", 2.0, class_names=("old", "new"), feature_names=("dose", "smokes"))
    labels = np.array(["old", "new"])[np.arange(200) % 2]
    ps.Release.exact(schema, ps.measure(schema, X, labels)).save(tmp_path / "r.privstats")
    words = ("table", "r.privstats", "--binary", "smokes", "--column", "smokes", "--column", "dose", "--format")
    rows = json.loads(privstats(*words, "json", cwd=tmp_path).stdout)["rows"]
    assert [(row["variable"], row["level"]) for row in rows] == [("smokes", "1")] * 2 + [("dose", "")] * 2
    read = list(csv.DictReader(io.StringIO(privstats(*words, "csv", cwd=tmp_path).stdout)))
    assert [[row[name] for name in ("variable", "level", "group")] for row in read] == [
        [row[name] for name in ("variable", "level", "group")] for row in rows
    ]
    for row, cells in zip(rows, read, strict=True):  # full digits, one number a cell
        numbers = {name: value for name, value in row.items() if isinstance(value, float)}
        assert {name: float(cells[name]) for name in numbers} == numbers
        assert all(cells[name] == "NA" for name, value in row.items() if value is None)
    refused = privstats("table", "r.privstats", "--binary", "dose", cwd=tmp_path)
    assert (refused.returncode, "no column of 0 and 1" in " ".join(refused.stderr.split())) == (2, True)
