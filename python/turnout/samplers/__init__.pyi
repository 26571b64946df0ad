from turnout.samplers.adapters import Mixture as Mixture
from turnout.samplers.adapters import as_reference as as_reference
from turnout.samplers.base import PrivateSampler as PrivateSampler
from turnout.samplers.budget import PrivacyBudget as PrivacyBudget
from turnout.samplers.density import MollifiedDensity as MollifiedDensity
from turnout.samplers.finite import FiniteMollifier as FiniteMollifier
from turnout.samplers.finite import RandomizedResponseSampler as RandomizedResponseSampler
from turnout.samplers.minimax import MinimaxSampler as MinimaxSampler
from turnout.samplers.minimax import choose_sampler as choose_sampler
from turnout.samplers.mollifier import Projection as Projection
from turnout.samplers.mollifier import RelativeMollifier as RelativeMollifier
from turnout.samplers.pictures import plot_density as plot_density
from turnout.samplers.population import FinitePopulationEstimate as FinitePopulationEstimate
from turnout.samplers.population import PopulationDraws as PopulationDraws
from turnout.samplers.population import PopulationEstimate as PopulationEstimate
from turnout.samplers.population import sample_population as sample_population
from turnout.samplers.reference import Normal as Normal
from turnout.samplers.reference import Reference as Reference
from turnout.samplers.reference import StandardNormal as StandardNormal
from turnout.samplers.reference import Uniform as Uniform
from turnout.samplers.tables.collected import collect_reference as collect_reference
from turnout.samplers.tables.estimates import TableEstimate as TableEstimate
from turnout.samplers.tables.quality import TableQuality as TableQuality
from turnout.samplers.tables.quality import quality as quality
from turnout.samplers.tables.recommendation import (
    SamplerRecommendation as SamplerRecommendation,
)
from turnout.samplers.tables.recommendation import recommend as recommend
from turnout.samplers.tables.reference import CollectedReference as CollectedReference
from turnout.samplers.tables.sampler import TableSampler as TableSampler
