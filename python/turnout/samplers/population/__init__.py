"""One private draw of every user, and what all draws together tell."""

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
