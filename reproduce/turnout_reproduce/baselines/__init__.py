"""Baselines: a noisy density is released once, and then drawn from freely."""

from turnout_reproduce.baselines.bernstein import BernsteinSampler
from turnout_reproduce.baselines.kernel import PrivateKernelDensity

__all__ = ["BernsteinSampler", "PrivateKernelDensity"]
