"""One private draw of every user, and what all draws together tell."""

from turnout.samplers.population.draws import PopulationDraws, sample_population

__all__ = ["PopulationDraws", "sample_population"]
