"""How good samplers are: metrics, targets, and comparisons over epsilon."""

from turnout.samplers.study.comparison import SamplerComparison, SamplerRecord, compare_samplers
from turnout.samplers.study.coverage import mode_coverage
from turnout.samplers.study.metrics import (
    hellinger,
    kl_divergence,
    negative_log_likelihood,
    total_variation,
)
from turnout.samplers.study.targets import (
    GaussianMixtureTarget,
    random_gaussians_1d,
    ring_of_gaussians,
    seed_mixture,
)

__all__ = [
    "GaussianMixtureTarget",
    "SamplerComparison",
    "SamplerRecord",
    "compare_samplers",
    "hellinger",
    "kl_divergence",
    "mode_coverage",
    "negative_log_likelihood",
    "random_gaussians_1d",
    "ring_of_gaussians",
    "seed_mixture",
    "total_variation",
]
