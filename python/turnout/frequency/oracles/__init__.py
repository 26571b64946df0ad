"""The frequency oracles, one family a module.

A module that defines a subclass of :class:`~turnout.frequency.oracle.FrequencyOracle` with a
``name`` registers it for plans and files; :mod:`turnout.frequency` imports all of them.
"""
