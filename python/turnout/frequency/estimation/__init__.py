"""Estimation of frequencies with their errors, from a tally or from reports."""
