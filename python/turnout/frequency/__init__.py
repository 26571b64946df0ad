"""Frequency estimation under local differential privacy when only some nodes report.

A value's path is the order of the modules: an oracle (:mod:`~turnout.frequency.oracles`) makes
:mod:`~turnout.collecting.reports`, which add up to a :mod:`~turnout.frequency.tally`, of which
:mod:`~turnout.frequency.estimation` makes an estimate.

Beyond the path: :mod:`~turnout.frequency.ordered` answers, with sums, ranges and quantiles; several
:mod:`~turnout.frequency.attributes` of a person; :mod:`~turnout.frequency.heavy_hitters` of huge
domains; two rounds (:mod:`~turnout.frequency.adaptive`) and many
(:mod:`~turnout.frequency.longitudinal`); :mod:`~turnout.frequency.studies` of all of them.
"""

from typing import TYPE_CHECKING

from turnout._public import imported_later, listing
from turnout.accounting.variation import VariationRatio
from turnout.collecting import plan as _plan
from turnout.collecting.reports import Reports
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import estimator_variance
from turnout.frequency.estimation.intervals import Interval
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict
from turnout.frequency.oracles.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.oracles.hadamard_response import HadamardResponse
from turnout.frequency.oracles.local_hashing import BinaryLocalHashing, OptimizedLocalHashing
from turnout.frequency.oracles.projective_geometry import ProjectiveGeometryResponse
from turnout.frequency.oracles.subset_selection import SubsetSelection
from turnout.frequency.oracles.summation_histogram import SummationHistogramEncoding
from turnout.frequency.oracles.unary_encoding import (
    OptimizedUnaryEncoding,
    SymmetricUnaryEncoding,
    ThresholdHistogramEncoding,
)
from turnout.frequency.tally import Tally

if TYPE_CHECKING:
    from turnout.frequency.studies.shuffled import ShuffledComparison, compare_shuffled
    from turnout.frequency.studies.study import (
        Comparison,
        OracleComparison,
        OracleRecord,
        compare,
        compare_oracles,
    )

__all__ = [
    "BinaryLocalHashing",
    "Comparison",
    "CountMeanSketch",
    "DirectEncoding",
    "FrequencyEstimate",
    "FrequencyOracle",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "Interval",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "OracleComparison",
    "OracleRecord",
    "ProjectiveGeometryResponse",
    "Reports",
    "ShuffledComparison",
    "SubsetSelection",
    "SummationHistogramEncoding",
    "SymmetricUnaryEncoding",
    "Tally",
    "ThresholdHistogramEncoding",
    "VariationRatio",
    "compare",
    "compare_oracles",
    "compare_shuffled",
    "estimator_variance",
    "oracle_from_dict",
]

# What the verbs of an oracle use is imported here, with it: a child that is forked while another
# thread imports would wait for that import for ever.
del _plan

#: What is made from plans is imported when it is first used: a plan needs the oracles above.
_NAMES = {
    "turnout.frequency.studies.shuffled": ["ShuffledComparison", "compare_shuffled"],
    "turnout.frequency.studies.study": [
        "Comparison",
        "OracleComparison",
        "OracleRecord",
        "compare",
        "compare_oracles",
    ],
}

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _NAMES)
__dir__ = listing(__all__)
