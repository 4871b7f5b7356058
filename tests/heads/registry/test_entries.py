"""The registry finds every head, and what its row says a head needs is what it needs."""

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module
from typing import ClassVar

import numpy as np
import pytest

from privstats import heads
from privstats.contrib import heads as contrib
from privstats.errors import HeadError, MissingStatisticError
from privstats.heads import registry
from privstats.heads.estimator import ClassHead
from privstats.heads.persistence import Stored
from privstats.heads.registry.entries import Bounds, describe
from privstats.heads.rules import LinearRule
from tests.heads.conftest import class_release, quick
from tests.made import refused
from tests.without import present


@pytest.mark.parametrize("name", registry.HEADS)
def test_the_registry_is_the_package(name):
    entry, cls = registry.HEADS[name], registry.head_class(name)
    assert cls is getattr(heads, name)
    assert (cls.__name__, cls.entry) == (name, entry)
    assert name in heads.__all__
    assert name in dir(heads)
    assert set(cls.bounds) == set(inspect.signature(cls).parameters)
    assert all(describe(kinds) for kinds in cls.bounds.values())


def below(cls):
    """Every subclass, however far down."""
    return {cls, *(far for near in cls.__subclasses__() for far in below(near))}


def test_no_head_of_the_package_is_without_a_row():
    rooms = present({"heads": heads, "contrib": contrib}).values()
    for module in (each for room in rooms for each in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")):
        import_module(module.name)
    ours = {cls for cls in below(Stored) if cls.__module__.startswith(tuple(f"{room.__name__}." for room in rooms))}
    public = {cls.__name__ for cls in ours if not cls.__name__.startswith("_")}
    assert public - {"Stored", "ClassHead", "LinearRegressor"} == set(registry.HEADS)


def test_lists_show_closed_forms_first():
    assert registry.named("ridge") == ("Ridge",)
    assert registry.named("parties") == (heads.PartyDiscriminant.__name__,)
    assert registry.named("classes")[-2:] == (heads.FisherMix.__name__, heads.ProtoHyper.__name__)
    assert registry.named("classes", trained=False) == registry.named("classes")[:-2]


def test_every_public_name_is_there_and_no_other():
    assert all(getattr(heads, name) is not None for name in heads.__all__)
    assert {"load", "to_linear", "fisher_subspace"} <= set(heads.__all__)
    refused(AttributeError, "module 'privstats.heads' has no attribute 'SVM'", lambda: heads.SVM)


def test_a_list_of_heads_loads_none_of_them():
    program = "import sys; from privstats.heads.registry import HEADS; assert 'LDA' in {*HEADS, *dir(privstats.heads)}"
    program += "; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", f"import privstats.heads; {program}"], check=False).returncode == 0


@pytest.mark.parametrize("row", ["row()", "Entry('ridge')", "Entry(any_of=LETTERS)", "Entry(letters='B')", "Other()"])
def test_a_row_that_cannot_be_read_from_the_text_is_refused(row):
    text = f"class Late:\n    entry: ClassVar[Entry] = {row}\n"
    refused(HeadError, "the row of brought.Late is .*; write Entry", list, registry.entries._heads_in("brought", text))


@pytest.mark.parametrize("statistics", ["NA", "NAB", "NAD", "NABD", "NAS"])
@pytest.mark.parametrize("name", registry.named("classes"))
def test_a_head_is_built_exactly_from_the_statistics_of_its_row(name, statistics, blobs):
    X, y = blobs(n=80, d=3, classes=3)
    head = quick(name)
    if name in registry.able(statistics):
        head.fit_release(class_release(X, y, statistics))
    else:
        with pytest.raises(MissingStatisticError, match=f"{name} needs statistic") as caught:
            head.fit_release(class_release(X, y, statistics))
        assert all(able in str(caught.value) for able in registry.able(statistics))


class NearestMean(ClassHead):
    """A head of somebody else, from N and A alone."""

    entry = registry.Entry()
    bounds: ClassVar[Bounds] = {}

    def _solve(self, evidence):
        means = evidence.A / evidence.N[:, None]
        return LinearRule(means, -np.square(means).sum(axis=1) / 2 - means @ evidence.origin)


def test_a_head_from_counts_and_sums_alone_is_possible(blobs):
    X, y = blobs()
    nearest = np.argmin([np.square(X - X[y == c].mean(axis=0)).sum(axis=1) for c in range(4)], axis=0)
    for head in (NearestMean().fit(X, y), NearestMean().fit_release(class_release(X, y, "NA"))):
        np.testing.assert_array_equal(head.predict(X), nearest)
