from turnout.frequency.oracle import oracle_from_dict as oracle_from_dict
from turnout.frequency.oracles.count_mean_sketch import (
    HadamardCountMeanSketch as HadamardCountMeanSketch,
)
from turnout.frequency.oracles.projective_geometry import (
    ProjectiveGeometryResponse as ProjectiveGeometryResponse,
)
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
