"""Natural mistakes over the whole public surface: each ends in one sentence that names the field and a remedy.

A row is the mistake, the words that the sentence must hold, and nothing else; add yours where its call is made.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import privstats as ps
from privstats import dp, heads, transforms
from privstats.encoding import Ring
from privstats.engines.client_updates import ClientUpdates
from privstats.errors import PrivstatsError
from privstats.moments import quantize
from privstats.plan import difference
from privstats.randomness import seeded
from privstats.workflows.report import Statement, finder
from privstats.workflows.rivals import rivals
from privstats.workflows.simulate import dirichlet_partition
from privstats.workflows.suggest import suggest
from privstats.workflows.sweep import Axes, study, sweep
from privstats.workflows.sweep import Frame as Numbers
from tests import made

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


Row = tuple[str, Callable[[], Any], str]
ROWS: list[Row] = [
    # schema
    ("one class", lambda: class_schema(classes=1), "classes must be at least 2, got 1: .* give two or more"),
    ("classes as text", lambda: class_schema(classes="3"), "classes must be a whole number of at least 2, got '3'"),
    (
        "classes as a list",
        lambda: class_schema(classes=["a"]),
        "classes must be a whole number of at least 2, got list",
    ),
    ("features as a float", lambda: class_schema(features=4.0), "features must be a whole number of at least 2"),
    ("small letters", lambda: class_schema(statistics="nab"), "write them in capitals: 'NAB'"),
    ("statistics as a list", lambda: class_schema(statistics=["N", "A"]), "statistics must be letters out of NABSDTF"),
    ("no counts", lambda: class_schema(statistics="AB"), "statistics must contain N and A; add N"),
    ("clip norm as text", lambda: class_schema(clip_norm="1"), "clip_norm must be a number, .* remove the quotes"),
    ("clip norm 0", lambda: class_schema(clip_norm=0), "clip_norm must be .* choose it from public data"),
    ("clip norm nan", lambda: class_schema(clip_norm=float("nan")), "clip_norm must be a number between"),
    ("a fine grid", lambda: class_schema(grid_bits=21), "grid_bits must be at most 20, got 21; 12 suits most data"),
    ("nonnegative as text", lambda: class_schema(nonnegative="yes"), "nonnegative must be True or False"),
    (
        "a transform's class alone",
        lambda: class_schema(transform=transforms.UnitNorm),
        r"transform must be a tuple .*\(UnitNorm\(\),\)",
    ),
    ("a transform by name", lambda: class_schema(transform=("unit-norm",)), "transform must be a tuple of maps"),
    (
        "a transform's class",
        lambda: class_schema(transform=(transforms.UnitNorm,)),
        "transform must be a tuple of maps",
    ),
    ("names as one text", lambda: class_schema(class_names="abc"), "class_names must be a tuple of texts"),
    (
        "too few names",
        lambda: class_schema(class_names=("a", "b")),
        "class_names holds 2 names but classes=3; name each",
    ),
    (
        "a name twice",
        lambda: class_schema(feature_names=("a", "a", "b", "c")),
        "feature_names holds 'a' twice; .* once",
    ),
    ("many folds", lambda: ridge_schema(folds=65), "folds must be at most 64, got 65.* 5 is plenty"),
    ("no target", lambda: ridge_schema(targets=0), "targets must be at least 1, got 0: a regression needs a target"),
    ("a gap that is filled in", lambda: ridge_schema(missing="mean"), "missing must be 'left out', .* got 'mean'"),
    (
        "missing outcomes of no trial",
        lambda: ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), trim=0.1, missing="weights"),
        "missing='weights' is for trials of one probability: .* state complete cases instead",
    ),
    ("a target bound of None", lambda: ridge_schema(target_bound=None), "target_bound must be a number between"),
    # transforms
    (
        "a centre as a matrix",
        lambda: transforms.Centre(np.zeros((2, 2))),
        "centre must be a list of finite numbers.* public data",
    ),
    ("an empty centre", lambda: transforms.Centre(()), "centre must be a list of finite numbers"),
    ("a constant of 0", lambda: transforms.ConstantFeature(0), "must be a finite number and not 0; 1 gives"),
    ("a seed as text", lambda: transforms.GaussianProjection("7", 4, 2), "needs seed as a whole number of at least 0"),
    ("no features", lambda: transforms.RandomReLU(0, 4, 0), "needs features as a whole number of at least 1"),
    (
        "too many features",
        lambda: transforms.OrthogonalProjection(0, 4, 9),
        "at most 4 features from 4; lower features",
    ),
    ("bandwidth 0", lambda: transforms.RandomFourier(0, 4, 2, bandwidth=0), "needs bandwidth as a number between"),
    ("keep_inputs as text", lambda: transforms.RandomReLU(0, 4, 2, keep_inputs="no"), "keep_inputs .*True or False"),
    (
        "sparsity as a float",
        lambda: transforms.SparseProjection(0, 4, 2, sparsity=1.5),
        "needs sparsity as a whole number",
    ),
    (
        "an unknown kind",
        lambda: transforms.from_builtins([{"kind": "fft"}]),
        "kind 'fft' is unknown; use one of by-arm, cells, centre",
    ),
    ("an endless pull", lambda: ps.WithinSchema(3, 4, 8.0, pull=math.inf, n_max=9), "pull must be a number between"),
    (
        "n_max as text",
        lambda: ps.WithinSchema(3, 4, 8.0, pull=0, n_max="9"),
        "n_max must be a whole number of at least 1",
    ),
    (
        "ten rounds",
        lambda: ps.GaussianSchema(4, 8.0, shrinkage=0.1, rounds=10),
        "rounds must be at most 3, got 10: .* two come near the barycentre",
    ),
    (
        "a calibration of long rows",
        lambda: ps.CalibrationSchema(4, 3, expected_records=9, course_mu=1.0, clip_norm=2.0),
        "leave clip_norm at 1",
    ),
    ("parties of one class", lambda: ps.PartySchema(1, 4), "classes must be at least 2, got 1: .* give two or more"),
    (
        "a record of a party",
        lambda: ps.Plan(schema=ps.PartySchema(3, 4), cohort=COHORT, privacy=PRIVACY),
        'give unit="client" with max_records_per_client=1, or measure a ClassSchema',
    ),
    ("a class release for parties", lambda: heads.PartyDiscriminant().fit_release(RELEASE), "reads a PartySchema"),
    ("one party alone", lambda: heads.PartyDiscriminant().fit_private(X, Y), r"use LDA\(\).fit_private"),
    (
        "calibrated as text",
        lambda: heads.RefinedSoftmax(calibrated="yes").fit(X, Y),  # type: ignore[arg-type]
        "calibrated must be True or False",
    ),
    (
        "a module without a width",
        lambda: heads.RefinedSoftmax(module="mlp").fit(X, Y),
        "module must be None or a module's KIND/SIZE, such as 'mlp/64', got 'mlp'",
    ),
    (
        "a module that nobody brings",
        lambda: heads.RefinedSoftmax(module="perceptron/4").fit(X, Y),
        "no package here brings the module 'perceptron/4': install the one that announces 'perceptron'",
    ),
    (
        "a calibration of a module",
        lambda: heads.RefinedSoftmax(module="mlp/4", calibrated=True).fit(X, Y),
        "leave calibrated out, or module",
    ),
    (
        "a mean before gradient rounds",
        lambda: heads.RefinedSoftmax().fit_private(
            X, Y, epsilon=1.0, delta=1e-5, adjacency="add-remove", centred=True, ledger="uncharged"
        ),
        "leave centred out, or give it to LDA",
    ),
    # alignment and personal heads
    ("a stream without a number of epochs", lambda: ps.Stream(PLAN, None), "epochs must be a whole number"),  # type: ignore[arg-type]
    ("a plan file to stream", lambda: ps.Stream("plan.toml", 4), "plan must be a Plan"),  # type: ignore[arg-type]
    ("a plan of records to align", lambda: ps.Alignment(PLAN), "first must be a Plan of a GaussianSchema"),
    ("a plan of records within an alignment", lambda: ps.Alignment.within(PLAN), "first must be a Plan of a Gaussian"),
    (
        "a plan of records within a regression",
        lambda: ps.Newton.within(PRIVATE),
        "first must be a Plan of a ScoreSchema",
    ),
    ("no outcome declared", lambda: ps.course.Analysis(primary=()), "analysis.primary must name an outcome"),
    ("effects of one release", lambda: ps.inference.effects(RELEASE), "give the list of all releases of the course"),
    ("a plan of records within hazards", lambda: ps.Hazard.within(PRIVATE), "plan must be a Plan of a HazardSchema"),
    ("hazards of rounds alone", lambda: ps.inference.hazards(RELEASE), "give the list of all releases of the course"),
    ("a promise that is a number", lambda: ps.Centred(CENTRED, promise=1.0), "promise must be a Promise"),  # type: ignore[arg-type]
    ("a course before its path", lambda: ps.course.write(CENTRED, "course.toml"), "a course is written to a path"),
    ("epsilon of a course at a percentage", lambda: ps.Centred.within(CENTRED).epsilon(5), "delta must be at least 0"),
    ("few to align", lambda: ps.Plan(schema=GAUSSIAN, cohort=COHORT, privacy=ps.NoPrivacy()), "fewer rounds, or more"),
    ("a record of an alignment", lambda: ps.Plan(schema=GAUSSIAN, cohort=COHORT, privacy=PRIVACY), "no useful bound"),
    ("a release for a head", lambda: heads.Personal(RELEASE).fit(X, Y), "head must be a classification head"),
    ("a regression", lambda: heads.Personal(heads.Ridge()).fit(X, Y), "head must be a classification head"),
    ("labels of others", lambda: heads.Personal(HEAD).fit(X, Y + 7), "labels that the head does not know"),
    (
        "a class for a head",
        lambda: private_head(heads.LDA).fit(X, Y),
        "head must be a head, got the class LDA; call it",
    ),
    (
        "no rows",
        lambda: private_head(heads.LDA(), multiplicity=0).fit(X, Y),
        "multiplicity must be a whole number from 1",
    ),
    (
        "rows in words",
        lambda: ps.session.Charge(dp.Ledger("none"), "ward", multiplicity="2"),  # type: ignore[arg-type]
        "multiplicity must be a whole number",
    ),
    ("no bound of targets", lambda: private_head(heads.Ridge()).fit(X, X[:, 0]), "Ridge needs target_bound"),
    ("no transport", lambda: heads.with_local_transform(HEAD, transforms.UnitNorm()), "behind no such transform"),
    # cohort
    ("one client", lambda: ps.Cohort(1, 1, 10), "cohort.clients must be at least 2, got 1"),
    ("clients as text", lambda: ps.Cohort("3", 2, 10), "cohort.clients must be a whole number, got str"),
    ("more survivors than clients", lambda: ps.Cohort(3, 4, 10), "exceeds cohort.clients=3; lower min_survivors"),
    ("all collude", lambda: ps.Cohort(3, 2, 10, 2), "lower colluders or raise min_survivors"),
    # privacy
    ("epsilon as text", lambda: privacy(epsilon="1"), "epsilon must be a number, got the text '1'; remove the quotes"),
    ("epsilon 0", lambda: privacy(epsilon=0), "epsilon must lie between 0.001 and 100"),
    ("a delta near 0", lambda: privacy(delta=1e-16), "delta must lie between .* take 0, .*below 1 / records"),
    ("an unknown model", lambda: privacy(model="global"), "model must be one of 'central', .*: choose one"),
    ("an underscore", lambda: privacy(adjacency="add_remove"), "adjacency must be one of 'add-remove'"),
    ("a model as a list", lambda: privacy(model=["central"]), "model must be one of 'central'"),
    (
        "client unit without a limit",
        lambda: privacy(unit="client"),
        "max_records_per_client must be a whole number .* give it",
    ),
    (
        "person unit without a limit",
        lambda: privacy(unit="person"),
        "person_clip must be said with unit='person', got None: 'average' where intervals are wanted",
    ),
    (
        "a person's clip below a row",
        lambda: privacy(unit="person", max_records_per_person=4, person_clip=0.5),
        "person_clip must lie between 1 and 4, got 0.5",
    ),
    ("ids and no clip", lambda: ps.measure(SCHEMA, X, Y, persons=Y), "persons= and person_clip= go together: give an"),
    ("shares that do not sum", lambda: privacy(shares={"N": 0.5}), "shares must sum to 1, got 0.5: divide each"),
    ("shares as a list", lambda: privacy(shares=[0.5, 0.5]), "shares must be a table of statistic = share"),
    # plan
    ("records for a schema", lambda: plan(schema=X), "schema must be a ClassSchema or .*, got ndarray"),
    ("a number of clients", lambda: plan(cohort=3), "cohort must be a Cohort, got int"),
    ("None for no privacy", lambda: plan(privacy=None), "privacy must be a Privacy or NoPrivacy, got NoneType"),
    ("the class NoPrivacy", lambda: plan(privacy=ps.NoPrivacy), "privacy must be a Privacy or NoPrivacy"),
    ("min_count as a float", lambda: plan(min_count=2.5), "min_count must be a whole number of at least 0, got 2.5"),
    ("a merge list", lambda: plan(min_count=1, merge=[(2, 0)]), "merge must map a class to another"),
    ("a merge into itself", lambda: plan(min_count=1, merge={2: 2}), "merge must map a class to another class in 0..2"),
    ("an unknown graph", lambda: plan(graph="ring"), "graph must be one of auto, complete, sparse"),
    ("openings in a list", lambda: released(openings=[b"seed"]), r"give server\.openings"),
    ("a seed in place of an opening", lambda: released(openings={0: b"seed"}), r"give server\.openings"),
    ("an unknown word on noise", lambda: plan(excess_noise="open"), "excess_noise must be one of kept, removed, got"),
    (
        "a path for the text",
        lambda: ps.Plan.from_toml(Path("plan.toml")),
        r"text of a plan, got PosixPath; .* Plan.read\(path\)",
    ),
    ("a file name for the text", lambda: ps.Plan.from_toml("plan.toml"), r"looks like a path.* Plan.read\(path\)"),
    (
        "bytes for the text",
        lambda: ps.Plan.from_toml(TEXT.encode()),
        "text of a plan, got bytes; decode it, or use Plan.read",
    ),
    ("None for the text", lambda: ps.Plan.from_toml(None), "text of a plan, got NoneType"),
    ("the text for a path", lambda: ps.Plan.read(TEXT), "Plan.read takes the path of a plan file.* Plan.from_toml"),
    ("a missing file", lambda: ps.Plan.read("nowhere.toml"), "cannot read nowhere.toml: No such file"),
    ("a folder", lambda: ps.Plan.read(Path.cwd()), "cannot read .*: Is a directory"),
    ("a null character", lambda: ps.Plan.read("plan\0.toml"), "the path must not hold a null character; check it"),
    (
        "a file of millions",
        lambda: ps.Plan.read(written(b"#" * (1 << 22 | 1))),
        "more than 4194304 bytes.* give a plan",
    ),
    ("another encoding", lambda: ps.Plan.read(written(b"\xe4")), "is not UTF-8 text; save it as UTF-8"),
    ("a number for a path", lambda: ps.Plan.read(3), "Plan.read takes the path of a plan file, got int"),
    ("an unknown key", lambda: ps.Plan.from_toml(TEXT.replace("colluders", "coluders")), "did you mean colluders"),
    (
        "another version",
        lambda: ps.Plan.from_toml(TEXT.replace("version = 1", "version = 9")),
        "version must be 1, got 9",
    ),
    # measure
    ("no schema", lambda: ps.measure(X, Y), r"schema must be .* got ndarray; call measure\(schema, X, y\)"),
    ("the plan for the schema", lambda: ps.measure(PLAN, X, Y), "got Plan; give plan.schema"),
    ("y is missing", lambda: ps.measure(SCHEMA, X), "y is missing; give labels or targets beside X"),
    (
        "a dict of columns",
        lambda: ps.measure(SCHEMA, {"a": X[:, 0]}, Y),
        r"takes rows: give pandas\.DataFrame",
    ),
    (
        "a dict of columns, and gaps left out",
        lambda: ps.measure(NAMED, dict(zip("abcd", X.T, strict=True)), Y, unreadable="leave out"),
        "X is a mapping of columns, which serves declared columns and counts",
    ),
    ("text labels", lambda: ps.measure(SCHEMA, X, ["ill"] * 60), "y must hold whole numbers 0..2.* give class_names"),
    (
        "numbers for names",
        lambda: ps.measure(NAMED, X, Y),
        "at position 0 that is not among class_names; the classes are 'ash', 'beech', 'elm'",
    ),
    (
        "an unknown label",
        lambda: ps.measure(NAMED, X, ["oak"] * 60),
        "at position 0 that is not among class_names; .* correct",
    ),
    ("other columns", lambda: ps.measure(NAMED, Frame(), ["ash"]), "X lacks 'a'; give exactly the columns of the plan"),
    ("labels from 1", lambda: ps.measure(SCHEMA, X, Y + 1), "y has labels outside 0..2; give class_names"),
    ("a label too few", lambda: ps.measure(SCHEMA, X, Y[1:]), "X has 60 rows but y has 59; give one label"),
    ("X as one row", lambda: ps.measure(SCHEMA, X[0], Y[0]), r"X must have shape \(records, features\).* reshape it"),
    (
        "missing values",
        lambda: ps.measure(SCHEMA, np.full((3, 4), np.nan), [0, 1, 2]),
        "X holds NaN.* remove or impute",
    ),
    ("text records", lambda: ps.measure(SCHEMA, np.full(X.shape, "x"), Y), "X must hold real numbers.* convert it"),
    ("None for X", lambda: ps.measure(SCHEMA, None, Y), r"X must have shape \(records, features\)"),
    ("a file that is not there", lambda: ps.measure(SCHEMA, "nowhere.npy", Y), "X cannot be read from its file"),
    ("quantise without a schema", lambda: quantize(X, X), r"schema must be .* call quantize\(schema, X\)"),
    (
        "moments of two schemas",
        lambda: ps.measure(SCHEMA, X, Y) + ps.measure(class_schema(), X, Y),
        "different schemas",
    ),
    ("one id for all rows", lambda: ps.moments.PersonRows.of(X, Y, "anna"), "persons must be an id for each row"),
    ("fewer ids than rows", lambda: ps.moments.PersonRows.of(X, Y, Y[1:]), "ids, and X or y another number of rows"),
    ("a number for rows", lambda: ps.moments.PersonRows.of(3.0, Y, Y), "X must be an array with one row for each id"),
    # simulate
    ("X and y", lambda: ps.simulate(PLAN, X, Y), r"shards must be a list with one \(X, y\).* got ndarray"),
    (
        "lists of X and y",
        lambda: ps.simulate(PLAN, [X[:20], X[20:40], X[40:]], Y),
        r"simulate\(plan, \[\(X, y\), ...\]\)",
    ),
    (
        "shards without y",
        lambda: ps.simulate(PLAN, [X[:20], X[20:40], X[40:]]),
        r"shards\[0\] must be \(X, y\) or moments, got ndarray",
    ),
    ("too few shards", lambda: ps.simulate(PLAN, SHARDS[:2]), "cohort.clients=3 but 2 shards came; give one each"),
    ("a schema for a plan", lambda: ps.simulate(SCHEMA, SHARDS), "plan must be a Plan, got ClassSchema"),
    (
        "a seed for a generator",
        lambda: ps.simulate(PLAN, SHARDS, rng=7),
        "rng must be a .*Generator or None, got .*int; use",
    ),
    (
        "an unknown step",
        lambda: ps.simulate(PLAN, SHARDS, {"send": {1}}),
        "unknown step 'send'; the steps are advertise",
    ),
    (
        "a client that is not there",
        lambda: ps.simulate(PLAN, SHARDS, {"mask": {9}}),
        r"clients \[9\] .* clients are 0..2",
    ),
    ("a list of dropouts", lambda: ps.simulate(PLAN, SHARDS, [1, 2]), "dropouts must map steps to sets of clients"),
    ("dropouts by name", lambda: ps.simulate(PLAN, SHARDS, {"mask": {"1", 2}}), "dropouts names clients"),
    ("records beyond the plan", lambda: ps.simulate(PLAN, [(X, Y)] * 3), "max_records=100; raise it in the plan"),
    ("no parties", lambda: dirichlet_partition(Y, 0, 1.0, seeded(0)), "clients must be at least 1, got 0"),
    ("no skew", lambda: dirichlet_partition(Y, 2, 0.0, seeded(0)), "alpha must be above 0"),
    # release
    ("a missing release", lambda: ps.Release.load("nowhere"), "cannot read nowhere: No such file"),
    (
        "a plan for a release",
        lambda: ps.Release.load(__file__),
        "is not a privstats release; give a file written by Release.save",
    ),
    ("a short key", lambda: loaded(signed_by=b"short"), "signed_by must be .* 32 bytes, .*got 5"),
    (
        "half a key in hex",
        lambda: loaded(signed_by="ab" * 16),
        "signed_by must be an Ed25519 public key or its 32 bytes, in hex or as PEM, got str",
    ),
    (
        "a private key to verify",
        lambda: loaded(signed_by=Ed25519PrivateKey.generate()),
        "signed_by must be an Ed25519 public key",
    ),
    ("another key", lambda: loaded(signed_by=b"k" * 32), "is not signed by the key you trust; ask its maker"),
    (
        "bytes to sign",
        lambda: RELEASE.save("release", signer="me"),
        "signer must be an Ed25519 private key or its 32 bytes, got str",
    ),
    (
        "a folder that is not there",
        lambda: RELEASE.save("nowhere/release"),
        "cannot write nowhere/release: No such file",
    ),
    ("a release without sums", lambda: ps.Release(PLAN, None, (0, 1, 2)), "int64 of shape"),
    # session
    ("a total of another plan", lambda: released(total=Ring(((3, 9),)).zeros()), "total must be a vector of the plan"),
    ("an array for the total", lambda: released(total=np.zeros(5)), "total must be a vector of the plan's ring"),
    ("a number of survivors", lambda: released(survivors=3), "survivors must be a tuple of client numbers, got int"),
    ("survivors in an array", lambda: released(survivors=np.arange(3)), "survivors must be a tuple .* got ndarray"),
    ("a schema for the plan", lambda: released(plan=SCHEMA), "plan must be a Plan, got ClassSchema"),
    ("an array for the charge", lambda: released(charge=np.zeros(3)), "charge must be Charge.* got a ndarray"),
    (
        "a word for an allowance",
        lambda: ps.session.Charge(dp.Ledger("none"), "ward", allow_second_exact_release="no"),
        "allow_second_exact_release must be True or False, got str",
    ),
    ("a path for a client's plan", lambda: joined(plan="plan.toml"), "plan must be a Plan, got str"),
    ("a place as text", lambda: joined(index="0"), "index must be a whole number, .* got str"),
    ("a public key to sign", lambda: joined(identity=IDENTITY.public), "identity must be an Identity, .* got bytes"),
    ("keys for a roster", lambda: joined(roster=[IDENTITY.public]), "roster must be a Roster, got list"),
    ("a path for a server's plan", lambda: serving(plan="plan.toml"), "plan must be a Plan, got str"),
    (
        "a public key for a server",
        lambda: serving(identity=IDENTITY.public),
        "identity must be an Identity, .* got bytes",
    ),
    ("keys for a server's roster", lambda: serving(roster=[IDENTITY.public]), "roster must be a Roster, got list"),
    (
        "one part",
        lambda: ps.session.aggregate_unmasked(PLAN, ps.measure(SCHEMA, X, Y)),
        "parts must be a list .* ClassMoments",
    ),
    (
        "a schema for a contribution's plan",
        lambda: ps.session.contribution(SCHEMA, ps.measure(SCHEMA, X, Y)),
        "plan must be a Plan, got ClassSchema",
    ),
    ("a schema for a helper's noise", lambda: ps.session.helper_noise(SCHEMA), "plan must be a Plan, got ClassSchema"),
    # heads
    (
        "a path for a release",
        lambda: heads.LDA().fit_release("release"),
        "release must be a Release, got str; load one with",
    ),
    (
        "moments for a release",
        lambda: heads.LDA().fit_release(RELEASE.moments),
        "release must be a Release, got RealClassMoments",
    ),
    ("numbers for a score by names", lambda: named_head().score(X, Y), "y holds labels of another kind than classes_"),
    ("another sum for LDA", lambda: heads.LDA().fit_release(MEAN), "holds no class sums .N, A.; give the release of a"),
    ("another sum for ridge", lambda: heads.Ridge().fit_release(MEAN), "holds no ridge sums"),
    ("class sums for ridge", lambda: heads.Ridge().fit_release(RELEASE), "holds class sums; use heads.RidgeClassifier"),
    (
        "a missing statistic",
        lambda: heads.QDA().fit_release(RELEASE),
        "QDA needs statistic S.* can build LDA, NaiveBayes",
    ),
    (
        "too few labels",
        lambda: heads.LDA().fit_release(RELEASE, labels=["a"]),
        "labels must name each of the 3 classes",
    ),
    (
        "public records without labels",
        lambda: heads.LDA().fit_release(RELEASE, public=X),
        r"public must be a pair \(X, y\) of public records, got ndarray",
    ),
    (
        "bogus shrinkage",
        lambda: heads.NaiveBayes(shrinkage="bogus").fit(X, Y),
        r"shrinkage must be 'auto', None or a number in \[0, 1\]",
    ),
    (
        "negative decay",
        lambda: heads.FisherMix(weight_decay=-1).fit(X, Y),
        "weight_decay must be a finite number of at least 0",
    ),
    (
        "a wide subspace",
        lambda: heads.LDA(subspace=99).fit(X, Y),
        "subspace=99 is more than the 4 features; give at most 4",
    ),
    (
        "a device",
        lambda: heads.FisherMix(device="gpu").fit(X, Y),
        "device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got 'gpu'",
    ),
    ("a penalty", lambda: heads.Ridge(penalty="cv").fit(X, X[:, 0]), "penalty must be .* got 'cv'"),
    ("folds of classes", lambda: heads.RidgeClassifier(penalty="folds").fit(X, Y), "penalty must be a finite number"),
    ("a column too few", lambda: HEAD.predict(X[:, :3]), "X has 3 features, but LDA is expecting 4 features"),
    ("other columns in predict", lambda: named_head().predict(Frame()), "X lacks 'a'; give exactly the columns"),
    ("an unknown subspace", lambda: heads.fisher_subspace(RELEASE, "all"), "dimension must be 'auto'"),
    (
        "no bins",
        lambda: heads.expected_calibration_error(HEAD, X, Y, bins=0),
        "bins must be at least 1, got 0; 15 is usual",
    ),
    (
        "labels that a head does not know",
        lambda: heads.log_likelihood(HEAD, X, Y + 7),
        "labels that the head does not know.* leave",
    ),
    ("a head file that is not there", lambda: heads.load("nowhere"), "cannot read nowhere"),
    (
        "an export of nothing",
        lambda: heads.to_linear(3),
        "to_linear takes a fitted head of privstats.heads, got int; fit one",
    ),
    # dp
    ("a rate above 1", lambda: dp.operating_point(1.0, 2), "false_positive_rate must be between 0 and 1, got 2"),
    ("a negative mu", lambda: dp.operating_point(-1.0), "mu must be at least 0"),
    ("an epsilon below 0", lambda: dp.gaussian_mu(-1.0, 1e-5), "epsilon must be finite and at least 0, got -1"),
    ("a count as text", lambda: dp.drop_probability("9", 5, 1.0), "count must be a finite number, got '9'"),
    ("a minimum as text", lambda: dp.doubtful_counts("9", 1.0), "min_count must be a finite number, got '9'"),
    ("less than no noise", lambda: dp.drop_probability(9, 5, -1.0), "sigma must be at least 0, got -1.0"),
    ("a probability of 2", lambda: dp.doubtful_counts(5, 1.0, 2), "probability must be between 0 and 1/2, got 2"),
    ("a plan for optimal shares", lambda: dp.optimal_shares(PLAN, "add-remove"), "schema must be .*; give plan.schema"),
    (
        "an unknown adjacency for shares",
        lambda: dp.optimal_shares(SCHEMA, "add"),
        "adjacency must be 'add-remove' or 'replace-one'",
    ),
    ("one mu to compose", lambda: dp.compose(1.0), "mus must be several numbers, got float"),
    ("texts to compose", lambda: dp.compose(["1"]), "mu must be at least 0, got '1'"),
    (
        "nobody's noise",
        lambda: PRIVATE.noise.released_epsilon(0),
        "survivors must be a whole number of at least 1, got 0",
    ),
    ("a delta of 1", lambda: dp.gaussian_epsilon(1.0, 1.0), "delta must be strictly between 0 and 1, got 1"),
    ("a mu as text", lambda: dp.gaussian_delta("1", 1.0), "mu must be finite and above 0, got '1'"),
    (
        "an unknown adjacency",
        lambda: dp.joint_mu(SCHEMA, {"N": 1.0, "A": 1.0, "B": 1.0}, "swap"),
        "adjacency must be 'add-remove' or 'replace-one', got 'swap': choose one",
    ),
    ("no sigma", lambda: dp.joint_mu(SCHEMA, {}, "add-remove"), "noise is given for no statistic.*: name only those"),
    (
        "a sigma of 0",
        lambda: dp.joint_mu(SCHEMA, {"N": 0.0, "A": 1.0, "B": 1.0}, "add-remove"),
        "sigma of N must be finite and above 0: without noise",
    ),
    (
        "a statistic that is not sent",
        lambda: dp.sensitivity(SCHEMA, "S", "add-remove"),
        "given for S, but the schema measures N, A, B: name only those",
    ),
    (
        "a plan for a schema in dp",
        lambda: dp.default_shares(PLAN),
        "schema must be a ClassSchema or .*, got Plan; give plan.schema",
    ),
    ("a negative sigma", lambda: dp.discrete_gaussian(-1.0, 3, seeded(0)), "sigma must be above 0 and at most 2"),
    ("a scale of 0", lambda: dp.discrete_laplace(0.0, 3, seeded(0)), "scale must be above 0 and at most 2"),
    ("B in L1", lambda: dp.l1_sensitivity(SCHEMA, "B", "add-remove"), "a ClassSchema sends B: leave it out, or give a"),
    ("an adjacency in L1", lambda: dp.l1_sensitivity(SCHEMA, "N", "swap"), "adjacency must be .*, got 'swap': choose"),
    ("no Laplace noise", lambda: dp.joint_epsilon(SCHEMA, {}, "add-remove"), "scales name no statistic.*: give the"),
    ("a scale below 0", lambda: dp.joint_epsilon(SCHEMA, {"N": -1.0}, "add-remove"), "scale of N must be finite and"),
    ("a pure epsilon below 0", lambda: dp.pure_mu(-1.0), "epsilon must be finite and at least 0, got -1"),
    ("a size as a float", lambda: dp.discrete_gaussian(1.0, 3.5, seeded(0)), "size must be a whole number"),
    ("numpy's generator", lambda: dp.rounded_gaussian(1.0, 3, np.random.default_rng(0)), "rng must be a .*Generator"),
    # one party alone
    ("records for a schema alone", lambda: alone(schema=X), r"schema must be .* call private_release\(schema, privacy"),
    ("no privacy alone", lambda: alone(privacy=ps.NoPrivacy()), "privacy must be a Privacy here; exact sums"),
    ("an epsilon for a privacy", lambda: alone(privacy=1.0), "privacy must be a Privacy, got float; give model"),
    ("distributed alone", lambda: alone(privacy=privacy(model="distributed")), "must be 'central' for one party alone"),
    ("nobody pays", lambda: alone(ledger=None), r"give ledger=Charge\(ledger, dataset\).*='uncharged'"),
    ("a path for a ledger", lambda: alone(ledger="spent.db"), "ledger must be a Ledger.* got the text 'spent.db'"),
    (
        "a data set without a ledger",
        lambda: alone(dataset="ward"),
        "dataset names an account of a Ledger: give ledger=",
    ),
    ("a ledger that is not there", lambda: alone(ledger=dp.Ledger("nowhere.db")), "nowhere.db"),
    ("labels left out alone", lambda: alone(y=None), "y is missing; give labels or targets beside X"),
    ("more records than the bound", lambda: alone(max_records=9), "max_records=9"),
    ("a plan for a course", lambda: ps.private_releases(PRIVATE, X, Y, ledger="uncharged"), "course must be a Course"),
    ("no adjacency", lambda: fitted(adjacency=None), "adjacency must be one of 'add-remove', .*: choose one"),
    ("epsilon in words", lambda: fitted(epsilon="small"), "epsilon must be a number, got the text 'small'; remove"),
    ("a clip norm of None", lambda: fitted(clip_norm=None), "clip_norm must be a number between"),
    ("a number of classes", lambda: fitted(classes=3), "classes must be a list that names each class once"),
    ("classes that lack one", lambda: fitted(classes=[0, 1]), "not among classes; correct it, name its class"),
    (
        "classes as texts",
        lambda: fitted(classes=["none", "some", "many"]),
        "classes holds 'none', which is read as a missing value",
    ),
    ("batches without classes", lambda: fitted(X=[(X, Y)], y=None, classes=None), "give classes="),
    (
        "an unknown solver in private",
        lambda: heads.Ridge(solver="svd").fit_private(
            X, X[:, 0], epsilon=1.0, delta=1e-5, clip_norm=5.0, target_bound=3.0, adjacency="add-remove"
        ),
        "solver must be 'auto', 'aggregate', 'plain'",
    ),
    ("no shapes of a model", lambda: ClientUpdates({}, 1.0, 8.0, 1e-5, 10), "shapes must name the arrays of an update"),
    ("rounds as a float", lambda: ClientUpdates({"W": (2, 3)}, 1.0, 8.0, 1e-5, 10.0), "rounds must be a whole number"),
    # plans side by side, studies, pages
    ("a path to compare", lambda: difference(PLAN, "plan.toml"), "after must be a Plan, got str; read one with"),
    ("one epsilon for an axis", lambda: Axes(epsilon=1.0), r"epsilon must be a list of values, for example \[1.0\]"),
    ("a model for an axis", lambda: Axes(model="central"), r"model must be a list .*\['central'\], got str"),
    ("an optimiser for a baseline", lambda: rivals("dp-sgd", "adam"), "one of dp-sgd, dp-gd, got 'adam'; choose"),
    ("skew of 0", lambda: Axes(alpha=[0]), "alpha must hold numbers above 0; .05 is extreme skew"),
    ("one client on an axis", lambda: studied(clients=[1]), "clients must hold whole numbers of at least 2, got 1"),
    ("a dimension too many", lambda: studied(dimension=[9]), "at most 4 features from 4; lower features"),
    ("letters without counts", lambda: studied(statistics=["AB"]), "statistics must contain N and A; add N"),
    ("clients without a limit", lambda: studied(unit=["client"]), "needs records_per_client: the most records"),
    ("a column that is not there", lambda: Numbers(("a",), ())["b"], "there is no column 'b'; the columns are a"),
    (
        "a release of another plan on a page",
        lambda: Statement(PRIVATE, RELEASE),
        "the release was made under another plan.* give the plan that it was made under",
    ),
    ("findings that nobody brings", lambda: finder("nonsense"), "--nonsense needs a package that offers 'nonsense'"),
    # sweep and suggest
    ("no epsilon", lambda: swept(epsilons=[]), "a sweep needs at least one epsilon"),
    ("one epsilon alone", lambda: swept(epsilons=1.0), "epsilons must be a list of numbers, .* got float"),
    ("one repeat", lambda: swept(repeats=1), "repeats of at least 2, so that there is a spread"),
    ("repeats as a float", lambda: swept(repeats=2.5), "repeats must be a whole number"),
    ("a list of heads", lambda: swept(heads=["LDA"]), "heads must map names to heads, .* got list"),
    ("a fitted head", lambda: swept(heads={"LDA": heads.LDA()}), r"heads\['LDA'\] must make a fresh head .* got LDA"),
    ("no records to train on", lambda: swept(train=(X[:0], Y[:0])), "train holds no records; give"),
    ("no records to test on", lambda: swept(test=(X[:0], Y[:0])), "test holds no records; give"),
    ("test columns too few", lambda: swept(test=(X[:, :3], Y)), "test: X has 3 features but the schema says 4"),
    ("test labels too few", lambda: swept(test=(X, Y[1:])), "test: X has 60 rows but y has 59"),
    ("train without labels", lambda: swept(train=X), r"train must be a pair \(X, y\), got ndarray"),
    ("a sweep without DP", lambda: swept(plan=PLAN), "no epsilon to sweep: choose central, distributed or local"),
    ("a sweep of a schema", lambda: swept(plan=SCHEMA), "plan must be a Plan, got ClassSchema"),
    ("few public records", lambda: suggest(X[:5]), "at least 20 records and 2 features; give more"),
    ("float labels", lambda: suggest(X, Y / 2), "y must hold whole numbers or texts, got dtype float64"),
    ("one public class", lambda: suggest(X, Y * 0), "y has one class only; two are needed"),
    ("a tolerance in per cent", lambda: suggest(X, Y, tolerance=5), "tolerance must be between 0 and 1.* 0.005"),
    ("a tolerance as text", lambda: suggest(X, Y, tolerance="5"), "tolerance must be between 0 and 1"),
    (
        "a transform that does not fit",
        lambda: suggest(X, transform=(transforms.Centre((1.0,)),)),
        "X does not fit the transform",
    ),
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


def test_there_are_many_rows_and_none_twice() -> None:
    assert len({name for name, _, _ in ROWS}) == len(ROWS) >= 190


@pytest.mark.parametrize(("call", "words"), [pytest.param(call, words, id=name) for name, call, words in ROWS])
def test_a_wrong_call_is_one_clear_sentence(call, words, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((PrivstatsError, ValueError), match=words) as caught:
        call()
    ours = isinstance(caught.value, PrivstatsError)
    assert ours or "sklearn" in str(caught.traceback[-1].path), type(caught.value)  # scikit-learn's own where it checks
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert not os.listdir(tmp_path) or ours
