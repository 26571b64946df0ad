"""Two rounds: the second asks more nodes with an answer that was rare in the first.

An open question of Biswas, Cormode, Maple, "Impact of sampling on locally differentially private
data collection". Participation then depends on the answer, so taking part and staying silent reveal
something. :func:`second_round_ratios` computes how much.
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
