"""Check a budget certificate against its plan: one file that imports only Python's standard library.

    python certificate_checker.py plan.toml plan.certificate.json
    python certificate_checker.py course.toml course.certificate.json

It shares no code with privstats and reads no number from it: sensitivities, worst cases, noise and delta are
recomputed as rationals. The certificate's tables have a bound's inputs, key by key, without defaults. Exit code 0: the
certificate holds; 1: refused, by name. docs/certificate.md states what this proves.

The file in reading order: texts to tables; bounds of roots, exponentials and normal tails; one class for each kind of
plan, with its keys, its letters, its bound and its records; the form of a plan; the bound of its unit; the noise; the
certificate, from ``check`` down; the certificate of a course; the command.
"""

import hashlib
import json
import math
import re
import stat
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

Table: TypeAlias = dict[str, Any]
Weights: TypeAlias = Mapping[str, Fraction]
Sums: TypeAlias = dict[str, Counter[Any]]
ZERO, ONE = Fraction(0), Fraction(1)
SCALE = 1 << 640  # of intervals: their ends are multiples of 1 / SCALE
COUNT = 4096  # wire steps of one record in a count
TIGHT = Fraction(1, 10**9)  # relative width of an interval that is claimed
SLACK = Fraction(1, 10**20)  # a part of the logarithm of any probability, where noise is a sum of discrete Gaussians
MAX_PLAN = 1 << 20  # characters, as in the library
MAX_BYTES = 1 << 23  # of a certificate
MAX_INTEGER = 1 << 53
COMMITTEE = 1024  # clients at most, whose signatures fix the one survivor list
MAX_NEIGHBOURS = 255
DISPUTES = 1  # neighbours of a client at most, that share no mask with it
FINDING = "; finding: versions until 2026-11-30 run a plan without key_agreement under X25519 alone"
TINY = Fraction("1e-30")
PI = Fraction(31415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679)
BROKEN = (  # input of another form
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Refused(Exception):  # noqa: N818  what it says of a certificate
    """A claim that does not hold: its name, and the reason."""


def require(held: object, claim: str, why: str) -> None:
    """Refuse the certificate by the claim's name."""
    if not held:
        raise Refused(f"{claim}: {why}")


# --- Texts to tables -------------------------------------------------------------------------------------------------


def _number(text: str) -> Fraction:
    return Fraction(repr(float(text)))


def _integer(text: str) -> int:
    require(len(text) <= 20, "form", "an integer has too many digits")
    return int(text)


def _json(text: str) -> Any:
    def table(pairs: list[tuple[str, Any]]) -> Table:
        require(len(dict(pairs)) == len(pairs), "form", "a key stands twice")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=table, parse_float=_number, parse_int=_integer, parse_constant=_number)


def _toml(text: str) -> Table:
    text = text.removeprefix("\ufeff")
    part = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
    for parts, most in ((16, 0), (2, 1 << 12)):  # n parts make n^2 texts, and every part a kilobyte
        dotted = re.finditer(rf"(?m)(?:^|[\[{{,])(?=[ \t]*+(?:{part}\.[ \t]*+){{{parts}}})", text)
        require(sum(1 for _ in islice(dotted, most + 1)) <= most, "form", "a key has too many parts")
    return tomllib.loads(text, parse_float=_number)


def _rational(text: str) -> Fraction:
    require(len(text) <= 1000 and set(text) <= set("0123456789/"), "form", "a rational is a text like '3/4'")
    return Fraction(text)


def _float(number: Any) -> Fraction:
    """Return the float64 that a machine computes with for a plan's decimal."""
    return Fraction(float(number))


def _listed(table: Table, name: str) -> list[Any]:
    """Return a list that a table may lack."""
    return list(table[name]) if name in table else []


def _types(values: Any) -> set[type]:
    return {type(value) for value in values}


# --- Bounds of roots, exponentials and normal tails ------------------------------------------------------------------


def root(square: Fraction) -> tuple[Fraction, Fraction]:
    """Return rationals below and above a square root."""
    low = math.isqrt(square.numerator * SCALE**2 // square.denominator)
    return Fraction(low, SCALE), Fraction(low + 1, SCALE)


def _series(first: int, y: tuple[int, int], n: int, step: int) -> tuple[int, int]:
    """Bound first (1 + y / n' (1 + y / n'' (...))), n' = n + step, n'' = n' + step, ..., in units of 1 / SCALE."""
    low, high = [first], [first]
    while high[-1] > 1 or n * SCALE < 2 * y[1]:
        n += step
        low.append(low[-1] * y[0] // (n * SCALE))
        high.append(-(-high[-1] * y[1] // (n * SCALE)))
    return sum(low), sum(high) + 1  # the terms that are left at least halve, from below one unit


def power(x: Fraction) -> tuple[int, int]:
    """Bound e**x for x >= 0, in units of 1 / SCALE: x is halved until it is below 1, then squared."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
    y = x / 2**halvings * SCALE
    low, high = _series(SCALE, (math.floor(y), math.ceil(y)), 0, 1)
    for _ in range(halvings):
        low, high = low**2 // SCALE, -(-(high**2) // SCALE)
    return low, high


def tail(s: int) -> tuple[int, int]:
    """Bound P(Z > s / SCALE) in units of 1 / SCALE: 1/2 - phi(s) (s + s^3 / 3 + s^5 / 15 + ...), all terms positive."""
    if s < 0:
        low, high = tail(-s)
        return SCALE - high, SCALE - low
    low, high = _series(s, (s * s // SCALE, -(-s * s // SCALE)), 1, 2)
    grown = power(Fraction(s * s, 2 * SCALE**2))
    most = math.ceil(Fraction(high * SCALE, grown[0]) / root(2 * PI / 10**100)[0])
    least = math.floor(Fraction(low * SCALE, grown[1]) / root(2 * (PI + 1) / 10**100)[1])
    return SCALE // 2 - most, SCALE // 2 - least


def delta_of(mu: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bound Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2), which grows with mu."""
    require(epsilon < 40 * mu and mu < 40, "mu", "no plan has noise of such a size")
    places = [math.floor((epsilon / mu + side * mu / 2) * SCALE) for side in (-1, 1)]
    near, far = ((tail(place + 1)[0], tail(place)[1]) for place in places)
    grown = power(epsilon)
    return (near[0] - Fraction(grown[1] * far[1], SCALE)) / SCALE, (
        near[1] - Fraction(grown[0] * far[0], SCALE)
    ) / SCALE


# --- Kinds of plans --------------------------------------------------------------------------------------------------

VECTORS = " features grid_bits=12 transform=[] feature_names?"
SIGNED = f"{VECTORS} nonnegative=false"
OWN_MODULE = "pairs/"  # the one module of rounds that is of the library itself
ROUND = f" expected_records course_mu clip_norm=1{SIGNED} class_names?"
PARTY = f"classes clip_norm=1 class_names?{SIGNED}"


class Summand(NamedTuple):
    """What one letter sums: products of one entry of each named vector of a record, or 1 where none is named."""

    of: str = ""
    by_cell: bool = False  # a sum for each cell of records, or one over all
    places: str = "all"  # pairs of places: all, "equal" ones alone, or these "summed" to one number
    steps: int = 1  # of the wire


class Kind:
    """One kind of plan: what it sends, how far one record or unit moves that, and which records it admits.

    ``bound`` is the largest ``sum_s weight_s |v_s - v'_s|^2`` in squared wire steps; docs/sensitivity.md has the proof.
    """

    keys = ""  # of the schema's table beside its task; "k?" may be missing, and a missing "k?=v" means v
    missing = ""  # the one value of the schema's key "missing"; "" without that key
    products: ClassVar[dict[str, Summand]] = {}  # by letter
    more_keys = ""  # of a record of a worst case
    unsigned = ("", "")  # letters without a negative entry in a person's sums; the second where no feature is negative
    of_records = True  # whether a bound of one record is proved
    closer_averages = False  # whether two persons' averages are closer than vectors of their letters' lengths
    beside_others = False  # whether what a record adds follows from others of its party, too
    attained = True  # whether some pair of records attains the bound

    def __init__(self, schema: Table) -> None:
        self.schema = schema

    @property
    def known(self) -> str:
        """Letters that have a bound, in wire order."""
        raise NotImplementedError

    @property
    def sent(self) -> str:
        """Letters that are sent: those that are known, without what follows from others."""
        return self.known

    @property
    def matrices(self) -> str:
        """Letters of symmetric matrices, whose noise is sqrt(2) times as wide on the diagonal."""
        return ""

    @property
    def percent(self) -> Table:
        """What letters spend where a plan names no shares; letters without a number divide the rest."""
        return {}

    @property
    def reads_published(self) -> bool:
        """Whether parties read what the plan publishes."""
        return False

    @property
    def of_persons(self) -> bool:
        """Whether a bound of one person is proved."""
        return False

    @property
    def excludes(self) -> bool:
        """Whether a record may be in no sum."""
        return False

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        """Bound a record that comes or goes, or two that are exchanged (``swap``); ``held``: of a client's records."""
        raise NotImplementedError

    def consistent(self) -> bool:
        """Return whether the keys of the schema's table agree with each other."""
        return True

    # Records of a worst case: {"times", "cell", a list of [place, value] for each vector}.

    @property
    def radius(self) -> int:
        """Maximum length of a vector, in steps of its grid."""
        return int(2 ** self.schema["grid_bits"])

    @property
    def nonnegative(self) -> bool:
        """Whether no feature is negative."""
        return "nonnegative" in self.schema and self.schema["nonnegative"] is True

    @property
    def cells(self) -> int:
        """Number of cells of records, for example classes."""
        return 2

    @property
    def vectors(self) -> dict[str, int]:
        """A record's vectors, each with its length."""
        return {"x": self.schema["features"]}

    def limit(self, name: str) -> int:
        """Return the largest squared length of a vector."""
        return self.radius**2

    def least(self, name: str) -> int:
        """Return the least entry of a vector."""
        return 0 if name == "x" and self.nonnegative else -self.radius

    def admits(self, record: Table) -> bool:
        """Return whether the schema admits this record, or one that adds it at some published weights."""
        width = {"x": 0, **self.vectors}
        if set(record) != {"times", "cell", *width, *self.more_keys} or not _is_whole(record["cell"], self.cells):
            return False
        for name in width:
            require(type(record[name]) is list and len(record[name]) <= 8, "pair", "a vector is no list, or long")
        return _many(record) and all(self._is_vector(name, record[name], width[name]) for name in width)

    def _is_vector(self, name: str, entries: list[Any], width: int) -> bool:
        vector, least = dict(entries), self.least(name)
        fine = len(vector) == len(entries) and all(type(n) is int for pair in vector.items() for n in pair)
        fine = fine and sum(value**2 for value in vector.values()) <= self.limit(name)
        return fine and all(0 <= place < width and value >= least for place, value in vector.items())

    def sums(self, records: list[Table]) -> Sums:
        """Return the sums of records, by letter and place, in wire steps."""
        out: Sums = {letter: Counter() for letter in self.known}
        for record, letter in product(records, self.known):
            for key, value in self.terms(record, letter):
                out[letter][key] += record["times"] * value
        return out

    def terms(self, record: Table, letter: str) -> Iterator[tuple[Any, int]]:
        """Yield place and value of what one record adds to a letter."""
        how = self.products[letter]
        for entries in product(*(record[name] for name in how.of)):
            places = [place for place, _ in entries]
            if how.places == "all" or places[0] == places[1]:
                key = (record["cell"] if how.by_cell else 0, *(places if how.places != "summed" else ()))
                yield key, how.steps * math.prod(value for _, value in entries)

    def entries(self, letter: str) -> int:
        """Return the number of entries of a letter; a matrix counts both sides of the diagonal."""
        how = self.products[letter]
        of = {"all": how.of, "equal": how.of[:1], "summed": ""}[how.places]
        return math.prod(self.vectors[name] for name in of) * (self.cells if how.by_cell else 1)


def _is_whole(value: Any, below: int) -> bool:
    return type(value) is int and 0 <= value < below


def _many(record: Table) -> bool:
    """Return whether the record stands in a data set so many times."""
    return type(record["times"]) is int and 1 <= record["times"] <= 10**12


def _length(entries: list[Any]) -> int:
    """Return the squared length of a vector."""
    return sum(int(value) ** 2 for _, value in entries)


class Classes(Kind):
    """Counts N, sums A, second moments B of all, S by class and D of their diagonals."""

    keys = f"classes statistics clip_norm class_names?{SIGNED}"
    matrices = "BS"
    percent: ClassVar[Table] = {"N": 2, "A": 85}
    products: ClassVar[dict[str, Summand]] = {
        "N": Summand(by_cell=True, steps=COUNT),
        "A": Summand("x", by_cell=True),
        "B": Summand("xx"),
        "S": Summand("xx", by_cell=True),
        "D": Summand("xx", by_cell=True, places="equal"),
    }
    unsigned = ("ND", "NABSD")
    of_persons = closer_averages = True
    known = "NABSD"

    @property
    def sent(self) -> str:
        sent = {*self.schema["statistics"]}
        require({*"NA"} <= sent <= {*self.known}, "form", "no bound of these letters of classes is known")
        return "".join(letter for letter in self.known if letter in sent - {*"BD" * ("S" in sent)})

    @property
    def cells(self) -> int:
        return int(self.schema["classes"])

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        square = Fraction(self.radius**2)
        first, second = w["A"] * square, (w["B"] + w["S"] + w["D"]) * square**2
        add = COUNT**2 * w["N"] + first + second
        opposed = (first + 2 * second) ** 2 / (2 * second) if first < 2 * second else 4 * first
        return (2 * add if self.schema["nonnegative"] else max(2 * add, opposed)) if swap else add


class Ridge(Kind):
    """G = sum of x x', h = sum of x y and q = sum of y y, by fold."""

    keys = f"targets=1 clip_norm target_bound folds=1{SIGNED} missing?"
    missing = "left out"
    matrices = "G"
    percent: ClassVar[Table] = {"G": 50, "h": 48, "q": 2}
    products: ClassVar[dict[str, Summand]] = {
        "G": Summand("xx", by_cell=True),
        "h": Summand("xb", by_cell=True),
        "q": Summand("bb", by_cell=True, places="summed"),
    }
    unsigned = ("q", "Gq")
    of_persons = closer_averages = True
    known = "Ghq"

    @property
    def cells(self) -> int:
        return int(self.schema["folds"])

    @property
    def vectors(self) -> dict[str, int]:
        return {"x": self.schema["features"], "b": self.schema["targets"]}

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        G, h, q = (w[s] * self.radius**4 for s in "Ghq")
        other_fold = 2 * (G + h + q) if self.schema["folds"] > 1 else ZERO
        return max(other_fold, _exchanged(G, h, q)) if swap else G + h + q

    def consistent(self) -> bool:
        return "missing" not in self.schema or bool(self.schema["targets"] == 1)


def _exchanged(g: Fraction, h: Fraction, q: Fraction) -> Fraction:
    """Maximise 2 g (1 - c^2) + h (1 + t^2 + 2 c t) + q (1 - t^2)^2 over c, t at its three possible points."""
    inside, peaks = [(1 - each) / 2 for each in root(1 - 2 * h / q)] if q > 2 * h else [ZERO, ZERO], []
    for high, low in ((ZERO, ZERO), (ONE, ONE), inside):
        c, C = (min(ONE, h * t / (2 * g)) if g else ONE for t in (low, high))
        peaks.append(2 * g * (1 - c**2) + h * (1 + high**2 + 2 * C * high) + q * (1 - low**2) ** 2)
    return max(peaks)


class Mean(Kind):
    """The sum of one clipped vector per record."""

    keys = f"clip_norm{SIGNED}"
    products: ClassVar[dict[str, Summand]] = {"x": Summand("x")}
    unsigned = ("", "x")
    of_persons = True
    known = "x"

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        """Bound one vector; two are opposed at most, or orthogonal without negative entries."""
        return w["x"] * self.radius**2 * ((2 if self.schema["nonnegative"] else 4) if swap else 1)


class Party(Kind):
    """One clipped vector per party, for example the weights of its own head."""

    keys = PARTY
    products: ClassVar[dict[str, Summand]] = {"P": Summand("a")}
    of_records = False
    known = "P"

    @property
    def vectors(self) -> dict[str, int]:
        return {"a": self.schema["features"]}

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        return w["P"] * self.radius**2 * (4 if swap else 1)


class PartyUpdate(Party):
    """One clipped change of published weights per party."""

    reads_published = True


class Gaussians(Kind):
    """Counts, means and covariances of each client's own records, or moments around published ones."""

    keys = f"clip_norm shrinkage rounds reference=false among?{SIGNED}"
    of_records = False

    @property
    def reads_published(self) -> bool:
        return bool(self.schema["reference"])

    @property
    def known(self) -> str:
        return "NM" if self.schema["reference"] else "NxV"

    @property
    def matrices(self) -> str:
        return self.known[-1]

    @property
    def percent(self) -> Table:
        return {"N": 2} if self.schema["reference"] else {"N": 2, "x": 48}

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        require(not swap, "unit", "no sensitivity is proved for it")
        square = {"N": COUNT**2, "x": self.radius**2, "V": self.radius**4, "M": self.radius**4}
        return sum((w[s] * square[s] for s in w), ZERO)

    def admits(self, record: Table) -> bool:
        """Return False: a client's clip alone bounds its sums, and no record attains it."""
        return False


class Scored(Kind):
    """Base of rounds of a regression: gradient g, information H and, for robust errors, the score's moment J."""

    matrices = "H"
    products: ClassVar[dict[str, Summand]] = {
        "g": Summand("xr"),
        "H": Summand("aa"),
        "J": Summand("cc"),
        "Q": Summand("rr", places="summed"),
        "V": Summand("kk", places="summed"),
    }
    more_keys = "my"  # mean and outcome, in steps of 2**-20 of the largest outcome
    reads_published = True

    @property
    def known(self) -> str:
        return "gH" + "J" * ("errors" in self.schema) + "QV" * ("overdispersion" in self.schema)

    @property
    def percent(self) -> Table:
        """Percent of each letter; robust errors take 5 % of what the others share, and the dispersion as much again."""
        parts = self.usual
        for key, more in (("errors", {"J": 5}), ("overdispersion", dict.fromkeys("QV", Fraction(5, 2)))):
            if key in self.schema:
                parts = {**{s: part * Fraction(95, 100) for s, part in parts.items()}, **more}
        return parts

    @property
    def usual(self) -> Table:
        """Percent of g and H alone."""
        return {"g": 70, "H": 30}

    @property
    def vectors(self) -> dict[str, int]:
        d = self.schema["features"]
        more = {"c": d} if "errors" in self.schema else {}
        return {"x": d, "r": 1, "a": d, **more, **({"k": 1} if "overdispersion" in self.schema else {})}

    def _second_moment(self, w: Weights, swap: bool) -> Any:
        """Bound J: two positive semidefinite matrices are at most as far apart as orthogonal."""
        return w["J"] * self.radius**4 * (1 + swap) if "J" in w else ZERO

    def least(self, name: str) -> int:
        return 0 if name == "k" else super().least(name)

    def admits(self, record: Table) -> bool:
        if not super().admits(record):
            return False
        residual = sum(abs(value) for _, value in record["r"])
        whole = all(_is_whole(record[name], 2**20 + 1) for name in self.more_keys)
        fine = whole and self._is_possible(record, residual)
        return fine and ("c" not in record or _length(record["c"]) <= residual**2)

    def _is_possible(self, record: Table, residual: int) -> bool:
        """Return whether residual r and information a a' belong to one and the same mean."""
        raise NotImplementedError


class Score(Scored):
    """Rounds of a logistic or a Poisson regression."""

    keys = (
        f'clip_norm family="logistic" target_bound? rate? outcomes?{SIGNED} missing? errors?="model" '
        "exposure? exposure_bound? negative_binomial? overdispersion?"
    )
    missing = "outcome"
    unsigned = ("QV", "QV")
    of_persons = closer_averages = True

    @property
    def linear(self) -> bool:
        """Whether the variance grows linearly with the mean, as Poisson's."""
        return bool(self.schema["family"] == "poisson")

    @property
    def usual(self) -> Table:
        return super().usual if self.linear else {"g": Fraction("59.1"), "H": Fraction("40.9")}

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        g, H = (w[s] * self.radius**4 for s in "gH")
        known = self._poisson(g, H, swap) if self.linear else _logistic(g, H) * (1 + swap) + 2 * g * swap
        squares = sum((w[s] * self.radius**4 for s in "QV" if s in w), ZERO)  # each from 0 to 1, for two records alike
        return known + self._second_moment(w, swap) + squares

    @staticmethod
    def _poisson(g: Fraction, H: Fraction, swap: bool) -> Fraction:
        between = 2 * g + 2 * H + g**2 / (2 * H) if g <= 2 * H and H else ZERO
        return max(4 * g + H, between) if swap else g + H

    def _is_possible(self, record: Table, residual: int) -> bool:
        one, r = 2**20, self.radius
        m, y = int(record["m"]), int(record["y"])
        fine = (self.linear or y in (0, one)) and residual * one <= r * abs(y - m)
        if "k" in record:  # the mean, rounded
            fine = fine and 2 * one * sum(value for _, value in record["k"]) <= 2 * r * m + one
        return fine and _length(record["a"]) * one**2 <= r**2 * m * (one if self.linear else one - m)

    def consistent(self) -> bool:
        schema = self.schema
        if ("target_bound" in schema) != self.linear or ("exposure" in schema) != ("exposure_bound" in schema):
            return False
        if "exposure" in schema and not self.linear:
            return False
        dispersed = {"negative_binomial", "overdispersion"} & {*schema}
        if len(dispersed) > (self.linear and "errors" in schema):
            return False
        return "missing" not in schema or not (self.nonnegative or {"rate", "outcomes", "target_bound"} & {*schema})


def _logistic(score: Fraction, information: Fraction) -> Fraction:
    """Maximise score p^2 + information p^2 (1 - p)^2 over p."""
    if not score or 8 * score > information:
        return score or information / 16
    high, low = ((3 - each) / 4 for each in root(1 - 8 * score / information))
    return max(score, score * high**2 + information * (high * (1 - low)) ** 2)


class Hazard(Scored):
    """Rounds of a proportional hazards regression: a person over all periods, in units of the cap."""

    keys = (
        f'clip_norm bins event cap=1 expected_events? times? time_unit? strata? entry?{SIGNED} errors?="model" ratios?'
    )
    attained = False  # in the limit alone

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        known = (4 * w["g"] + 2 * w["H"] if swap else w["g"] + w["H"]) * self.radius**4
        return known + self._second_moment(w, swap)

    def _is_possible(self, record: Table, residual: int) -> bool:
        """Ask of one period that is seen whole: e^m - 1 >= m (1 + m / 2 + m^2 / 6); at the event r is 1 at most."""
        m, y, one, r = record["m"], record["y"], 2**20, self.radius
        fine = y in (0, one) and all(place == 0 and value * (1 if y else -1) >= 0 for place, value in record["r"])
        fine = fine and residual * one <= r * (y or m)
        return fine and _length(record["a"]) * (6 * one**2 + 3 * one * m + m**2) <= 6 * r**2 * m * one

    def consistent(self) -> bool:
        schema = self.schema
        outcomes = [each["name"] for step in schema["transform"] for each in _declared(step, "outcomes")]
        fine = outcomes in ([], [schema["event"]]) and ("entry" not in schema or "times" in schema)
        if "ratios" in schema:
            fine = fine and "times" in schema and "entry" not in schema and schema["errors"] == "robust"
        if "time_unit" in schema:
            fine = fine and "times" in schema and schema["times"] == "continuous"
            edges = schema["bins"]["edges"]
            fine = fine and _types(edges) <= {int, Fraction} and not any(edge % schema["time_unit"] for edge in edges)
        return fine


class Gradients(Kind):
    """A round of a model's last layer: clipped gradients g, and k, how far each was below its clip."""

    keys = f"classes? residual_norm target_bound? module? package?{ROUND}"
    percent: ClassVar[Table] = {"g": 99, "k": 1}
    products: ClassVar[dict[str, Summand]] = {"g": Summand("rx"), "k": Summand("k")}
    unsigned = ("k", "k")
    reads_published = of_persons = True
    known = "gk"

    @property
    def vectors(self) -> dict[str, int]:
        classes = [self.schema[name] for name in ("classes",) if name in self.schema]
        return {"x": self.schema["features"] + len(classes), "r": max([1, *classes]), "k": 1}

    def least(self, name: str) -> int:
        return 0 if name == "k" else super().least(name)

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        return w["g"] * self.radius**4 * (4 if swap else 1) + w["k"] * self.radius**2

    def consistent(self) -> bool:
        ours = "module" not in self.schema or str(self.schema["module"]).startswith(OWN_MODULE)
        return ("classes" in self.schema) != ("target_bound" in self.schema) and ours != ("package" in self.schema)


class Calibration(Kind):
    """A round of a published head's temperature: the sure probability, and what each temperature gains."""

    keys = f"classes{ROUND}"
    products: ClassVar[dict[str, Summand]] = {"t": Summand("v")}
    reads_published = of_persons = closer_averages = True
    known = "t"

    @property
    def vectors(self) -> dict[str, int]:
        return {"v": 11}

    def limit(self, name: str) -> int:
        return 2 * self.radius**2 if name == "v" else self.radius**2

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        R = self.radius
        rest = R - R // self.schema["classes"]
        return w["t"] * ((R + rest) ** 2 + rest**2 if swap else max(R**2, 2 * rest**2))

    def admits(self, record: Table) -> bool:
        """Ask also whether the vector is [right] - P and gains from P up to 1 - P, for one probability P."""
        if not super().admits(record):
            return False
        first, *gains = (Counter(dict(record["v"]))[place] for place in range(11))
        least = self.radius // self.schema["classes"]
        return min(gains) >= 0 and any(least <= P <= self.radius - sum(gains) for P in (self.radius - first, -first))


class Effect(Kind):
    """A trial's or study's effect: counts N, weights W, influences of each outcome, balance b, and excluded O."""

    keys = (
        f'outcome probability? estimand="ate" trim? clip_norm{VECTORS.replace("12", "16", 1)} '
        "outcome_names? subgroups? groups? measure? balance? missing? left_out?"
    )
    missing = "weights"
    products: ClassVar[dict[str, Summand]] = {
        "N": Summand(by_cell=True, steps=COUNT),
        "O": Summand("u", steps=COUNT),
        "W": Summand("o", by_cell=True),
        "e": Summand("t", by_cell=True),
        **{s: Summand(s, by_cell=True) for s in "bfghijkl"},
    }
    unsigned = ("N", "N")
    reads_published = closer_averages = excludes = True

    @property
    def of_persons(self) -> bool:
        return "left_out" not in self.schema  # of averages alone, see _proved_unit

    @property
    def further(self) -> str:
        """Letters of the outcomes after the first."""
        return "fghijkl"[: self.outcomes - 1]

    @property
    def outcomes(self) -> int:
        """Number of outcomes."""
        return len(self.schema["outcome_names"]) if "outcome_names" in self.schema else 1

    @property
    def weighs(self) -> bool:
        """Whether weights are sent: of a study without a known probability, of a ratio, of missing outcomes."""
        return "measure" in self.schema or "probability" not in self.schema or "missing" in self.schema

    @property
    def balanced(self) -> bool:
        """Whether the balance of columns is sent."""
        return "balance" in self.schema

    @property
    def known(self) -> str:
        letters = {
            "N": True,
            "O": "left_out" in self.schema,
            "W": self.weighs,
            "b": self.balanced,
            "e": True,
        }
        return "".join(letter for letter, sent in letters.items() if sent) + self.further

    @property
    def percent(self) -> Table:
        """Percent of each letter; several outcomes divide one outcome's share, after balance and excluded records."""
        schema, fixed = self.schema, {"N": 12, "W": 12, "e": 76} if self.weighs else {"N": 14, "e": 86}
        balance = schema["balance"] if self.balanced else ZERO
        parts = {s: fixed[s] if s in "NW" else fixed["e"] * Fraction(1, self.outcomes) for s in self.known}
        parts = {s: 100 * balance if s == "b" else part * (1 - balance) for s, part in parts.items()}
        return {s: 50 if s == "O" else part / 2 for s, part in parts.items()} if "O" in parts else parts

    @property
    def cells(self) -> int:
        if "groups" in self.schema:
            return int(self.schema["groups"])
        return math.prod(_cells(_listed(self.schema, "subgroups")).values())

    @property
    def vectors(self) -> dict[str, int]:
        ratio = "measure" in self.schema
        lengths = {"t": 2, "o": 2 if ratio else int(self.weighs), **dict.fromkeys(self.further, 2)}
        lengths |= {"b": self.schema["features"] // 2} if self.balanced else {}
        return lengths | ({"u": 6} if "left_out" in self.schema else {})

    def least(self, name: str) -> int:
        return -self._deepest() if name == "o" else -self.radius

    def _deepest(self) -> int:
        """Return how far an influence on the untreated mean can be below 0, in steps; 0 without a ratio."""
        if "measure" not in self.schema:
            return 0
        chances = self.schema["probability"]
        return int(_float(max(chances) if type(chances) is list else chances) * self.radius)

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        """Bound a record that adds 1 to N, at most 1 to W, and (t, 1 - t^2) to each outcome.

        Each pair has norm at most 1, and two are at most 2 apart. Against an excluded record one record counts, in two
        subgroups both. An excluded record adds 1 to one entry of O alone.
        """
        one, square = self.radius, self.radius**2
        weight, gone = (w[s] * size if s in w else ZERO for s, size in (("W", square), ("O", COUNT**2)))
        influence = sum((w[s] for s in w if s not in "NOW"), ZERO) * square
        alone = COUNT**2 * w["N"] + weight + influence
        if not swap:
            return max(alone, gone)
        k, ratio = self._deepest(), "measure" in self.schema
        far = Fraction((one + k) ** 2 + ((square - k * k) // one) ** 2, square) if ratio else 1
        return max(weight * far + 4 * influence, 2 * alone * (self.cells > 1), alone + gone, 2 * gone)

    def admits(self, record: Table) -> bool:
        """Ask also whether 1 - t^2 follows from t itself, and whether an excluded record is in no other sum."""
        if not super().admits(record):
            return False
        others, gone = {*self.vectors} - {"u"}, record["u"] if "u" in self.vectors else []
        if gone and (len(gone) != 1 or gone[0][1] != 1 or any(record[name] for name in others)):
            return False
        pairs = [name for name in others - {"b"} if name != "o" or "measure" in self.schema]
        return all(self._is_pair(record, name) for name in pairs)

    def _is_pair(self, record: Table, name: str) -> bool:
        t, s = (Counter(dict(record[name]))[place] for place in range(2))
        fine = s >= 0 and s * self.radius <= self.radius**2 - t**2
        return fine and (bool(record["o"]) or not t or not self.vectors["o"])  # an influence of records that weigh

    def terms(self, record: Table, letter: str) -> Iterator[tuple[Any, int]]:
        """Yield as every kind; an excluded record does not count."""
        gone = "u" in record and record["u"] != []
        yield from () if gone and letter == "N" else super().terms(record, letter)

    def consistent(self) -> bool:
        schema, gaps = self.schema, "missing" in self.schema
        fine = (("probability" in schema) != ("trim" in schema) or gaps) and _is_range(schema["outcome"])
        fine = fine and (not gaps or self._has_gaps())
        fine = fine and ("trim" not in schema or schema["trim"] <= Fraction(2 + 2 * gaps, 5))
        fine = fine and ("measure" not in schema or ("probability" in schema and self.outcomes == 1))
        fine = fine and 1 <= self.outcomes <= 8 and ("subgroups" not in schema or self._divides())
        parts = {"subgroups", "left_out"} & {*schema}
        return fine and ("groups" not in schema or (not parts and 6 <= self.cells <= 64))

    def _has_gaps(self) -> bool:
        """Return whether weights for missing outcomes have a bound beside the other keys."""
        schema = self.schema
        terms = {"measure", "balance", "subgroups", "groups", "probability", "trim"} & {*schema}
        fine = terms == {"probability", "trim"} and self.outcomes == 1
        return fine and type(schema["probability"]) is not list and schema["trim"] * 5 >= 1

    def _divides(self) -> bool:
        several, names = self.schema["subgroups"], {each["name"] for each in self.schema["subgroups"]}
        fine = 1 <= len(names) == len(several) <= 6 and min(_cells(several).values()) >= 2 and self.cells <= 64
        features = _listed(self.schema, "feature_names")  # compared, not hashed: integers may share one hash
        return fine and all(name in features for name in names)


def _is_range(ends: list[Any]) -> bool:
    fine = len(ends) == 2 and _types(ends) <= {int, Fraction}
    return bool(fine and -(10**12) <= ends[0] < ends[1] <= 10**12)


class Counts(Kind):
    """Tables T of counts, and sums x and q of numbers and their squares by group."""

    keys = "variables tables numbers? late_entry? transform=[]"
    unsigned = ("Tq", "Tq")
    of_persons = closer_averages = True

    @property
    def excludes(self) -> bool:
        return "numbers" in self.schema

    @property
    def known(self) -> str:
        return "Txq" if "numbers" in self.schema else "T"

    @property
    def numbers(self) -> list[Table]:
        """Declared numbers."""
        return _listed(self.schema, "numbers")

    @property
    def tables(self) -> list[list[Any]]:
        """Count tables, and each number's own tables of groups and of missing values."""
        return [*self.schema["tables"], *([*_listed(n, "by"), n["name"]] for n in self.numbers)]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of cells of each variable and number."""
        return _cells(self.schema["variables"] + self.numbers)

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        """Bound tables, and numbers z and z^2 with |z| <= 1.

        Two values are d apart, and at most 2 - d from each other's opposite; in two groups, or with one missing, both
        count in full.
        """
        tables, numbers, T = len(self.schema["tables"]), self.numbers, COUNT**2 * w["T"]
        x, q = (w[s] * size if numbers else ZERO for s, size in (("x", 4**12), ("q", 16**12)))
        alone = T * (tables + len(numbers)) + (x + q) * len(numbers)  # also beside a record that is left out
        if not swap:
            return alone
        d, D = ((3 - each) / 2 for each in (root(1 - 2 * x / q)[::-1] if 0 < 2 * x < q else [ONE] * 2))
        near = max(4 * x, D**2 * (x + q * (2 - d) ** 2))
        far = ((2 * (T + x + q) if "by" in n else 2 * T + x + q if "missing" in n else ZERO) for n in numbers)
        return max(alone, 2 * T * tables + sum((max(near, each) for each in far), ZERO))

    def admits(self, record: Table) -> bool:
        steps = {"steps"} if "numbers" in self.schema else set()
        if set(record) != {"times", "cell", "values", *steps} or not _is_whole(record["cell"], 1):
            return False
        values, numbers, sizes = record["values"], record["steps"] if steps else {}, self.sizes
        if set(values) != set(sizes) or set(numbers) != {n["name"] for n in self.numbers}:
            return False
        fine = _many(record) and all(_is_whole(value, sizes[name]) for name, value in values.items())
        return fine and all(type(z) is int and abs(z) <= 2**12 * (1 - values[name]) for name, z in numbers.items())

    def terms(self, record: Table, letter: str) -> Iterator[tuple[Any, int]]:
        values = record["values"]
        if letter == "T":
            yield from (((place, *(values[name] for name in of)), COUNT) for place, of in enumerate(self.tables))
            return
        for n in self.numbers:
            group = n["name"], *(values[name] for name in _listed(n, "by"))
            yield group, record["steps"][n["name"]] ** (1 + (letter == "q"))

    def entries(self, letter: str) -> int:
        tables, sizes = self.tables if letter == "T" else [_listed(n, "by") for n in self.numbers], self.sizes
        return sum(math.prod(sizes[name] for name in table) for table in tables)

    def consistent(self) -> bool:
        schema, tables, sizes = self.schema, self.tables, self.sizes
        fine = len(sizes) == len(schema["variables"]) + len(self.numbers)
        fine = fine and ("numbers" in schema) == bool(self.numbers)
        fine = fine and all(sizes[v["name"]] >= 2 for v in schema["variables"]) and 1 <= len(tables) <= 1 << 15
        fine = fine and all(type(one) is list and len(one) <= 16 and 1 <= len({*one}) == len(one) for one in tables)
        fine = fine and all((n["high"] - n["low"]) * 10**9 >= max(-n["low"], n["high"]) > 0 for n in self.numbers)
        return fine and self.entries("T") <= 1 << 16


class Scoring(Kind):
    """Tables T of a published head's predictions on records that it has not seen."""

    keys = (
        'head head_bytes classes features score_bins=20 score="probability" reach? by_class=false transform=[] '
        "class_names? feature_names? cuts?"
    )
    unsigned = ("T", "T")
    reads_published = of_persons = True
    known = "T"

    @property
    def sizes(self) -> list[int]:
        """Cells of each table.

        Two classes: label by score. More: label by predicted, right by score, and that of every class.
        """
        bins, classes = self.schema["score_bins"], self.schema["classes"]
        return [2 * bins] if classes == 2 else [classes**2] + [2 * bins] * (1 + classes * self.schema["by_class"])

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        return COUNT**2 * w["T"] * len(self.sizes) * (1 + swap)

    def admits(self, record: Table) -> bool:
        if set(record) != {"times", "cell", "places"} or not _is_whole(record["cell"], 1):
            return False
        places, sizes = record["places"], self.sizes
        return _many(record) and len(places) == len(sizes) and all(map(_is_whole, places, sizes))

    def terms(self, record: Table, letter: str) -> Iterator[tuple[Any, int]]:
        yield from ((place, COUNT) for place in enumerate(record["places"]))

    def consistent(self) -> bool:
        schema = self.schema
        if schema["classes"] > 256 or sum(self.sizes) > 1 << 16:  # the first before a table per class is listed
            return False
        if ("reach" in schema) != (schema["score"] == "margin"):
            return False
        bins, by_class, cuts = schema["score_bins"], schema["by_class"], _listed(schema, "cuts")
        if "cuts" not in schema and (schema["classes"] > 2 or not (by_class or bins % 2)):
            return True
        at = sorted({Fraction(1, 2), *(one for one in cuts if type(one) is Fraction and 0 < one < 1)})
        named = [schema["classes"], schema["score"], by_class, bins, cuts]  # cuts of two classes' probability alone
        return named == [2, "probability", False, len(at) + 1, at]


class Sites(Kind):
    """Counts N, and a party's second moments around its own mean: z z' summed, less s s' / (n + pull)."""

    keys = f"clip_norm pulls=[0] groups=1 target_scale=1{VECTORS}"
    matrices = "Q"
    percent: ClassVar[Table] = {"N": 2}
    beside_others = excludes = True
    known = "NQ"

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        """Bound a party of any size, or a client: its matrix is no longer than its records, truncated toward zero."""
        moved, d = (held or 4) * Fraction(self.radius**2), self.schema["features"]
        count, cut = COUNT**2 * w["N"] * (held or 1) ** 2, 0 if held and not swap else d
        far = w["Q"] * (root(2 * moved**2)[1] + 2 * d) ** 2 if swap else ZERO
        alone = count + w["Q"] * (moved + cut) ** 2  # also one record that is left out, exchanged for another
        return max(far, alone)

    def sums(self, records: list[Table]) -> Sums:
        out: Sums = {letter: Counter() for letter in self.known}
        for party in {record["cell"] for record in records}:
            own = [record for record in records if record["cell"] == party]
            n = sum(record["times"] for record in own)
            out["N"][0] += COUNT * n
            rows = [(record["times"], Counter(dict(record["x"]))) for record in own]
            for i, j, value in _around_mean(rows, n + _float(self.schema["pulls"][0])):
                out["Q"][i, j] += int(value)
        return out

    def consistent(self) -> bool:
        """Refuse several pulls, of which no promise is proved."""
        return len(self.schema["pulls"]) == 1 and _fits("pull", self.schema["pulls"][0])


class Within(Kind):
    """Counts N, and a party's labels L, sums A and moments B less its own mean, truncated to integer steps."""

    keys = f"classes clip_norm pull n_max class_names?{SIGNED}"
    matrices = "LB"
    percent: ClassVar[Table] = {"N": 2, "L": 5, "A": 80}
    beside_others = True
    known = "NLAB"

    @property
    def cells(self) -> int:
        return int(self.schema["classes"])

    def bound(self, w: Weights, swap: bool, held: int) -> Any:
        schema, square, times = self.schema, Fraction(self.radius**2), 1 + swap
        t = schema["n_max"] / (schema["n_max"] + _float(schema["pull"]))
        far = {"L": root(COUNT**2 * (1 + 3 * t * t))[1], "A": root(square * (1 + 2 * t + 5 * t * t))[1]}
        far["B"] = square * (1 + 3 * t)
        C, d = schema["classes"], schema["features"]
        steps = {"L": C, "A": root(Fraction(C * d))[1], "B": d}
        return times * COUNT**2 * w["N"] + sum((w[s] * (times * (far[s] + steps[s])) ** 2 for s in far), ZERO)

    def sums(self, records: list[Table]) -> Sums:
        out: Sums = {letter: Counter() for letter in self.known}
        n, most = sum(record["times"] for record in records), self.schema["n_max"]
        for record in records:
            out["N"][record["cell"]] += COUNT * record["times"]
        rows = [(each["times"], Counter({("y", each["cell"]): 1, **dict(each["x"])})) for each in records]
        for i, j, value in _around_mean(rows, n + _float(self.schema["pull"]) * Fraction(max(n, most), most)):
            label, other = type(i) is tuple, type(j) is tuple
            if label or not other:  # A once
                out["BAL"[label + other]][i, j] += int(value * (COUNT if label and other else 1))
        return out


def _around_mean(rows: list[tuple[int, Counter[Any]]], held: Fraction) -> Iterator[tuple[Any, Any, Fraction]]:
    """Yield each entry of z z' summed, less s s' / held, where s is the sum of z."""
    total: Counter[Any] = Counter()
    for times, z in rows:
        for i, value in z.items():
            total[i] += times * value
    for i, j in product(total, total):
        yield i, j, sum(times * z[i] * z[j] for times, z in rows) - total[i] * total[j] / held


KINDS: dict[str, type[Kind]] = {
    "classes": Classes,
    "ridge": Ridge,
    "mean": Mean,
    "counts": Counts,
    "scoring": Scoring,
    "sites": Sites,
    "within": Within,
    "score": Score,
    "hazard": Hazard,
    "effect": Effect,
    "calibration": Calibration,
    "gradients": Gradients,
    "gaussians": Gaussians,
    "party-softmax": Party,
    "party-update": PartyUpdate,
}


def kind_of(schema: Table) -> Kind:
    """Return the kind that a schema's table names."""
    return KINDS[schema["task"]](schema)


def bound(schema: Table, weights: Weights, adjacency: str, held: int) -> Fraction:
    """Return the largest sum_s weight_s |v_s - v'_s|^2 of a schema, in squared wire steps.

    ``held``: maximum number of records of a client unit with sums that are not over records (sites).
    """
    kind, swap = kind_of(schema), {"add-remove": False, "replace-one": True}[adjacency]
    w = {**dict.fromkeys(kind.known, ZERO), **weights}  # letters that are not named are not released
    require(set(w) == {*kind.known}, "form", f"no bound of these letters of {schema['task']} is known")
    return Fraction(kind.bound(w, swap, held))


# --- Declared columns ------------------------------------------------------------------------------------------------


def _cells(variables: list[Table]) -> dict[str, int]:
    """Return the number of cells of each variable, by name."""
    several = ((v, len(v["values"]) if "values" in v else 1 if "low" in v else len(v["edges"]) - 1) for v in variables)
    return {v["name"]: size + sum(name in v for name in ("other", "missing")) for v, size in several}


def _declared(step: Table, name: str) -> list[Any]:
    """Return the columns that a map of raw rows declares."""
    names = step[name] if step["kind"] in ("cells", "levels") and name in step else []
    require(type(names) is list, "plan", "no plan declares so")
    return list(names)


def _is_number(column: Table) -> bool:
    return column["kind"] in ("numeric", "dates")


def _cuts(column: Table) -> int:
    """Return the number of signs of a declared column; 0 with a cell per value."""
    if column["kind"] == "truth":
        return 1
    if "values" in column:
        k = len(column["values"])
        return k - 1 if k == 2 or (k and "ordered" in column) else 0
    return len(column["edges"]) if "edges" in column else 0


def _is_short(step: Table) -> bool:
    """Return whether no row of these cells is longer than 2**bits: in integers, from J, K_j and f alone."""
    types = _types(each[name] for each in step["columns"] for name in ("edges", "values") if name in each)
    require({int} == _types([step["signs"], step["bits"]]) and types <= {list}, "plan", "no plan declares so")
    require(8 <= step["bits"] <= 20 and 1 <= step["signs"] <= 64 and type(step["ramp"]) is bool, "plan", "out of range")
    J, full, square = len(step["columns"]), 4 ** step["bits"], 0
    for column in step["columns"]:
        K, ramp = max(_cuts(column), 1), step["ramp"] and _is_number(column)
        q, up = math.isqrt(full // (J * K * (1 + ramp))), math.isqrt(full // (J * (1 + ramp)))
        require(q >= 32, "plan", "the step of a column is too coarse")
        square += max(K * q * q + ramp * up * up, math.isqrt(full // J) ** 2)  # a value, or a gap
    return bool(square <= full)


def _width(schema: Table) -> int:
    """Return the entries of a row of cells: signs, ramp and gaps, or a cell per value, others and gaps.

    It is 0 without columns, or where later maps change their number.
    """
    kinds = [step["kind"] for step in schema["transform"]]
    if kinds[:1] != ["cells"] or not {*kinds[1:]} <= KEEPING:
        return 0
    step = schema["transform"][0]
    numbers = [each for each in step["columns"] if _is_number(each)]
    words = [each for each in step["columns"] if not _is_number(each)]
    of_numbers = sum(max(step["signs"], _cuts(each)) + step["ramp"] + 1 for each in numbers)
    of_words = sum(_cuts(each) + 1 if _cuts(each) else len(each["values"]) + 2 for each in words)
    return int(of_numbers + of_words + kinds.count("constant-feature") + (schema["task"] == "sites"))


# --- The form of a plan ----------------------------------------------------------------------------------------------

OPTIONAL_LISTS = ("variables", "subgroups", "numbers")  # of tables
KEYS = {  # of tables beside the schema's; "k?" may be missing, and a missing "k?=v" means v
    "plan": "version schema cohort privacy aggregation={} published? validity? devices?",
    "cohort": "clients min_survivors max_records colluders=0",
    "validity": "level most_records",
    "devices": "organisations registrar registrar_key page most_runs stated_epsilon? words? exact? texts?",
    "privacy": "model unit adjacency epsilon delta shares? max_records_per_client? client_clip? "
    "max_records_per_person? person_clip?",
    "published": 'sha256 after?=""',
    "aggregation": 'min_count=0 graph="auto" merge?={} protocol?="interactive" panel?=[] spare_bits?=0 '
    'excess_noise?="kept" key_agreement?',
    "values": "name values other?=false missing?=false",
    "numbers": "name low high by?=[] missing?=false",
    "bins": 'name edges closed?="left"',
    "late_entry": "entry time times rounded?=false",
    "edges": 'name edges closed?="left" missing?=false open?="both"',
    "numeric": 'name kind edges? gaps?=[] unit?="" suffix?="" censored?=false',
    "dates": 'name kind edges? gaps?=[] written?=""',
    "truth": "name kind gaps?=[] values?=[]",
    "categories": "name kind values ordered?=false gaps?=[] as_text?=false",
}
DECLARED, DRAWN = ["numeric", "dates", "truth", "categories"], "seed inputs features"  # of a raw table; of a draw
KEEPING = {"constant-feature", "unit-norm", "scale", "centre", "centre-rows"}  # maps of so many entries, or one more
STEPS = {  # public maps of one row; transport is fitted on a client's own
    "random-fourier": f"{DRAWN} bandwidth=1",
    "sparse-projection": f"{DRAWN} sparsity=3",
    "orthogonal-projection": DRAWN,
    "gaussian-projection": DRAWN,
    "random-relu": f"{DRAWN} keep_inputs=false",
    "constant-feature": "value",
    "by-arm": "column",
    "unit-norm": "",
    "scale": "per",
    "centre": "centre",
    "centre-rows": "",
    "transport": "features reference strength",
    "interactions": "pairs",
    "cells": "columns signs=7 ramp=true bits=12 missing?",
    "levels": "columns=[] outcomes=[] spread?=[]",
}
INTEGERS = {  # minimum and maximum
    **dict.fromkeys(["version"], (1, 1)),
    **dict.fromkeys(["features", "classes"], (2, MAX_INTEGER)),
    **dict.fromkeys(["targets", "n_max", "expected_records", "expected_events"], (1, MAX_INTEGER)),
    **dict.fromkeys(["min_survivors", "max_records", "most_records"], (1, MAX_INTEGER)),
    **dict.fromkeys(["max_records_per_client", "max_records_per_person"], (1, MAX_INTEGER)),
    **dict.fromkeys(["colluders", "min_count"], (0, MAX_INTEGER)),
    **dict.fromkeys(["folds", "groups"], (1, 64)),
    "grid_bits": (2, 20),
    "rounds": (1, 3),
    "clients": (2, 1 << 24),
    "spare_bits": (1, 32),
    "most_runs": (1, 10_000),
    "outcomes": (2, 8),
    "head_bytes": (1, 1 << 25),
    "score_bins": (2, 1000),
}
REAL: Table = {
    **dict.fromkeys(["clip_norm", "target_bound", "target_scale", "reach", "time_unit"], (TINY, 1 / TINY)),
    **dict.fromkeys(["residual_norm", "course_mu", "rate", "exposure_bound"], (TINY, 1 / TINY)),
    **dict.fromkeys(["low", "high"], (-(10**15), 10**15)),
    **dict.fromkeys(["client_clip", "person_clip"], (1, MAX_INTEGER)),
    "pull": (TINY, 10**9),
    "negative_binomial": (Fraction("0.001"), 1000),
    "trim": (Fraction("0.02"), Fraction("0.8")),
    "epsilon": (Fraction("0.001"), 100),
    "delta": (Fraction("1e-15"), Fraction("0.1")),
    "stated_epsilon": (TINY, 10**9),
    "probability": (Fraction("0.05"), Fraction("0.95")),
    "balance": (Fraction("0.05"), Fraction("0.5")),
    "cap": (1, 1),
    "shrinkage": (0, 1),
}
WORDS = {
    "model": "central distributed local panel",
    "unit": "record client person",
    "adjacency": "add-remove replace-one",
    "graph": "auto complete robust sparse",
    "protocol": "split",
    "key_agreement": "mlkem768-x25519",
    "excess_noise": "removed",
    "level": "moments norm",
    "closed": "right",
    "open": "above below none",
    "family": "logistic poisson",
    "errors": "robust",
    "overdispersion": "estimated",
    "ratios": "subdistribution",
    "times": "continuous discrete",
    "score": "probability margin",
    "estimand": "ate att overlap",
    "measure": "ratio both",
    "left_out": "counted",
}
NAMED: dict[type, str] = {  # keys whose value is of a type, and no more
    str: "statistics module event entry time exposure head name sha256 after registrar registrar_key page words exact",
    dict: "schema cohort privacy aggregation published validity devices merge shares bins strata late_entry",
    list: "outcome transform variables tables pulls values edges class_names feature_names among panel organisations "
    "outcome_names subgroups cuts numbers by",
    bool: "nonnegative reference other missing by_class rounded",
}


BRINGER = (  # a package and its version, or the place of what is in no package
    r"[a-z0-9]+(?:-[a-z0-9]+)* [A-Za-z0-9][A-Za-z0-9_.!+-]{0,63}( \(in place\))?|"
    r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199} \(no package\)"
)
MAP = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"  # the kind of a map of another package


class Part(NamedTuple):
    """One table of a plan, with the keys that it can have, as (key, "=" or "", what a missing one means)."""

    table: Table
    keys: list[tuple[str, str, str]]
    name: str


def _part(table: Table, keys: str, name: str) -> Part:
    return Part(table, [key.partition("=") for key in keys.split()], name)


def _parts(plan: Table) -> Iterator[Part]:
    """Yield a plan's tables, one by one, so that the reader may fill each in."""
    yield _part(plan, KEYS["plan"], "plan")
    yield from (_part(plan[name], KEYS[name], name) for name in KEYS if name in plan)
    schema = plan["schema"]
    require("task" in schema and schema["task"] in KINDS, "plan", "no bound of such a schema is known")
    yield _part(schema, f"task {KINDS[schema['task']].keys}", "schema")
    for step in schema["transform"]:
        yield from _step_parts(step)
    for key in OPTIONAL_LISTS:
        for each in _listed(schema, key):
            yield _part(each, KEYS[key if key == "numbers" else "edges" if "edges" in each else "values"], "variable")
    for name, keys in (("bins", "bins"), ("strata", "values"), ("late_entry", "late_entry")):
        if name in schema:
            yield _part(schema[name], KEYS[keys], "variable")


def _step_parts(step: Table) -> Iterator[Part]:
    require("kind" in step, "plan", "a transform has no kind")
    if "package" in step:  # a map of another package: the clip behind it bounds what it returns for a record
        require(step["kind"] not in STEPS and _is_name(step["kind"], MAP), "plan", "no such transform is known")
        require(_is_name(step["package"], BRINGER), "plan", "a transform of no package")
        yield _part(step, " ".join(f"{key}?" for key in step), "transform")
        return
    require(step["kind"] in STEPS, "plan", "no such transform is known")
    yield _part(step, f"kind {STEPS[step['kind']]}", "transform")
    for column in _declared(step, "columns") + _declared(step, "outcomes"):
        require("kind" in column and column["kind"] in DECLARED, "plan", "no such column is known")
        yield _part(column, KEYS[column["kind"]], "transform")


def _fill(plan: Table) -> Table:
    """Write out what a plan file omits, and omit what a certificate's tables do."""
    for table, keys, _ in _parts(plan):
        for name, usual in ((name, json.loads(usual)) for name, _, usual in keys if usual):
            if not name.endswith("?") and name not in table:
                table[name] = usual
            elif name[:-1] in table and repr(table[name[:-1]]) == repr(usual):
                del table[name[:-1]]
    schema = plan["schema"]
    if "features" not in schema and schema["task"] != "counts" and _width(schema):
        schema["features"] = _width(schema)
    return plan


def _checked_form(plan: Table) -> Table:
    for part in _parts(plan):
        _check_keys(part)
    _check_consistent(plan)
    return plan


def _check_keys(part: Part) -> None:
    table, keys, where = part
    known = {name.rstrip("?"): name.endswith("?") for name, _, _ in keys}
    lacking = [name for name, free in known.items() if not free and name not in table]
    require(not lacking, "plan", f"{where} lacks {', '.join(lacking)}, which is never left out")
    unknown = [name for name in table if name not in known]
    require(not unknown, "plan", f"{where} has a key that no plan has: {ascii(unknown)[:60]}")
    for name, value in table.items() if where != "transform" else ():  # public maps of a row, whatever they are
        own = (where, name) == ("schema", "missing")
        fine = value == KINDS[table["task"]].missing if own else _fits(name, value)
        require(fine, "plan", f"{name} lies where no plan can have it")


def _is_name(value: Any, form: str) -> bool:
    return type(value) is str and re.fullmatch(form, value) is not None


def _fits(name: str, value: Any) -> bool:
    """Return whether a plan can have this value under this key."""
    if name in INTEGERS:
        return type(value) is int and INTEGERS[name][0] <= value <= INTEGERS[name][1]
    if name == "probability" and type(value) is list:
        return 2 <= len(value) <= 1 << 24 and all(type(one) is not list and _fits(name, one) for one in value)
    if name in REAL:
        if (name, value) == ("person_clip", "average"):
            return True
        fine = type(value) in (int, Fraction) and REAL[name][0] <= value <= REAL[name][1]
        return bool(fine or (name == "pull" and type(value) in (int, Fraction) and value == 0))
    if name == "texts":
        texts = [*value.values()] if type(value) is dict else []  # no promise depends on a page's texts
        return texts != [] and all(type(one) is dict and set(one) <= {"title", "questions"} for one in texts)
    if name in WORDS:
        return value in WORDS[name].split()
    if name == "package":
        return _is_name(value, BRINGER)
    return name == "task" or any(type(value) is kind and name in names.split() for kind, names in NAMED.items())


def _check_consistent(plan: Table) -> None:
    """Refuse inconsistent values where a bound, the noise or the work depends on them."""
    kind = kind_of(plan["schema"])
    fine = _parties_agree(plan["cohort"]) and _units_agree(plan["privacy"]) and _protocol_agrees(plan)
    fine = fine and ("published" in plan) == kind.reads_published and _shares_agree(plan["privacy"], kind)
    require(fine, "plan", "its parties or its promise contradict each other")
    fine = kind.consistent() and all(_cells_agree(step, kind) for step in plan["schema"]["transform"])
    require(fine and _rounds_to_a_ball(plan["schema"]), "plan", "its statements about a record contradict each other")


def _parties_agree(cohort: Table) -> bool:
    return bool(cohort["colluders"] < cohort["min_survivors"] <= cohort["clients"])


def _units_agree(privacy: Table) -> bool:
    """Return whether a unit of several records, and no other, has their number or a clip, or an average."""
    fine = bool(("person_clip" in privacy) == (privacy["unit"] == "person"))
    for unit, most, clip in ((unit, f"max_records_per_{unit}", f"{unit}_clip") for unit in ("client", "person")):
        averaged = unit == "person" and _averaged(privacy)
        fine = fine and (most in privacy) == (privacy["unit"] == unit and not averaged)
        fine = fine and (averaged or clip not in privacy or (most in privacy and privacy[clip] <= privacy[most]))
    return fine


def _protocol_agrees(plan: Table) -> bool:
    own, model, cohort = plan["aggregation"], plan["privacy"]["model"], plan["cohort"]
    if ("protocol" in own) != ("panel" in own) or (model == "panel" and "panel" not in own):
        return False
    layered = model == "distributed" and own["graph"] in {"auto", "complete"} and "panel" not in own
    layered = layered and cohort["min_survivors"] < cohort["clients"] <= 256
    return layered or "excess_noise" not in own


def _shares_agree(privacy: Table, kind: Kind) -> bool:
    if "shares" not in privacy:
        return True
    parts = [*privacy["shares"].values()]
    fine = set(privacy["shares"]) == set(kind.sent) and _types(parts) <= {int, Fraction}
    return fine and min(parts) > 0 and abs(sum(parts) - 1) <= Fraction("1.000001e-6")


def _cells_agree(step: Table, kind: Kind) -> bool:
    """Return whether a map of raw rows comes first, keeps the norm and has the plan's width; no clip follows."""
    if step["kind"] != "cells":
        return True
    schema = kind.schema
    fine = step is schema["transform"][0] and _is_short(step) and not kind.nonnegative
    return fine and (schema["task"] == "counts" or _width(schema) in (0, schema["features"]))


def _rounds_to_a_ball(schema: Table) -> bool:
    """Return whether the grid is fine enough for so many columns that rounded rows keep their length."""
    columns = [schema[name] for name in ("features", "targets") if name in schema]
    return "grid_bits" not in schema or all(each < 4 ** (schema["grid_bits"] + 1) for each in columns)


def read(text: str, claimed: Table) -> Table:
    """Return the plan's tables, which must match both the digest and the plan file, and what follows from them.

    ``held`` and ``clip``: a client's records and the unit's clip; ``averaged``: whether persons add averages;
    ``shares``: of the budget, by letter.
    """
    digest = hashlib.sha256(claimed["plan"].encode()).hexdigest()
    require(digest == claimed["plan_digest"], "plan_digest", "it is not that of the tables")
    stored, file = _json(claimed["plan"]), _toml(text)
    # The session of a course that the plan is for: no digest covers it, and no price depends on it.
    file.pop("session", None)
    require(stored["privacy"]["model"] in WORDS["model"].split(), "model", "the plan promises nothing")
    stored, file = _checked_form(stored), _checked_form(_fill(file))
    if file["schema"]["task"] == "classes":
        file["schema"]["statistics"] = kind_of(file["schema"]).sent
    mine, theirs = (_named_shares(tables["privacy"]) for tables in (stored, file))
    near = set(mine) == set(theirs) and all(abs(theirs[s] - part) <= TIGHT * part for s, part in mine.items())
    require(near and file == stored, "plan", "the file does not state what the digest covers")
    held, clip = _proved_unit(kind_of(stored["schema"]), stored["privacy"])
    averaged, shares = _averaged(stored["privacy"]), mine or _usual_shares(kind_of(stored["schema"]))
    return {**stored, "held": held, "clip": clip, "averaged": averaged, "shares": shares}


def _named_shares(privacy: Table) -> Table:
    """Return the shares that a plan names, which sum to one, and take them out of its table."""
    parts = privacy.pop("shares") if "shares" in privacy else {}
    return {s: Fraction(part) / sum(parts.values()) for s, part in parts.items()}


def _usual_shares(kind: Kind) -> Weights:
    """Return the shares of a plan that names none: percents, and the rest for the letters without one."""
    percent = kind.percent
    fixed = {s: Fraction(percent[s]) / 100 if s in percent else ZERO for s in kind.sent}
    others = [s for s in fixed if s not in percent] or [max(fixed, key=fixed.__getitem__)]
    rest = (1 - sum(fixed.values(), ZERO)) / len(others)
    return {s: part + rest * (s in others) for s, part in fixed.items()}


# --- The unit of a plan: a record, a client or a person --------------------------------------------------------------


def _averaged(privacy: Table) -> bool:
    return "person_clip" in privacy and privacy["person_clip"] == "average"


def _proved_unit(kind: Kind, privacy: Table) -> tuple[int, Any]:
    """Return a client's records and the unit's clip, 0 for none, if a sensitivity is proved for the unit."""
    client, averaged = privacy["unit"] == "client", _averaged(privacy)
    local = any(step["kind"] == "transport" for step in kind.schema["transform"])
    held = privacy["max_records_per_client"] if client else 0
    clip = next((privacy[s] for s in ("client_clip", "person_clip") if s in privacy and not averaged), 0)
    usual = privacy["adjacency"] == "add-remove" if client else not local
    if kind.schema["task"] == "gaussians":
        proved = usual and client and clip
    elif isinstance(kind, Party):
        proved = held == 1 and not clip
    elif privacy["unit"] == "person":
        proved = usual and kind.of_persons and (averaged or not isinstance(kind, Effect))
    else:
        proved = usual and kind.of_records
    require(proved, "unit", "no sensitivity is proved for it")
    return held, clip


def unit_bound(plan: Table, weights: Weights) -> Fraction:
    """Return :func:`bound` for the plan's unit: a record, or a client or person with a limit or a clip."""
    schema, adjacency, held, clip = plan["schema"], plan["privacy"]["adjacency"], plan["held"], Fraction(plan["clip"])
    if clip:
        alone = {s: bound(schema, {s: w}, "add-remove", 0) * apart(plan, s) for s, w in weights.items()}
        return clip * clip * Fraction(max(alone[s] / plan["shares"][s] for s in alone))
    if schema["task"] == "sites":
        return bound(schema, weights, adjacency, held)
    if plan["averaged"] and adjacency == "replace-one":
        return averages(schema, weights)
    return Fraction(max(held, 1) ** 2) * bound(schema, weights, adjacency, 0)  # ``held`` steps of one record each


def averages(schema: Table, weights: Weights) -> Fraction:
    """Bound the distance of two persons who add averages.

    They are as far apart as two records, plus one step per entry from truncation toward zero; and no further than any
    two vectors of their lengths.
    """
    kind = kind_of(schema)
    opposed = bound(schema, {s: w * _opposed(kind, s) for s, w in weights.items()}, "add-remove", 0)
    if not kind.closer_averages:
        return opposed
    records, cut = bound(schema, weights, "replace-one", 0), sum(w * kind.entries(s) for s, w in weights.items())
    return min(opposed, (root(records)[1] + root(Fraction(cut))[1]) ** 2)


def _opposed(kind: Kind, statistic: str) -> int:
    """Return the squared distance of two vectors over the mean of their squared lengths.

    ``|v - v'|^2 <= 2 (|v|^2 + |v'|^2)``, and half of it where no entry is negative.
    """
    return 2 if statistic in kind.unsigned[kind.nonnegative] else 4


def apart(plan: Table, statistic: str) -> int:
    """Return that ratio for two clipped units that are exchanged, and 1 for a unit that comes or goes."""
    moved = plan["clip"] and plan["privacy"]["adjacency"] == "replace-one"
    return _opposed(kind_of(plan["schema"]), statistic) if moved else 1


# --- Noise -----------------------------------------------------------------------------------------------------------


def _honest(cohort: Table, own: Table) -> list[int]:
    """Return the minimum number of honest shares, by number of opened layers; rising."""
    least, counts = cohort["min_survivors"] - cohort["colluders"], [cohort["clients"] - cohort["colluders"]]
    if "excess_noise" not in own:
        return [least]
    while (count := counts[-1]) > least:
        tenth = min(count - 1, (10 * count + 10) // 11)
        counts.append(least if tenth < count - 1 and 100 * count <= 115 * least else max(least, tenth))
    return counts[::-1]


def _remaining(squares: list[Fraction], honest: list[int]) -> Fraction:
    """Return the minimum variance over the layers that clients open, less 4 for discreteness."""
    require(len(squares) == len(honest), "sigma", "not one base and its layers")
    return min(count * (squares[0] + sum(squares[1 + opened :], ZERO)) - 4 for opened, count in enumerate(honest))


def _weight(sigma: Table, matrix: bool, model: str, honest: list[int]) -> Fraction:
    """Return 1 / sigma^2 from one party's sample; a matrix has half the variance off its diagonal."""
    require(set(sigma) == ({"diag", "off"} if matrix else {"all"}), "form", "sigma of other entries")
    require(_types(sigma.values()) <= {list if len(honest) > 1 else str}, "form", "sigma of no draw")
    draws = {name: [value] if type(value) is str else value for name, value in sigma.items()}
    drawn = {name: [_rational(value) ** 2 for value in values] for name, values in draws.items()}
    shared = model == "distributed"
    total = {name: _remaining(squares, honest) if shared else squares[0] for name, squares in drawn.items()}
    wide = not shared or min(min(squares) for squares in drawn.values()) >= 16
    require(min(total.values()) >= 64**2 * (1 - TIGHT) and wide, "sigma", "too few wire steps for the proof")
    each = [square * (2 if name == "off" else 1) for name, square in total.items()]
    require(max(each) <= min(each) * (1 + TIGHT), "sigma", "the noise is not sqrt(2) times as wide on the diagonal")
    return 1 / min(each)


# --- The masking -----------------------------------------------------------------------------------------------------


def _on_random_graph(plan: Table) -> bool:
    own, cohort = plan["aggregation"], plan["cohort"]
    complete = own["graph"] == "complete" or (own["graph"] == "auto" and cohort["clients"] <= 256)
    return "panel" not in own and not complete


def masking_failure(plan: Table, claimed: Table) -> Fraction:
    """Return the claimed bound on the probability that a random graph's masks show more than the sum.

    The union of the failures in docs/protocol.md, Thresholds, by exact hypergeometric tails.
    """
    numbers = [claimed[name] for name in ("neighbours", "threshold", "signatures")]
    require(set(claimed) == {"neighbours", "threshold", "signatures", "failure"}, "form", "not the claims of a masking")
    require(_types(numbers) == {int}, "form", "a masking's numbers are integers")
    k, t, tau = numbers
    cohort, own = plan["cohort"], plan["aggregation"]
    n, c = cohort["clients"], cohort["colluders"]
    gone, s = n - cohort["min_survivors"], min(n, COMMITTEE)
    require(2 <= k <= min(n - 2, MAX_NEIGHBOURS) and k % 2 == 0 and k < 2 * t <= 2 * k, "masking", "no graph of a plan")
    require(k - t >= 2 * DISPUTES and s < 2 * tau <= 2 * s, "masking", "no graph of a plan")
    arc = Fraction(n)
    for i in range(k // 2):
        arc *= Fraction(max(0, c + gone - i), n - i)
    failure = arc + n * draws_at_least(n - 1, c, k, 2 * t - k)
    if own["graph"] != "sparse":
        failure += n * draws_at_least(n - 1, c, k // 2, t - DISPUTES - k // 2) + draws_at_least(n, c, s, 2 * tau - s)
    stated = _rational(claimed["failure"])
    require(failure <= stated <= failure * (1 + TIGHT), "masking", "another probability of failure")
    return stated


def draws_at_least(total: int, marked: int, drawn: int, least: int) -> Fraction:
    """Return the probability that ``drawn`` of ``total`` hold ``least`` of the ``marked`` or more."""
    least, most = max(least, 0, drawn - (total - marked)), min(marked, drawn)
    if least > most:
        return ZERO
    ways = whole = math.comb(marked, least) * math.comb(total - marked, drawn - least)
    for x in range(least, most):
        ways = ways * (marked - x) * (drawn - x) // ((x + 1) * (total - marked - drawn + x + 1))
        whole += ways
    return Fraction(whole, math.comb(total, drawn))


# --- The certificate -------------------------------------------------------------------------------------------------

CLAIMS = "version plan_digest plan model unit adjacency epsilon delta honest_shares statistics joint delta_at_epsilon"


def check(plan_text: str, certificate_text: str) -> str:
    """Return one sentence on a certificate that holds.

    Raises:
        Refused: a claim does not hold, or the texts are no plan and its certificate.
    """
    try:
        require(len(plan_text) <= MAX_PLAN and len(certificate_text) <= MAX_BYTES, "form", "a text is too long")
        return _checked(plan_text, certificate_text).sentence
    except BROKEN as error:
        raise Refused(f"form: no plan and its certificate ({type(error).__name__})") from None


class Checked(NamedTuple):
    """A certificate that holds: the sentence on it, mu^2 of its unit, its masking's failure, and the plan's tables."""

    sentence: str
    square: Fraction
    failure: Fraction
    plan: Table


def _checked(plan_text: str, certificate_text: str) -> Checked:
    claimed = _json(certificate_text)
    names = {*claimed} - {"masking"}
    require(names == {*CLAIMS.split()} and repr(claimed["version"]) == "1", "form", "no claims of version 1")
    plan = read(plan_text, claimed)
    require(
        ("masking" in claimed) == _on_random_graph(plan),
        "form",
        "a masking is claimed on a random graph, and only there",
    )
    _check_promise(plan, claimed)
    rows, joint, kind = claimed["statistics"], claimed["joint"], kind_of(plan["schema"])
    require(set(rows) == set(kind.sent), "form", f"the plan sends {kind.sent}")
    claims = [{*row} == {"sensitivity_squared", "sigma", "worst"} for row in rows.values()]
    require(all(claims) and {*joint} == {"worst", "mu_squared"}, "form", "not the claims of its sums")
    honest, model = _honest(plan["cohort"], plan["aggregation"]), plan["privacy"]["model"]
    matrices = kind.matrices + "J"
    weights = {s: _weight(rows[s]["sigma"], s in matrices, model, honest) for s in kind.sent}
    for s in kind.sent:
        most = unit_bound(plan, {s: ONE})
        _check_interval(rows[s]["sensitivity_squared"], most, most, "sensitivity")
        _worst(plan, rows[s]["worst"], {s: ONE}, most)
    _check_proportions(plan, weights)
    square = unit_bound(plan, weights)
    reached = _worst(plan, joint["worst"], weights, square)
    _check_delta(plan, square, claimed["delta_at_epsilon"])
    _check_interval(joint["mu_squared"], square, square, "mu")
    failure = masking_failure(plan, claimed["masking"]) if "masking" in claimed else ZERO
    whom = f"{_whom(plan['privacy'])}, while {_condition(plan)}; the worst case reaches {float(reached):.4f} of mu^2"
    said = f"holds: plan {claimed['plan_digest']}, {_promise(plan['privacy'], failure)} for {whom}{_finding([plan])}"
    return Checked(said, square, failure, plan)


def _check_promise(plan: Table, claimed: Table) -> None:
    """Refuse a certificate of another promise than the plan's."""
    privacy, cohort = plan["privacy"], plan["cohort"]
    honest = cohort["min_survivors"] - cohort["colluders"] if privacy["model"] == "distributed" else 1
    numbers = {name: str(Fraction(privacy[name])) for name in ("epsilon", "delta")}
    promised = {**privacy, **numbers, "honest_shares": honest}
    for name in ("model", "unit", "adjacency", "epsilon", "delta", "honest_shares"):
        require(repr(claimed[name]) == repr(promised[name]), name, f"the plan says {promised[name]}")


def _check_proportions(plan: Table, weights: Weights) -> None:
    """Refuse noise that is not in the proportions of the plan's shares."""
    added = {**plan, "privacy": {"adjacency": "add-remove"}, "clip": 0, "held": 0 if plan["clip"] else plan["held"]}
    parts = [w * apart(plan, s) * unit_bound(added, {s: ONE}) / plan["shares"][s] for s, w in weights.items()]
    require(max(parts) <= min(parts) * (1 + TIGHT), "sigma", "the noise is not in the proportions of the shares")


def _check_delta(plan: Table, square: Fraction, claimed: Table) -> None:
    """Refuse noise that does not keep the promise, or that is larger than it asks."""
    epsilon, delta = (Fraction(plan["privacy"][name]) for name in ("epsilon", "delta"))
    low, high = _delta_bounds(square, epsilon, SLACK if plan["privacy"]["model"] == "distributed" else ZERO)
    require(high <= delta, "promise", "the noise does not keep epsilon and delta")
    require(low >= delta * (1 - 1000 * TIGHT), "sigma", "the noise is larger than the promise asks")
    _check_interval(claimed, low, high, "interval")
    require(_rational(claimed["high"]) <= delta, "interval", "it ends above the promise")


def _delta_bounds(square: Fraction, epsilon: Fraction, slack: Fraction) -> tuple[Fraction, Fraction]:
    """Bound delta at epsilon for a square of mu; ``slack``: of sums of discrete Gaussians, see docs/privacy.md."""
    mu = root(square)
    return delta_of(mu[0], epsilon)[0], delta_of(mu[1], epsilon - 2 * slack)[1] * (1 + 2 * slack)


def _check_interval(claimed: Table, low: Fraction, high: Fraction, claim: str) -> None:
    require(set(claimed) == {"low", "high"}, "form", "an interval has two ends")
    least, most = _rational(claimed["low"]), _rational(claimed["high"])
    require(least <= low and high <= most, claim, "the true value may lie outside of the interval")
    require(most <= least * (1 + TIGHT), claim, "the interval is wide")


def _worst(plan: Table, row: Table, weights: Weights, most: Fraction) -> Fraction:
    """Return the part of a bound that a worst case reaches, recomputed from its records."""
    kind, sides = kind_of(plan["schema"]), ("beside", "gone", "come")
    require(set(row) == {*sides, "moves"}, "form", "a worst case of other parts")
    require(_types(row[side] for side in sides) == {list}, "form", "not lists of records")
    records = [record for side in sides for record in row[side]]
    require(len(records) <= 8 and all(map(kind.admits, records)), "pair", "not records of the schema")
    require(_adjacent(plan, kind, row), "pair", "the data sets are not adjacent")
    old, new = (kind.sums(row["beside"] + row[side]) for side in ("gone", "come"))
    moved = {s: sum((new[s][k] - old[s][k]) ** 2 for k in new[s].keys() | old[s].keys()) for s in weights}
    require({s: _rational(v) for s, v in row["moves"].items()} == moved, "pair", "it does not move what is claimed")
    reached = sum((weights[s] * moved[s] for s in weights), ZERO)
    require(reached <= most, "pair", "it moves more than the bound")
    averaged = plan["averaged"] and plan["privacy"]["adjacency"] == "replace-one"  # but for a cut
    excused = kind.beside_others or not kind.attained or averaged or plan["clip"] or len(weights) > 1
    require(reached == most or excused, "pair", "it does not attain the sensitivity")
    return reached / most if most else ZERO


def _adjacent(plan: Table, kind: Kind, row: Table) -> bool:
    """Return whether one side of a worst case is the other with one unit more, less or exchanged."""
    privacy = plan["privacy"]
    gone, come = (sum(record["times"] for record in row[side]) for side in ("gone", "come"))
    rows = int(plan["clip"]) or 1 if privacy["unit"] == "person" else 1  # of a person, which count in full
    unit = rows if plan["clip"] else max(plan["held"], 1)  # of a clip one
    if kind.schema["task"] == "gaussians":  # no record attains it
        unit = 0
    swap = rows * int(privacy["adjacency"] == "replace-one")
    alone = swap and kind.excludes and "left_out" not in kind.schema  # for a record that is in no sum
    fits = (gone, come) == (swap, unit) or (alone and (gone, come) == (0, unit))
    return bool(fits and (not row["beside"] or (kind.beside_others and not plan["held"])))


def _promise(promise: Table, failure: Fraction) -> str:
    """Return epsilon, and delta with the masking's failure, rounded up."""
    delta = f"{_at_most(Fraction(promise['delta']) + failure, 6):g}"
    masking = f" ({_at_most(failure, 2):g} of it for the masking)" if failure else ""
    return f"epsilon {float(promise['epsilon']):g} at delta {delta}{masking}"


def _at_most(value: Fraction, digits: int) -> float:
    """Round up to ``digits`` digits; the nearest such number is accepted if it is below by at most a part in 10^7."""
    nearest = float(f"{float(value):.{digits}g}")
    if Fraction(nearest) >= value * (1 - Fraction(1, 10**7)):
        return nearest
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(exact))


def _whom(privacy: Table) -> str:
    at = " at one party (at two parties twice the mu)" if privacy["unit"] == "person" else ""
    return f"one {privacy['unit']}{at}, {privacy['adjacency']}"


def _finding(plans: list[Table]) -> str:
    return "" if all("mlkem768-x25519" in plan["aggregation"].values() for plan in plans) else FINDING


def _condition(plan: Table) -> str:
    """Return the assumption of the promise: who must follow the protocol, and how many may work together."""
    cohort, own = plan["cohort"], plan["aggregation"]
    noise = {
        "central": "the server adds its noise and keeps the exact sum secret; masks hide each party's sums while ",
        "local": "the party itself follows the protocol, whatever all others do; masks hide each party's sums while ",
        "distributed": "",
        "panel": "",
    }
    first, brought = noise[plan["privacy"]["model"]], ", and ".join(_brought(plan))
    if brought:  # what the noise rests on
        before, _, after = first.partition("; ")
        first = f"{before}, and {brought}; {after}" if first else f"{brought}, and "
    several = f"at most {cohort['colluders']} of {cohort['clients']} parties work with"
    helped = several if cohort["colluders"] else "no party works with"
    if "panel" in own:
        return f"{first}leader and helpers do not all work together and {helped} them"
    whole = not _on_random_graph(plan)
    honest = "the server follows the protocol, dropouts do not depend on the random graph, and "
    server = honest if own["graph"] == "sparse" else ""
    end = "" if whole else ", chosen without knowledge of the random graph"
    committee = " and its committee" if not whole and cohort["clients"] > 1024 else ""
    return f"{first}{server}{helped} the server{end}{committee}"


def _brought(plan: Table) -> Iterator[str]:
    """Yield what the bound of one record or person assumes of other packages: a client's holds for any map."""
    schema = plan["schema"]
    pairs = [(schema["package"], schema["module"])] if "package" in schema else []
    pairs += [(step["package"], step["kind"]) for step in schema["transform"] if "package" in step]
    for package in dict.fromkeys(package for package, _ in pairs) if plan["privacy"]["unit"] != "client" else ():
        names = (repr(name) for each, name in dict.fromkeys(pairs) if each == package)
        yield f"{package} maps each record by itself in {' and '.join(names)}, always with the same result"


# --- The certificate of a course -------------------------------------------------------------------------------------

OF_COURSE = "version course_digest epsilon delta sessions mu_squared delta_at_epsilon"


class Composition(NamedTuple):
    """All sessions of a course together: mu^2 of its unit, and the promise of the course's file."""

    square: Fraction
    failure: Fraction
    slack: Fraction
    epsilon: Fraction
    delta: Fraction
    whom: str


def check_course(course_text: str, certificate_text: str) -> str:
    """Return one sentence on a course's certificate that holds.

    Raises:
        Refused: a claim does not hold, or the texts are no course and its certificate.
    """
    try:
        require(len(certificate_text) <= MAX_BYTES, "form", "a text is too long")
        return _checked_course(course_text, _json(certificate_text))
    except BROKEN as error:
        raise Refused(f"form: no course and its certificate ({type(error).__name__})") from None


def _checked_course(course_text: str, claimed: Table) -> str:
    known = set(claimed) == {*OF_COURSE.split()} and repr(claimed["version"]) == "1"
    require(known, "form", "no claims of version 1")
    digest, sessions = claimed["course_digest"], claimed["sessions"]
    require(re.fullmatch("[0-9a-f]{64}", digest), "form", "the course's digest is no digest")
    require(all(set(each) == {"plan", "certificate"} for each in sessions), "form", "a session has two texts")
    whole = composition(course_text, sessions)
    for name, stated in (("epsilon", whole.epsilon), ("delta", whole.delta)):
        require(claimed[name] == str(stated), name, "the course's file says another")
    low, high = _delta_bounds(whole.square, whole.epsilon, whole.slack)
    require(high <= whole.delta, "promise", "the sessions together do not keep epsilon and delta")
    _check_interval(claimed["mu_squared"], whole.square, whole.square, "mu")
    _check_interval(claimed["delta_at_epsilon"], low, high, "interval")
    require(_rational(claimed["delta_at_epsilon"]["high"]) <= whole.delta, "interval", "it ends above the promise")
    return (
        f"holds: {len(sessions)} sessions together, {_promise(whole._asdict(), whole.failure)} for {whole.whom}; "
        f"that course {digest} has no further session is for its parties to check (privstats course check)"
    )


def composition(course_text: str, sessions: list[Table]) -> Composition:
    """Check each session's certificate, and add up mu^2 (Dong, Roth and Su 2022, corollary 1).

    Raises:
        Refused: a session's certificate does not hold, or sessions differ in the unit that they protect.
    """
    epsilon, delta = _promise_of_course(course_text)
    require(sessions, "form", "there is no session")
    require(all(len(each["plan"]) <= MAX_PLAN for each in sessions), "form", "a text is too long")
    checked = [_checked(each["plan"], each["certificate"]) for each in sessions]
    plans = [each.plan for each in checked]
    units = [{k: v for k, v in p["privacy"].items() if k not in ("epsilon", "delta", "shares")} for p in plans]
    require(all(unit == units[0] for unit in units), "unit", "the sessions do not protect the same unit alike")
    square, failure = (sum(each, ZERO) for each in zip(*((one.square, one.failure) for one in checked), strict=True))
    slack = SLACK * len(plans) if units[0]["model"] == "distributed" else ZERO
    conditions = "; and ".join(dict.fromkeys(_condition(plan) for plan in plans))
    whom = f"{_whom(units[0])}, while {conditions}{_finding(plans)}"
    return Composition(square, failure, slack, epsilon, delta, whom)


def _promise_of_course(text: str) -> tuple[Fraction, Fraction]:
    require(len(text) <= MAX_PLAN, "form", "a text is too long")
    tables = _toml(text)
    require("promise" in tables, "form", "the course's file has no promise")
    promise = tables["promise"]
    require(set(promise) == {"epsilon", "delta"}, "form", "the course's file has no promise of epsilon and delta")
    require(_types(promise.values()) <= {int, Fraction}, "form", "a promise is two numbers")
    epsilon, delta = (Fraction(promise[name]) for name in ("epsilon", "delta"))
    require(0 < epsilon <= 100 and 0 < delta < 1, "form", "the course's promise is out of range")
    return epsilon, delta


# --- The command -----------------------------------------------------------------------------------------------------


def _is_course(text: str) -> bool:
    return re.search(r"^\[course\]\s*$", text, re.MULTILINE) is not None


def _text(name: str) -> str:
    """Return the text of a plain file: a pipe would be waited for without end, and a stated size may be wrong."""
    require(stat.S_ISREG(Path(name).stat().st_mode), "form", f"{name!a} is not a plain file")
    with Path(name).open("rb") as file:
        return file.read(MAX_BYTES + 1).decode()


def main(arguments: list[str]) -> int:
    """Check the named plan and certificate; return the exit code."""
    try:
        require(len(arguments) == 2, "form", "give the plan or course and its certificate")
        subject, certificate = (_text(name) for name in arguments)
        sys.stdout.write((check_course if _is_course(subject) else check)(subject, certificate) + "\n")
    except (Refused, OSError, UnicodeError) as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
