"""Whether a certificate that was accepted promises what its plan file means: by the library, which shares no code.

Levels, sensitivities, mu and delta are computed from the plan as the library reads its file, and from the noise that
the certificate declares.
"""

import json
import math
import re
import warnings
from fractions import Fraction
from typing import Any

import pytest
import tomli_w

import privstats as ps
from privstats.dp import Privacy, client_mu, gaussian_delta, joint_mu

CLOSE = 1e-8  # the checker's tolerances are a part in 10**9 of a square

BESIDE_THE_PROMISE = (
    "class_names|feature_names|a name has|names tell|a variable's name",  # nothing is summed by a name
    r"transform|centre|scale|seed|inputs|sparsity|bandwidth|keep_inputs|strength|reference|transport",
    "constant-feature|ConstantFeature",
    "head must be|head_bytes",  # the bound holds for whatever head
    "merge|min_count",  # of what is released already
    "panel|Ed25519|order",  # who the members are
    "masking may fail|graph",  # beside the certificate, as docs/certificate.md says
    "validity",  # what clients prove
    "devices",  # who sends, and what they are told
    "ring bits|bytes|spare_bits|group",  # room, not noise
    "key_agreement",  # who reads a recording
    "excess_noise='removed' (needs|has)",  # which plans remove noise
    "published|sha256|after",  # the bound holds for whatever is published
    "the threshold|at least clients|honest sites|several sites|groups",  # how many parties
    "clip_norm|rate|module|expected_records|course_mu|among|at most 65,?536|at most 4,?096|at most 8,?192",
    "edges|values|tables|variables",  # which cells, not how many a record counts in
    "late_entry",  # which records count
    "(gaps|unit|ordered|suffix|censored|written|as_text) of|as_text is set",  # cells
    "columns|column|signs must|^bits must|the bits of Cells|ramp must|a step of",  # cells
    # what a number means, not how far a record moves it
    "outcome_names|measure='ratio' needs|ratios='subdistribution' needs|expected events",
    "can be sampled",  # noise too wide for a sampler
)
"""Words of refusals of the library that the checker leaves to it: they change no bound and no noise."""


def keeps_the_promise(text: str, certificate: str) -> None:
    """Fail unless the library refuses the plan for another reason than its promise, or computes the same promise."""
    document = json.loads(certificate)
    try:
        plan, stored = plan_of(text), plan_of(tomli_w.dumps(json.loads(document["plan"])))
    except ps.PrivstatsError as refusal:
        if not re.search("|".join(BESIDE_THE_PROMISE), str(refusal)):
            pytest.fail(f"the library refuses what the checker accepts: {refusal}")
        return
    privacy, noise = plan.privacy, plan.noise
    assert isinstance(privacy, Privacy)
    told = privacy.model, privacy.unit, privacy.adjacency, noise.trust.shares(noise.honest_shares)
    assert (*(document[name] for name in ("model", "unit", "adjacency", "honest_shares")),) == told
    assert (document["epsilon"], document["delta"]) == (_exact(privacy.epsilon), _exact(privacy.delta))
    assert stored == plan or _shares_apart(plan, stored)
    drawn: dict[str, float] = {}
    for segment in plan.layout.segments:
        letter, _, part = segment.name.partition(".")
        declared = document["statistics"][segment.statistic]["sigma"][part or "all"]
        if isinstance(declared, list):  # a base and its layers: what is left at each level is the checker's to see
            declared = str(Fraction(sum(Fraction(each) ** 2 for each in declared) ** 0.5))
        share = float(Fraction(declared))
        assert share >= noise.share_sigma(segment) * (1 - CLOSE), (letter, part)
        total = (share**2 * told[3] - noise.trust.surplus_variance) ** 0.5
        drawn[segment.statistic] = total / segment.scale / segment.noise_factor
    mu = mu_of(plan, privacy, drawn)
    assert gaussian_delta(mu, privacy.epsilon) <= privacy.delta
    _within(document["joint"]["mu_squared"], mu**2)
    _within(document["delta_at_epsilon"], gaussian_delta(mu, privacy.epsilon))
    for row in noise.rows:
        alone = mu_of(plan, privacy, {row.statistic: 1.0}) * plan.schema.scale_of(row.statistic)
        _within(document["statistics"][row.statistic]["sensitivity_squared"], alone**2)


def plan_of(text: str) -> ps.Plan:
    """The plan as the library reads its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # proofs are experimental
        return ps.Plan.from_toml(text)


def _exact(number: float) -> str:
    return str(Fraction(repr(number)))


def _shares_apart(one: ps.Plan, other: ps.Plan) -> bool:
    """Whether two plans differ in the last digits of their shares alone."""
    tables = [json.loads(json.dumps(plan.tables)) for plan in (one, other)]
    mine, theirs = (table["privacy"].pop("shares", {}) for table in tables)
    return tables[0] == tables[1] and mine == pytest.approx(theirs, rel=CLOSE)


def mu_of(plan: ps.Plan, privacy: Privacy, sigma: dict[str, float]) -> float:
    """mu of the plan's unit under noise of these levels."""
    if privacy.client_clip is not None:
        shares = privacy.shares or ps.dp.default_shares(plan.schema)
        alone = [joint_mu(plan.schema, {s: level}, "add-remove") ** 2 / shares[s] for s, level in sigma.items()]
        return privacy.client_clip * max(alone) ** 0.5
    if privacy.averaged:
        return averaged(plan.schema, sigma, privacy.adjacency)
    if privacy.unit == "person":
        shares = privacy.shares or ps.dp.default_shares(plan.schema)
        far = {s: 1.0 if privacy.adjacency == "add-remove" else opposed(plan.schema, s) for s in sigma}
        alone = [joint_mu(plan.schema, {s: sigma[s]}, "add-remove") * far[s] / shares[s] ** 0.5 for s in sigma]
        return privacy.group * max(alone)
    if privacy.max_records_per_client is not None:
        return client_mu(plan.schema, sigma, privacy.adjacency, privacy.max_records_per_client)
    return joint_mu(plan.schema, sigma, privacy.adjacency)


def averaged(schema: Any, sigma: dict[str, float], adjacency: Any) -> float:
    """mu of a person's average: of two no more than of two vectors of their lengths, or of two records and the cut."""
    lengths = {s: level if adjacency == "add-remove" else level / opposed(schema, s) for s, level in sigma.items()}
    most = joint_mu(schema, lengths, "add-remove")
    if adjacency == "add-remove" or schema.task in ("counts", "scoring", "gradients", "mean"):
        return most
    entries = {row.letter: math.prod(row.shape(schema.sizes)) for row in schema.sent}
    cut = math.fsum(entries[s] / (level * schema.scale_of(s)) ** 2 for s, level in sigma.items()) ** 0.5
    return min(most, joint_mu(schema, sigma, "replace-one") + cut)


def opposed(schema: Any, statistic: str) -> float:
    """How far two persons of equal length are apart at most: opposed, or without a place in common."""
    features = schema.nonnegative and statistic in "ABSGx"
    return 2**0.5 if statistic in "NDTqk" or features else 2.0


def _within(claimed: dict[str, Any], value: float) -> None:
    low, high = (float(Fraction(claimed[end])) for end in ("low", "high"))
    assert low * (1 - CLOSE) <= value <= high * (1 + CLOSE)
