"""The row of a Dask cluster that sums a leader's reports, which loads the cluster on use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from privstats.engines.carriers import Summer
from privstats.errors import PrivstatsError
from privstats.extend.doors import Option

if TYPE_CHECKING:
    from privstats.contrib.parts.part_sums import Cluster
    from privstats.engines.carriers import RoundFolder


@dataclass(frozen=True)
class Place:
    """Where a leader's reports are summed."""

    cluster: Annotated[
        str | None, Option("The leader's own Dask scheduler, whose workers sum the reports.", "tls://HOST:PORT")
    ] = None
    store: Annotated[str | None, Option("Where the cluster's workers find reports: a URL of fsspec.", "URL")] = None


def _is_requested(options: Any) -> bool:
    if (options.cluster is None) != (options.store is None):
        raise PrivstatsError("--cluster and --store go together: workers read the reports from the store")
    return options.cluster is not None


def _at(options: Any, folder: RoundFolder) -> Cluster:
    from privstats.contrib.parts.part_sums import Cluster

    return Cluster.at(options.cluster, options.store, folder)


SUMMER = Summer("dask", Place, _is_requested, _at)
