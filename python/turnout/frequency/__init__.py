"""Frequency estimation under local differential privacy when only some nodes report.

A value's path is the order of the modules: an oracle (:mod:`~turnout.frequency.oracles`) makes
:mod:`~turnout.collecting.reports`, which add up to a :mod:`~turnout.frequency.tally`, of which
:mod:`~turnout.frequency.estimation` makes an estimate.

Beyond the path: :mod:`~turnout.frequency.ordered` answers, with sums, ranges and quantiles; several
:mod:`~turnout.frequency.attributes` of a person; :mod:`~turnout.frequency.heavy_hitters` of huge
domains; two rounds (:mod:`~turnout.frequency.adaptive`) and many
(:mod:`~turnout.frequency.longitudinal`).
"""
