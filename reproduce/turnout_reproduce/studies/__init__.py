"""Studies: what error and cost depend on, side by side, computed or simulated.

Of collections (:func:`compare_rates`, :func:`compare_oracles`, :func:`compare_shuffled`,
:func:`compare_two_rounds`), of groups with different privacy (:func:`compare_weightings`), of
private samplers (:func:`compare_samplers`) and of trainings (:func:`compare_trainings`).
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
