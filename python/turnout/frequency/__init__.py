"""Frequency estimation under local differential privacy when only some nodes report.

A value passes through the modules in this order. An oracle (:mod:`~turnout.frequency.oracles`)
makes :mod:`~turnout.collecting.reports`. These add up to a :mod:`~turnout.frequency.tally`, from
which :mod:`~turnout.frequency.estimation` computes an estimate.

Other modules are for :mod:`~turnout.frequency.ordered` answers, with sums, ranges and quantiles;
several :mod:`~turnout.frequency.attributes` of a person; :mod:`~turnout.frequency.heavy_hitters` of
huge domains; two rounds (:mod:`~turnout.frequency.adaptive`) and many
(:mod:`~turnout.frequency.longitudinal`).
"""
