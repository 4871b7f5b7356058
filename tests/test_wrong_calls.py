"""Natural mistakes over the whole public surface: each ends in one sentence that names the field and a remedy.

A row is the mistake, the words that the sentence must hold, and nothing else; add yours where its call is made.
"""

import math
import os
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import privstats as ps
from privstats import dp, heads, transforms
from privstats.contrib.personal import Personal, with_local_transform
from privstats.contrib.streams import PersonRows
from privstats.contrib.sweep import Axes, study, sweep
from privstats.contrib.sweep import Frame as Numbers
from privstats.encoding import Ring
from privstats.errors import PrivstatsError
from privstats.kinds import KINDS
from privstats.moments import quantize
from privstats.randomness import seeded
from privstats.review import difference
from privstats.transforms import base
from privstats.workflows.report import Statement, finder
from privstats.workflows.simulate import dirichlet_partition
from privstats.workflows.suggest import suggest
from tests import made
from tests.numerics.bits import SAMPLERS

TEXT = files("privstats.cli").joinpath("plan.toml").read_text("utf-8")
X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 3
SCHEMA = ps.ClassSchema(3, 4, "NAB", 8.0)
NAMED = ps.ClassSchema(3, 4, "NAB", 8.0, class_names=("ash", "beech", "elm"), feature_names=("a", "b", "c", "d"))
RIDGE = ps.RidgeSchema(4, clip_norm=8.0, target_bound=3.0)
GAUSSIAN = ps.GaussianSchema(4, 8.0, shrinkage=0.1, rounds=2)
COHORT = ps.Cohort(clients=3, min_survivors=2, max_records=100)
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
PLAN = ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=ps.NoPrivacy())
PRIVATE = ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=PRIVACY)
CENTRED = ps.Plan(schema=ps.ClassSchema(3, 4, "NAB", 1.0), cohort=COHORT, privacy=PRIVACY)
SHARDS = [(X[k::3], Y[k::3]) for k in range(3)]
RELEASE = ps.simulate(PLAN, SHARDS)
HEAD = heads.LDA().fit_release(RELEASE)
_MEAN = ps.MeanSchema(PLAN.schema.features, PLAN.schema.clip_norm)
MEAN = ps.Release.exact(_MEAN, ps.measure(_MEAN, SHARDS[0][0], SHARDS[0][1]))
IDENTITY = ps.secagg.Identity.generate(os.urandom)
PUBLICS = [IDENTITY.public, *(ps.secagg.Identity.generate(os.urandom).public for _ in range(2))]
SERVER = ps.secagg.Identity.generate(os.urandom)
ROSTER = ps.secagg.Roster(PUBLICS, server=SERVER.public, run=b"may")
SCORED = {"LDA": heads.LDA}


def class_schema(**changes: Any) -> Any:
    return ps.ClassSchema(**{"classes": 3, "features": 4, "statistics": "NAB", "clip_norm": 1.0} | changes)


def ridge_schema(**changes: Any) -> Any:
    return ps.RidgeSchema(**{"features": 4, "clip_norm": 1.0, "target_bound": 1.0} | changes)


def privacy(**changes: Any) -> Any:
    return made.promise(**changes)


def plan(**changes: Any) -> Any:
    return ps.Plan(**{"schema": SCHEMA, "cohort": COHORT, "privacy": PRIVACY} | changes)


def swept(**changes: Any) -> Any:
    right = {"plan": PRIVATE, "train": (X, Y), "test": (X, Y), "heads": SCORED, "epsilons": [1.0], "repeats": 2}
    return sweep(**right | changes)


def private_head(head: Any, **changes: Any) -> Any:
    terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 4.0, "ledger": "uncharged"}
    return heads.Private(head, **terms | changes)


class Frame:
    columns = ("d", "c", "b", "x")


Row = tuple[Callable[[], Any], str]
ROWS: list[Row] = [
    # schema
    (lambda: class_schema(classes=["a"]), "classes must be an integer of at least 2, got list"),
    (lambda: class_schema(features=4.0), "features must be an integer of at least 2"),
    (lambda: class_schema(transform=(transforms.UnitNorm,)), "transform must be a tuple of maps"),
    (lambda: class_schema(feature_names=("a", "a", "b", "c")), "feature_names holds 'a' twice; .* once"),
    (lambda: ridge_schema(missing="mean"), "missing must be 'left out', .* got 'mean'"),
    (
        lambda: ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), trim=0.1, missing="weights"),
        "missing='weights' needs a trial with one probability of treatment.* use complete records",
    ),
    (lambda: ridge_schema(target_bound=None), "target_bound must be a number between"),
    # transforms
    (lambda: transforms.Centre(np.zeros((2, 2))), "centre must be a list of finite numbers.* public data"),
    (lambda: transforms.Centre(()), "centre must be a list of finite numbers"),
    (lambda: transforms.ConstantFeature(0), "must be a finite number and not 0; 1 gives"),
    (lambda: transforms.GaussianProjection("7", 4, 2), "needs seed as an integer of at least 0"),
    (lambda: transforms.RandomReLU(0, 4, 0), "needs features as an integer of at least 1"),
    (lambda: transforms.OrthogonalProjection(0, 4, 9), "at most 4 features from 4; lower features"),
    (lambda: transforms.RandomFourier(0, 4, 2, bandwidth=0), "needs bandwidth as a number between"),
    (lambda: transforms.RandomReLU(0, 4, 2, keep_inputs="no"), "keep_inputs .*True or False"),
    (lambda: transforms.SparseProjection(0, 4, 2, sparsity=1.5), "needs sparsity as an integer"),
    (lambda: transforms.from_builtins([{"kind": "fft"}]), "kind 'fft' is unknown; use one of by-arm, cells, centre"),
    (lambda: ps.WithinSchema(3, 4, 8.0, pull=math.inf, n_max=9), "pull must be a number between"),
    (lambda: ps.WithinSchema(3, 4, 8.0, pull=0, n_max="9"), "n_max must be an integer of at least 1"),
    (lambda: ps.CalibrationSchema(4, 3, expected_records=9, course_mu=1.0, clip_norm=2.0), "leave clip_norm at 1"),
    (lambda: ps.PartySchema(1, 4), "classes must be at least 2, got 1: .* set two or more"),
    (
        lambda: ps.Plan(schema=ps.PartySchema(3, 4), cohort=COHORT, privacy=PRIVACY),
        'set unit="client" with max_records_per_client=1, or measure a ClassSchema',
    ),
    (lambda: heads.PartyDiscriminant().fit_private(X, Y), r"use LDA\(\).fit_private"),
    (
        lambda: heads.RefinedSoftmax(module="mlp").fit(X, Y),
        "module must be None or a module's KIND/SIZE, such as 'mlp/64', got 'mlp'",
    ),
    (
        lambda: heads.RefinedSoftmax(module="perceptron/4").fit(X, Y),
        "module = 'perceptron/4' needs the module 'perceptron', which no installed package ann.*, or omit module",
    ),
    (lambda: heads.RefinedSoftmax(module="mlp/4", calibrated=True).fit(X, Y), "leave calibrated out, or module"),
    (
        lambda: heads.RefinedSoftmax().fit_private(
            X, Y, epsilon=1.0, delta=1e-5, adjacency="add-remove", centred=True, ledger="uncharged"
        ),
        "leave centred out, or give it to LDA",
    ),
    # alignment and personal heads
    (lambda: ps.Stream("plan.toml", 4), "plan must be a Plan"),  # type: ignore[arg-type]
    (lambda: ps.Alignment.within(PLAN), "first must be a Plan of a Gaussian"),
    (lambda: ps.inference.effects(RELEASE), "pass the list of all releases of the course"),
    (lambda: ps.Hazard.within(PRIVATE), "plan must be a Plan of a HazardSchema"),
    (lambda: ps.inference.hazards(RELEASE), "pass the list of all releases of the course"),
    (lambda: ps.course.write(CENTRED, "course.toml"), "a course is written to a path"),
    (lambda: ps.Plan(schema=GAUSSIAN, cohort=COHORT, privacy=PRIVACY), "no useful bound"),
    (lambda: Personal(heads.Ridge()).fit(X, Y), "head must be a classification head"),
    (
        lambda: ps.session.Charge(dp.Ledger("none"), "ward", multiplicity="2"),  # type: ignore[arg-type]
        "multiplicity must be an integer",
    ),
    (lambda: with_local_transform(HEAD, transforms.UnitNorm()), "has no such transform"),
    # cohort; tests/plan/test_settings.py has wrong values of each setting of a plan, from its row
    (lambda: ps.Cohort(3, 4, 10), "exceeds cohort.clients=3; lower min_survivors"),
    (lambda: ps.Cohort(3, 2, 10, 2), "lower colluders or raise min_survivors"),
    # privacy
    (lambda: privacy(epsilon="1"), "epsilon must be a number, got the text '1'; remove the quotes"),
    (lambda: privacy(epsilon=0), "epsilon must be between 0.001 and 100"),
    (lambda: privacy(delta=1e-16), "delta must be between .* give 0, .*below 1 / records"),
    (lambda: privacy(unit="client"), "max_records_per_client must be an integer .* with unit='client'"),
    (
        lambda: privacy(unit="person"),
        "person_clip must be given with unit='person', got None: 'average' for intervals",
    ),
    (
        lambda: privacy(unit="person", max_records_per_person=4, person_clip=0.5),
        "person_clip must be between 1 and 4, got 0.5",
    ),
    (lambda: ps.measure(SCHEMA, X, Y, persons=Y), "persons= and person_clip= go together: give an"),
    (
        lambda: ps.measure(SCHEMA, X, Y, persons=Y, person_clip="average"),
        "must be plan.person_clip, got str",
    ),
    (
        lambda: ps.measure(SCHEMA, X, ps.moments.RecordFile("a.csv")),
        "a RecordFile cannot be y: pass it as X, with its target",
    ),
    (
        lambda: ps.measure(SCHEMA, ps.moments.RecordFile("a.csv", persons="id")),
        "a.csv has persons=, which is not read here: pass X and y of its read",
    ),
    (
        lambda: alone(X=ps.moments.RecordFile("a.csv", split=0.5), y=None),
        "a.csv has (a split, which counts equal|split=, which is not read here)",  # with an engine of parts, or without
    ),
    (lambda: fitted(X=ps.moments.RecordFile("a.csv"), y="ill"), "no such file .*a.csv"),
    (lambda: ps.moments.RecordFile(""), "the path is empty; name a file with records"),
    (lambda: privacy(shares={"N": 0.5}), "shares must sum to 1, got 0.5: divide each"),
    (lambda: privacy(shares=[0.5, 0.5]), "shares must be a table of statistic = share"),
    # plan
    (lambda: plan(schema=X), "schema must be a schema of .* ClassSchema or .*, got ndarray"),
    (lambda: plan(cohort=3), "cohort must be a Cohort, got int"),
    (lambda: plan(privacy=None), "privacy must be a Privacy or NoPrivacy, got NoneType"),
    (lambda: plan(privacy=ps.NoPrivacy), "privacy must be a Privacy or NoPrivacy"),
    (lambda: plan(min_count=1, merge={2: 2}), "merge must map a class to another class in 0..2"),
    (lambda: plan(graph="ring"), "graph must be one of auto, complete, sparse"),
    (lambda: released(openings=[b"seed"]), r"pass server\.openings"),
    (lambda: released(openings={0: b"seed"}), r"pass server\.openings"),
    (lambda: ps.Plan.from_toml(Path("plan.toml")), r"text of a plan, got PosixPath; .* Plan.read\(path\)"),
    (lambda: ps.Plan.from_toml("plan.toml"), r"looks like a path.* Plan.read\(path\)"),
    (lambda: ps.Plan.from_toml(TEXT.encode()), "text of a plan, got bytes; decode it, or use Plan.read"),
    (lambda: ps.Plan.from_toml(None), "text of a plan, got NoneType"),
    (lambda: ps.Plan.read(TEXT), "Plan.read needs the path of a plan file.* Plan.from_toml"),
    (lambda: ps.Plan.read("nowhere.toml"), "cannot read nowhere.toml: No such file"),
    (lambda: ps.Plan.read(Path.cwd()), "cannot read .*: Is a directory"),
    (lambda: ps.Plan.read("plan\0.toml"), "the path must not hold a null character; check it"),
    (
        lambda: ps.Plan.read(written(b"#" * (1 << 22 | 1))),
        "more than 4,194,304 bytes; give a file written by `privstats plan init`",
    ),
    (lambda: ps.Plan.read(written(b"\xe4")), "is not UTF-8 text; save it as UTF-8"),
    (lambda: ps.Plan.read(3), "Plan.read needs the path of a plan file, got int"),
    (lambda: ps.Plan.from_toml(TEXT.replace("colluders", "coluders")), "did you mean colluders"),
    (lambda: ps.Plan.from_toml(TEXT.replace("version = 1", "version = 9")), "version must be 1, got 9"),
    # measure
    (lambda: ps.measure(X, Y), r"schema must be .* got ndarray; call measure\(schema, X, y\)"),
    (lambda: ps.measure(PLAN, X, Y), "got Plan; give plan.schema"),
    (lambda: ps.measure(SCHEMA, X), "y is missing; give labels or targets next to X"),
    (lambda: ps.measure(SCHEMA, X[:, :2].tolist()), "got 0 dimensions; if X has one row per record, pass y too"),
    (lambda: ps.measure(SCHEMA, {"a": X[:, 0]}, Y), r"needs rows: give pandas\.DataFrame"),
    (
        lambda: ps.measure(NAMED, dict(zip("abcd", X.T, strict=True)), Y, unreadable="leave out"),
        "X is a mapping of columns, which only declared columns and counts accept",
    ),
    (lambda: ps.measure(SCHEMA, X, ["ill"] * 60), "y must hold integers 0..2.* give class_names"),
    (
        lambda: ps.measure(NAMED, X, Y),
        "at position 0 that is not among class_names; the classes are 'ash', 'beech', 'elm'",
    ),
    (lambda: ps.measure(NAMED, X, ["oak"] * 60), "at position 0 that is not among class_names; .* correct"),
    (lambda: ps.measure(NAMED, Frame(), ["ash"]), "X lacks 'a'; pass exactly the columns of the plan"),
    (lambda: ps.measure(SCHEMA, X, Y + 1), "y has labels outside 0..2; give class_names"),
    (lambda: ps.measure(SCHEMA, X, Y[1:]), "X has 60 rows but y has 59; give one label"),
    (lambda: ps.measure(SCHEMA, X[0], Y[0]), r"X must have shape \(records, features\).* reshape it"),
    (lambda: ps.measure(SCHEMA, np.full((3, 4), np.nan), [0, 1, 2]), "X holds NaN.* remove or impute"),
    (lambda: ps.measure(SCHEMA, np.full(X.shape, "x"), Y), "X must hold real numbers.* convert it"),
    (lambda: ps.measure(SCHEMA, None, Y), r"X must have shape \(records, features\)"),
    (lambda: ps.measure(SCHEMA, "nowhere.npy", Y), "X cannot be read from its file"),
    (lambda: quantize(X, X), r"schema must be .* call quantize\(schema, X\)"),
    (lambda: ps.measure(SCHEMA, X, Y) + ps.measure(class_schema(), X, Y), "different schemas"),
    (lambda: PersonRows.of(X, Y, "anna"), "persons must be an id for each row"),
    (lambda: PersonRows.of(X, Y, Y[1:]), "ids, and X or y another number of rows"),
    (lambda: PersonRows.of(3.0, Y, Y), "X must be an array with one row for each id"),
    # simulate
    (lambda: ps.simulate(PLAN, X, Y), r"shards must be a list with one \(X, y\).* got ndarray"),
    (lambda: ps.simulate(PLAN, [X[:20], X[20:40], X[40:]], Y), r"simulate\(plan, \[\(X, y\), ...\]\)"),
    (lambda: ps.simulate(PLAN, [X[:20], X[20:40], X[40:]]), r"shards\[0\] must be \(X, y\) or moments, got ndarray"),
    (lambda: ps.simulate(PLAN, SHARDS[:2]), "cohort.clients=3 but 2 shards came; pass one per client"),
    (lambda: ps.simulate(SCHEMA, SHARDS), "plan must be a Plan, got ClassSchema"),
    (lambda: ps.simulate(PLAN, SHARDS, rng=7), "rng must be a .*Generator or None, got .*int; use"),
    (lambda: ps.simulate(PLAN, SHARDS, {"send": {1}}), "unknown step 'send'; the steps are advertise"),
    (lambda: ps.simulate(PLAN, SHARDS, {"mask": {9}}), r"clients \[9\] .* clients are 0..2"),
    (lambda: ps.simulate(PLAN, SHARDS, [1, 2]), "dropouts must map steps to sets of clients"),
    (lambda: ps.simulate(PLAN, SHARDS, {"mask": {"1", 2}}), "dropouts names clients"),
    (lambda: ps.simulate(PLAN, [(X, Y)] * 3), "max_records=100; raise it in the plan"),
    (lambda: dirichlet_partition(Y, 0, 1.0, seeded(0)), "clients must be at least 1, got 0"),
    (lambda: dirichlet_partition(Y, 2, 0.0, seeded(0)), "alpha must be above 0"),
    # release
    (lambda: ps.Release.load("nowhere"), "cannot read nowhere: No such file"),
    (lambda: ps.Release.load(__file__), "is not a privstats release; give a file written by Release.save"),
    (lambda: loaded(signed_by=b"short"), "signed_by must be .* 32 bytes, .*got 5"),
    (
        lambda: loaded(signed_by="ab" * 16),
        "signed_by must be an Ed25519 public key or its 32 bytes, in hex or as PEM, got str",
    ),
    (lambda: loaded(signed_by=Ed25519PrivateKey.generate()), "signed_by must be an Ed25519 public key"),
    (lambda: loaded(signed_by=b"k" * 32), "is not signed by the key you trust; ask its maker"),
    (lambda: RELEASE.save("release", signer="me"), "signer must be an Ed25519 private key or its 32 bytes, got str"),
    (lambda: RELEASE.save("nowhere/release"), "cannot write nowhere/release: No such file"),
    (lambda: ps.Release(PLAN, None, (0, 1, 2)), "int64 of shape"),
    # session
    (lambda: released(total=Ring(((3, 9),)).zeros()), "total must be a vector of the plan"),
    (lambda: released(total=np.zeros(5)), "total must be a vector of the plan's ring"),
    (lambda: released(survivors=3), "survivors must be a tuple of client numbers, got int"),
    (lambda: released(survivors=np.arange(3)), "survivors must be a tuple .* got ndarray"),
    (lambda: released(plan=SCHEMA), "plan must be a Plan, got ClassSchema"),
    (lambda: released(charge=np.zeros(3)), "charge must be Charge.* got a ndarray"),
    (
        lambda: ps.session.Charge(dp.Ledger("none"), "ward", allow_second_exact_release="no"),
        "allow_second_exact_release must be True or False, got str",
    ),
    (lambda: joined(plan="plan.toml"), "plan must be a Plan, got str"),
    (lambda: joined(index="0"), "index must be an integer, .* got str"),
    (lambda: joined(identity=IDENTITY.public), "identity must be an Identity, .* got bytes"),
    (lambda: joined(roster=[IDENTITY.public]), "roster must be a Roster, got list"),
    (lambda: serving(plan="plan.toml"), "plan must be a Plan, got str"),
    (lambda: serving(identity=IDENTITY.public), "identity must be an Identity, .* got bytes"),
    (lambda: serving(roster=[IDENTITY.public]), "roster must be a Roster, got list"),
    (lambda: ps.session.aggregate_unmasked(PLAN, ps.measure(SCHEMA, X, Y)), "parts must be a list .* ClassMoments"),
    (lambda: ps.session.contribution(SCHEMA, ps.measure(SCHEMA, X, Y)), "plan must be a Plan, got ClassSchema"),
    (lambda: ps.session.contribution(PLAN, (X, Y)), "moments must be the result of measure, got tuple"),
    (lambda: ps.session.helper_noise(SCHEMA), "plan must be a Plan, got ClassSchema"),
    # heads
    (lambda: named_head().score(X, Y), "y holds labels of another kind than classes_"),
    (lambda: heads.LDA().fit_release(MEAN), "holds no class sums .N, A.; give the release of a"),
    (lambda: heads.Ridge().fit_release(MEAN), "holds no ridge sums"),
    (lambda: heads.Ridge().fit_release(RELEASE), "holds class sums; use heads.RidgeClassifier"),
    (lambda: heads.LDA().fit_release(RELEASE, labels=["a"]), "labels must name each of the 3 classes"),
    (
        lambda: heads.LDA().fit_release(RELEASE, public=X),
        r"public must be a pair \(X, y\) of public records, got ndarray",
    ),
    (lambda: heads.RidgeClassifier(penalty="folds").fit(X, Y), "penalty must be a finite number"),
    (lambda: HEAD.predict(X[:, :3]), "X has 3 features, but LDA is expecting 4 features"),
    (lambda: named_head().predict(Frame()), "X lacks 'a'; pass exactly the columns"),
    (lambda: heads.fisher_subspace(RELEASE, "all"), "dimension must be 'auto'"),
    (lambda: heads.expected_calibration_error(HEAD, X, Y, bins=0), "bins must be at least 1, got 0; 15 is usual"),
    (lambda: heads.log_likelihood(HEAD, X, Y + 7), "labels that the head does not know.* leave"),
    (lambda: heads.load("nowhere"), "cannot read nowhere"),
    (lambda: heads.to_linear(3), "to_linear takes a fitted head of privstats.heads, got int; fit one"),
    # dp
    (lambda: dp.operating_point(1.0, 2), "false_positive_rate must be between 0 and 1, got 2"),
    (lambda: dp.operating_point(-1.0), "mu must be at least 0"),
    (lambda: dp.gaussian_mu(-1.0, 1e-5), "epsilon must be finite and at least 0, got -1"),
    (lambda: dp.drop_probability("9", 5, 1.0), "count must be a finite number, got '9'"),
    (lambda: dp.doubtful_counts("9", 1.0), "min_count must be a finite number, got '9'"),
    (lambda: dp.drop_probability(9, 5, -1.0), "sigma must be at least 0, got -1.0"),
    (lambda: dp.doubtful_counts(5, 1.0, 2), "probability must be between 0 and 1/2, got 2"),
    (lambda: dp.optimal_shares(PLAN, "add-remove"), "schema must be .*; give plan.schema"),
    (lambda: dp.optimal_shares(SCHEMA, "add"), "adjacency must be 'add-remove' or 'replace-one'"),
    (lambda: dp.compose(1.0), "mus must be several numbers, got float"),
    (lambda: dp.compose(["1"]), "mu must be at least 0, got '1'"),
    (lambda: PRIVATE.noise.released_epsilon(0), "survivors must be an integer of at least 1, got 0"),
    (lambda: dp.gaussian_epsilon(1.0, 1.0), "delta must be strictly between 0 and 1, got 1"),
    (lambda: dp.gaussian_delta("1", 1.0), "mu must be finite and above 0, got '1'"),
    (
        lambda: dp.joint_mu(SCHEMA, {"N": 1.0, "A": 1.0, "B": 1.0}, "swap"),
        "adjacency must be 'add-remove' or 'replace-one', got 'swap': choose one",
    ),
    (lambda: dp.joint_mu(SCHEMA, {}, "add-remove"), "noise is given for no statistic.*: name only those"),
    (
        lambda: dp.joint_mu(SCHEMA, {"N": 0.0, "A": 1.0, "B": 1.0}, "add-remove"),
        "sigma of N must be finite and above 0, got 0",
    ),
    (lambda: dp.joint_mu(SCHEMA, {"A": math.inf}, "add-remove"), "sigma of A must be finite"),
    (
        lambda: dp.sensitivity(SCHEMA, "S", "add-remove"),
        "given for S, but the schema measures N, A, B: name only those",
    ),
    (lambda: dp.default_shares(PLAN), "schema must be a schema of .* ClassSchema or .*, got Plan; give plan.schema"),
    (lambda: dp.discrete_gaussian(-1.0, 3, seeded(0)), "sigma must be above 0 and at most 2"),
    (lambda: dp.discrete_laplace(0.0, 3, seeded(0)), "scale must be above 0 and at most 2"),
    (lambda: dp.l1_sensitivity(SCHEMA, "B", "add-remove"), "a ClassSchema sends B: omit it, or give a"),
    (lambda: dp.l1_sensitivity(SCHEMA, "N", "swap"), "adjacency must be .*, got 'swap': choose"),
    (lambda: dp.joint_epsilon(SCHEMA, {}, "add-remove"), "scales is empty.*: give the"),
    (lambda: dp.joint_epsilon(SCHEMA, {"N": -1.0}, "add-remove"), "scale of N must be finite and"),
    (lambda: dp.pure_mu(-1.0), "epsilon must be finite and at least 0, got -1"),
    (lambda: dp.discrete_gaussian(1.0, 3.5, seeded(0)), "size must be an integer"),
    (lambda: dp.rounded_gaussian(1.0, 3, np.random.default_rng(0)), "rng must be a .*Generator"),
    # one party alone
    (lambda: alone(schema=X), r"schema must be .* call private_release\(schema, privacy"),
    (lambda: alone(privacy=ps.NoPrivacy()), "privacy must be a Privacy here; exact sums"),
    (lambda: alone(privacy=1.0), "privacy must be a Privacy, got float; give model"),
    (lambda: alone(privacy=privacy(model="distributed")), "must be 'central' for one party alone"),
    (
        lambda: alone(privacy=privacy(unit="client", max_records_per_client=3)),
        "must be 'record' or 'person' for one party",
    ),
    (lambda: alone(ledger=None), r"give ledger=Charge\(ledger, dataset\).*='uncharged'"),
    (lambda: alone(ledger="spent.db"), "ledger must be a Ledger.* got the text 'spent.db'"),
    (lambda: alone(dataset="ward"), "dataset names an account of a Ledger: give ledger="),
    (lambda: alone(ledger=dp.Ledger("nowhere.db")), "nowhere.db"),
    (lambda: alone(y=None), "y is missing; give labels or targets next to X"),
    (lambda: alone(max_records=9), "max_records=9"),
    (lambda: ps.private_releases(PRIVATE, X, Y, ledger="uncharged"), "course must be a Course"),
    (lambda: fitted(adjacency=None), "adjacency must be one of 'add-remove', .*: choose one"),
    (lambda: fitted(epsilon="small"), "epsilon must be a number, got the text 'small'; remove"),
    (lambda: fitted(clip_norm=None), "clip_norm must be a number between"),
    (lambda: fitted(classes=["none", "NONE", "many"]), "classes holds 'NONE' and 'none', which are read as one value"),
    (lambda: fitted(X=[(X, Y)], y=None, classes=None), "give classes="),
    (
        lambda: heads.Ridge(solver="svd").fit_private(
            X, X[:, 0], epsilon=1.0, delta=1e-5, clip_norm=5.0, target_bound=3.0, adjacency="add-remove"
        ),
        "solver must be 'auto', 'aggregate', 'plain'",
    ),
    # plans side by side, studies, pages
    (lambda: difference(PLAN, "plan.toml"), "after must be a Plan, got str; read one with"),
    (lambda: Axes(epsilon=1.0), r"epsilon must be a list of values, for example \[1.0\]"),
    (lambda: Axes(model="central"), r"model must be a list .*\['central'\], got str"),
    (lambda: Axes(alpha=[0]), "alpha must hold numbers above 0; .05 is extreme skew"),
    (lambda: studied(clients=[1]), "clients must hold integers of at least 2, got 1"),
    (lambda: Numbers(("a",), ())["b"], "there is no column 'b'; the columns are a"),
    (
        lambda: Statement(PRIVATE, RELEASE),
        "the release was made under another plan.* pass the plan that it was made under",
    ),
    (lambda: finder("nonsense"), "--nonsense needs the finder 'nonsense', which no installed package announces"),
    (lambda: ps.workflows.tables.read("km", RELEASE, tme="months"), "km has no option 'tme'; it has alpha, by, time"),
    (lambda: ps.workflows.tables.read("cox", RELEASE), "reader must be one of .*ols, .*, got 'cox'"),
    (lambda: ps.workflows.tables.read("table-one", RELEASE, time="months"), "time is for reader km, not table-one"),
    # sweep and suggest
    (lambda: swept(epsilons=[]), "a sweep needs at least one epsilon"),
    (lambda: swept(epsilons=[-1.0]), "epsilon must be between"),
    (lambda: swept(epsilons=1.0), "epsilons must be a list of numbers, .* got float"),
    (lambda: swept(repeats=1), "repeats of at least 2, so that there is a spread"),
    (lambda: swept(repeats=2.5), "repeats must be an integer"),
    (lambda: swept(heads=["LDA"]), "heads must map names to heads, .* got list"),
    (lambda: swept(heads={"LDA": heads.LDA()}), r"heads\['LDA'\] must return a new head .* got LDA"),
    (lambda: swept(train=(X[:0], Y[:0])), "train holds no records; pass"),
    (lambda: swept(test=(X[:0], Y[:0])), "test holds no records; pass"),
    (lambda: swept(test=(X[:, :3], Y)), "test: X has 3 features but the schema has 4"),
    (lambda: swept(test=(X, Y[1:])), "test: X has 60 rows but y has 59"),
    (lambda: swept(train=X), r"train must be a pair \(X, y\), got ndarray"),
    (lambda: swept(plan=PLAN), "no epsilon to sweep: choose central, distributed or local"),
    (lambda: swept(plan=SCHEMA), "plan must be a Plan, got ClassSchema"),
    (lambda: suggest(X[:5]), "at least 20 records and 2 features; pass more"),
    (lambda: suggest(X, Y / 2), "y must hold integers or texts, got dtype float64"),
    (lambda: suggest(X, Y * 0), "y has one class only; two are needed"),
    (lambda: suggest(X, Y, tolerance=5), "tolerance must be between 0 and 1.* 0.005"),
    (lambda: suggest(X, Y, tolerance="5"), "tolerance must be between 0 and 1"),
    (lambda: suggest(X, transform=(transforms.Centre((1.0,)),)), "X does not fit the transform"),
]


def alone(**changes: Any) -> Any:
    right = {"schema": SCHEMA, "privacy": PRIVACY, "X": X, "y": Y, "ledger": "uncharged"}
    return ps.private_release(**right | changes)


def fitted(**changes: Any) -> Any:
    right = {"X": X, "y": Y, "epsilon": 1.0, "delta": 1e-5, "clip_norm": 8.0, "adjacency": "add-remove"}
    return heads.LDA().fit_private(**right | {"classes": range(3), "ledger": "uncharged"} | changes)


def studied(**axes: Any) -> Any:
    return study(PRIVATE, (X, Y), (X, Y), SCORED, Axes(**axes), repeats=2, with_baselines=False)


def written(data: bytes) -> Path:
    Path("file").write_bytes(data)
    return Path("file")


def loaded(**how: Any) -> Any:
    RELEASE.save("signed", signer=Ed25519PrivateKey.generate())
    return ps.Release.load("signed", **how)


def joined(**changes: Any) -> Any:
    right = {"plan": PLAN, "moments": ps.measure(SCHEMA, X[:9], Y[:9]), "index": 0}
    return ps.session.client(**{**right, "identity": IDENTITY, "roster": ROSTER, "charge": "uncharged"} | changes)


def serving(**changes: Any) -> Any:
    return ps.session.server(**{"plan": PLAN, "roster": ROSTER, "identity": SERVER} | changes)


def released(**changes: Any) -> Any:
    right = {"plan": PRIVATE, "total": PRIVATE.ring.zeros(), "survivors": (0, 1, 2), "charge": "uncharged"}
    return ps.session.release(**right | changes)


def named_head() -> Any:
    names = np.array(NAMED.class_names)
    named = ps.Plan(schema=NAMED, cohort=COHORT, privacy=ps.NoPrivacy())
    return heads.LDA().fit_release(ps.simulate(named, [(X[k::3], names[Y[k::3]]) for k in range(3)]))


def test_every_sampler_is_among_them() -> None:
    called = {name for call, _ in ROWS for name in call.__code__.co_names}
    assert {each.__name__ for each in SAMPLERS} - called == set()


def of_kinds() -> list[Row]:
    """Every field of every kind's example with a value of no type that it may have."""
    examples: list[Any] = [kind.example() for kind in KINDS.values()]
    return [
        (partial(replace, example, **{field.name: object()}), rf"\b{field.name}\b")
        for example in examples
        for field in fields(example)
        if field.init
    ]


KIND_ROWS = of_kinds()
OWN_MAPS = {name: row for name, row in base.kinds().items() if row.__module__.startswith("privstats.")}


@pytest.mark.parametrize(("call", "words"), [*ROWS, *KIND_ROWS], ids=[words for _, words in [*ROWS, *KIND_ROWS]])
def test_a_wrong_call_is_one_clear_sentence(call, words, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_TRANSFORMS", OWN_MAPS)  # those of other tests would be listed too
    with pytest.raises((PrivstatsError, ValueError), match=words) as caught:
        call()
    ours = isinstance(caught.value, PrivstatsError)
    assert ours or "sklearn" in str(caught.traceback[-1].path), type(caught.value)  # scikit-learn's own where it checks
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert not os.listdir(tmp_path) or ours
