"""Two rounds: the second asks more of those who hold an answer that was rare in the first.

An open question of Biswas, Cormode, Maple, "Impact of sampling on locally differentially private
data collection". Who takes part then depends on what they hold, so that taking part, and staying
silent, say something: :func:`second_round_ratios` counts it.
"""

from turnout.frequency.adaptive.collection import TwoRoundCollection, TwoRounds
from turnout.frequency.adaptive.second import (
    SecondRound,
    SecondTally,
    rates_for_rare,
    second_round_ratios,
)
from turnout.frequency.adaptive.tallies import Spending, TwoRoundTallies

__all__ = [
    "SecondRound",
    "SecondTally",
    "Spending",
    "TwoRoundCollection",
    "TwoRoundTallies",
    "TwoRounds",
    "rates_for_rare",
    "second_round_ratios",
]
