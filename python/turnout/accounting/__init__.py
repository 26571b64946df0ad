"""Privacy accounting of random participation, sampling, shuffling and noise.

A :class:`Mechanism` describes one release: it gives delta at an epsilon and epsilon at a delta.
:func:`compose` composes mechanisms. A :class:`PrivacyLedger` keeps the composition of all releases
within a budget. :func:`calibrate` finds the parameter that just reaches a target. :func:`plot`
draws several mechanisms on one axis. Every number is on the safe side, except in
:mod:`turnout.accounting.paper`, which keeps published expressions that are not bounds.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
