from turnout import accounting as accounting
from turnout import distributed as distributed
from turnout import distribution as distribution
from turnout import errors as errors
from turnout import federated as federated
from turnout import mean as mean
from turnout import metrics as metrics
from turnout import pipeline as pipeline
from turnout import planning as planning
from turnout import ray as ray
from turnout import reporting as reporting
from turnout import samplers as samplers
from turnout import testing as testing
from turnout import thresholding as thresholding
from turnout import weighting as weighting
from turnout._version import __version__ as __version__
from turnout.bounds import Bounds as Bounds
from turnout.collecting.collector import Collector as Collector
from turnout.collecting.left_out import LeftOut as LeftOut
from turnout.collecting.plan import Plan as Plan
from turnout.collecting.reports import Reports as Reports
from turnout.collecting.variance import estimator_variance as estimator_variance
from turnout.distribution.square_wave import SquareWave as SquareWave
from turnout.domain import Domain as Domain
from turnout.errors import TurnoutError as TurnoutError
from turnout.frequency.adaptive import TwoRoundCollection as TwoRoundCollection
from turnout.frequency.attributes import SampledAttribute as SampledAttribute
from turnout.frequency.attributes import SplitBudget as SplitBudget
from turnout.frequency.estimation.estimate import FrequencyEstimate as FrequencyEstimate
from turnout.frequency.estimation.intervals import Interval as Interval
from turnout.frequency.estimation.likelihood import maximum_likelihood as maximum_likelihood
from turnout.frequency.groups import GroupedTally as GroupedTally
from turnout.frequency.heavy_hitters import HeavyHitters as HeavyHitters
from turnout.frequency.joint import JointTable as JointTable
from turnout.frequency.joint import PairTables as PairTables
from turnout.frequency.longitudinal import Memoized as Memoized
from turnout.frequency.oracle import FrequencyOracle as FrequencyOracle
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
from turnout.frequency.ordered import ordered as ordered
from turnout.frequency.ordered.levels import HierarchicalCollection as HierarchicalCollection
from turnout.frequency.tally import Tally as Tally
from turnout.participation import Bernoulli as Bernoulli
from turnout.participation import Everyone as Everyone
from turnout.participation import Participation as Participation
from turnout.participation import Personalized as Personalized
from turnout.planning.choice import choose_oracle as choose_oracle
from turnout.planning.participation import estimate_mixed as estimate_mixed
from turnout.planning.participation import optimal_participation as optimal_participation
from turnout.planning.planner import plan as plan
from turnout.surveying import survey as survey
from turnout.thresholding import sample_and_threshold as sample_and_threshold
