"""Privacy accounting: what random participation, sampling, shuffling and noise cost.

A :class:`Mechanism` is one release; it gives delta at an epsilon and epsilon at a delta. Mechanisms
:func:`compose`; a :class:`PrivacyLedger` keeps the composition of what was spent within a budget;
:func:`calibrate` finds the parameter that just reaches a target; :func:`plot` draws several on one
axis. Every number is on the safe side, but for :mod:`turnout.accounting.paper`, which keeps
published expressions that are no bounds.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
