"""Make one private draw for every user, and estimate from all draws together."""

from turnout.samplers.population.answers import FinitePopulationEstimate, IdentifiedBounds
from turnout.samplers.population.draws import PopulationDraws, sample_population
from turnout.samplers.population.points import PopulationEstimate

__all__ = [
    "FinitePopulationEstimate",
    "IdentifiedBounds",
    "PopulationDraws",
    "PopulationEstimate",
    "sample_population",
]
