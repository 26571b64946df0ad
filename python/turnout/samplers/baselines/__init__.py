"""Baselines: a noisy density is released once, and then drawn from freely."""

from turnout.samplers.baselines.bernstein import BernsteinSampler
from turnout.samplers.baselines.kernel import PrivateKernelDensity

__all__ = ["BernsteinSampler", "PrivateKernelDensity"]
