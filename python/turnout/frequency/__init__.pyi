from turnout.accounting.variation import VariationRatio as VariationRatio
from turnout.collecting.reports import Reports as Reports
from turnout.frequency.estimation.estimate import FrequencyEstimate as FrequencyEstimate
from turnout.frequency.estimation.estimators import estimator_variance as estimator_variance
from turnout.frequency.estimation.intervals import Interval as Interval
from turnout.frequency.oracle import FrequencyOracle as FrequencyOracle
from turnout.frequency.oracle import oracle_from_dict as oracle_from_dict
from turnout.frequency.oracles.count_mean_sketch import CountMeanSketch as CountMeanSketch
from turnout.frequency.oracles.count_mean_sketch import (
    HadamardCountMeanSketch as HadamardCountMeanSketch,
)
from turnout.frequency.oracles.direct_encoding import DirectEncoding as DirectEncoding
from turnout.frequency.oracles.hadamard_response import HadamardResponse as HadamardResponse
from turnout.frequency.oracles.local_hashing import BinaryLocalHashing as BinaryLocalHashing
from turnout.frequency.oracles.local_hashing import OptimizedLocalHashing as OptimizedLocalHashing
from turnout.frequency.oracles.projective_geometry import (
    ProjectiveGeometryResponse as ProjectiveGeometryResponse,
)
from turnout.frequency.oracles.subset_selection import SubsetSelection as SubsetSelection
from turnout.frequency.oracles.summation_histogram import (
    SummationHistogramEncoding as SummationHistogramEncoding,
)
from turnout.frequency.oracles.unary_encoding import (
    OptimizedUnaryEncoding as OptimizedUnaryEncoding,
)
from turnout.frequency.oracles.unary_encoding import (
    SymmetricUnaryEncoding as SymmetricUnaryEncoding,
)
from turnout.frequency.oracles.unary_encoding import (
    ThresholdHistogramEncoding as ThresholdHistogramEncoding,
)
from turnout.frequency.tally import Tally as Tally
