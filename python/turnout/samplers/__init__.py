"""Private samplers: one realistic record per person.

A person's whole data set is turned into *one draw* from a distribution close to it. The draw is
epsilon-locally differentially private for the whole data set, because the distribution never leaves
a band around a public reference.
"""

from turnout._public import listing
from turnout.samplers.adapters import Mixture, as_reference
from turnout.samplers.base import PrivateSampler
from turnout.samplers.baselines import BernsteinSampler, PrivateKernelDensity
from turnout.samplers.boosting import BoostingRound, MollifiedBoosting
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.density import MollifiedDensity
from turnout.samplers.finite import FiniteMollifier, RandomizedResponseSampler
from turnout.samplers.minimax import MinimaxSampler, choose_sampler
from turnout.samplers.mollifier import Projection, RelativeMollifier
from turnout.samplers.normalizer import LogNormalizer
from turnout.samplers.pictures import plot_density, plot_heatmap
from turnout.samplers.population import (
    FinitePopulationEstimate,
    PopulationDraws,
    PopulationEstimate,
    sample_population,
)
from turnout.samplers.reference import Normal, Reference, StandardNormal, Uniform
from turnout.samplers.study.comparison import (
    SamplerComparison,
    SamplerRecord,
    compare_samplers,
    plot_curves,
)
from turnout.samplers.study.metrics import (
    hellinger,
    kl_divergence,
    mode_coverage,
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
    "BernsteinSampler",
    "BoostingRound",
    "FiniteMollifier",
    "FinitePopulationEstimate",
    "GaussianMixtureTarget",
    "LogNormalizer",
    "MinimaxSampler",
    "Mixture",
    "MollifiedBoosting",
    "MollifiedDensity",
    "Normal",
    "PopulationDraws",
    "PopulationEstimate",
    "PrivacyBudget",
    "PrivateKernelDensity",
    "PrivateSampler",
    "Projection",
    "RandomizedResponseSampler",
    "Reference",
    "RelativeMollifier",
    "SamplerComparison",
    "SamplerRecord",
    "StandardNormal",
    "Uniform",
    "as_reference",
    "choose_sampler",
    "compare_samplers",
    "hellinger",
    "kl_divergence",
    "mode_coverage",
    "negative_log_likelihood",
    "plot_curves",
    "plot_density",
    "plot_heatmap",
    "random_gaussians_1d",
    "ring_of_gaussians",
    "sample_population",
    "seed_mixture",
    "total_variation",
]

__dir__ = listing(__all__)
