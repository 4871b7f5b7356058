"""One-shot private learning from sufficient statistics.

``measure`` turns records into exact integer sums, ``simulate`` (or ``session`` over a real network) masks, sums and
noises them under a ``Plan``, and ``heads`` turn the ``Release`` into a model.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats import dp as dp
    from privstats import heads as heads
    from privstats import secagg as secagg
    from privstats import session as session
    from privstats.contrib.alignment import Alignment as Alignment
    from privstats.contrib.streams import Stream as Stream
    from privstats.course import Binned as Binned
    from privstats.course import Centred as Centred
    from privstats.course import Effect as Effect
    from privstats.course import Hazard as Hazard
    from privstats.course import Newton as Newton
    from privstats.course import PartyRounds as PartyRounds
    from privstats.course import Rounds as Rounds
    from privstats.course import Standardised as Standardised
    from privstats.course.alone import private_release as private_release
    from privstats.course.alone import private_releases as private_releases
    from privstats.dp import NoPrivacy as NoPrivacy
    from privstats.dp import Privacy as Privacy
    from privstats.errors import AggregationError as AggregationError
    from privstats.errors import AssumedPublicWarning as AssumedPublicWarning
    from privstats.errors import ClippedWarning as ClippedWarning
    from privstats.errors import DataError as DataError
    from privstats.errors import LedgerError as LedgerError
    from privstats.errors import LocalProtocolError as LocalProtocolError
    from privstats.errors import MissingExtraError as MissingExtraError
    from privstats.errors import MissingStatisticError as MissingStatisticError
    from privstats.errors import PlanError as PlanError
    from privstats.errors import PrivstatsError as PrivstatsError
    from privstats.errors import RandomnessError as RandomnessError
    from privstats.errors import ReleaseError as ReleaseError
    from privstats.errors import RemoteProtocolError as RemoteProtocolError
    from privstats.errors import SchemaError as SchemaError
    from privstats.heads.scoring import Scoring as Scoring
    from privstats.kinds import CalibrationSchema as CalibrationSchema
    from privstats.kinds import ClassMoments as ClassMoments
    from privstats.kinds import ClassSchema as ClassSchema
    from privstats.kinds import CountSchema as CountSchema
    from privstats.kinds import EffectSchema as EffectSchema
    from privstats.kinds import GaussianSchema as GaussianSchema
    from privstats.kinds import GradientSchema as GradientSchema
    from privstats.kinds import HazardSchema as HazardSchema
    from privstats.kinds import LateEntry as LateEntry
    from privstats.kinds import MeanSchema as MeanSchema
    from privstats.kinds import Number as Number
    from privstats.kinds import PartySchema as PartySchema
    from privstats.kinds import PartyUpdateSchema as PartyUpdateSchema
    from privstats.kinds import RidgeMoments as RidgeMoments
    from privstats.kinds import RidgeSchema as RidgeSchema
    from privstats.kinds import ScoreSchema as ScoreSchema
    from privstats.kinds import ScoringSchema as ScoringSchema
    from privstats.kinds import SitesSchema as SitesSchema
    from privstats.kinds import WithinSchema as WithinSchema
    from privstats.moments import measure as measure
    from privstats.plan import Budget as Budget
    from privstats.plan import Cohort as Cohort
    from privstats.plan import Plan as Plan
    from privstats.release import Release as Release
    from privstats.schema import Bins as Bins
    from privstats.schema import Categories as Categories
    from privstats.transforms import Cells as Cells
    from privstats.transforms import Dates as Dates
    from privstats.transforms import Numeric as Numeric
    from privstats.transforms import Truth as Truth
    from privstats.version import __version__ as __version__
    from privstats.workflows.rehearsal import rehearse as rehearse
    from privstats.workflows.simulate import simulate as simulate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats": ["dp", "heads", "secagg", "session"],
            "privstats.contrib.alignment": ["Alignment"],
            "privstats.contrib.streams": ["Stream"],
            "privstats.course": [
                "Binned",
                "Centred",
                "Effect",
                "Hazard",
                "Newton",
                "PartyRounds",
                "Rounds",
                "Standardised",
            ],
            "privstats.course.alone": ["private_release", "private_releases"],
            "privstats.dp": ["NoPrivacy", "Privacy"],
            "privstats.errors": [
                "AggregationError",
                "AssumedPublicWarning",
                "ClippedWarning",
                "DataError",
                "LedgerError",
                "LocalProtocolError",
                "MissingExtraError",
                "MissingStatisticError",
                "PlanError",
                "PrivstatsError",
                "RandomnessError",
                "ReleaseError",
                "RemoteProtocolError",
                "SchemaError",
            ],
            "privstats.heads.scoring": ["Scoring"],
            "privstats.kinds": [
                "CalibrationSchema",
                "ClassMoments",
                "ClassSchema",
                "CountSchema",
                "EffectSchema",
                "GaussianSchema",
                "GradientSchema",
                "HazardSchema",
                "LateEntry",
                "MeanSchema",
                "Number",
                "PartySchema",
                "PartyUpdateSchema",
                "RidgeMoments",
                "RidgeSchema",
                "ScoreSchema",
                "ScoringSchema",
                "SitesSchema",
                "WithinSchema",
            ],
            "privstats.moments": ["measure"],
            "privstats.plan": ["Budget", "Cohort", "Plan"],
            "privstats.release": ["Release"],
            "privstats.schema": ["Bins", "Categories"],
            "privstats.transforms": ["Cells", "Dates", "Numeric", "Truth"],
            "privstats.version": ["__version__"],
            "privstats.workflows.rehearsal": ["rehearse"],
            "privstats.workflows.simulate": ["simulate"],
        },
        {
            "privstats": [
                "course",
                "encoding",
                "engines",
                "errors",
                "inference",
                "kinds",
                "moments",
                "plan",
                "randomness",
                "release",
                "review",
                "schema",
                "testing",
                "transforms",
                "workflows",
            ]
        },
    )

if TYPE_CHECKING:  # by attribute alone: a star import would hide a caller's own plan or release, or need Hypothesis
    from privstats import course as course
    from privstats import encoding as encoding
    from privstats import engines as engines
    from privstats import errors as errors
    from privstats import inference as inference
    from privstats import kinds as kinds
    from privstats import moments as moments
    from privstats import plan as plan
    from privstats import randomness as randomness
    from privstats import release as release
    from privstats import review as review
    from privstats import schema as schema
    from privstats import testing as testing
    from privstats import transforms as transforms
    from privstats import workflows as workflows
