"""Mollified boosted density estimates (MBDE): the sampler of the paper on private sampling."""

from turnout_reproduce.boosting.sampler import BoostingRound, MollifiedBoosting

__all__ = ["BoostingRound", "MollifiedBoosting"]
