"""Whether tallies are of the same people, by the rounds in their origins."""

from __future__ import annotations

import secrets
from dataclasses import replace

from turnout.collecting.keys import Key
from turnout.collecting.rounds import SIZE, Rounds, of_different_people, together
from turnout.collecting.tally import T


def tallies_of_different_people(sets: list[dict[Key, T]]) -> list[dict[Key, T]]:
    """Name the rounds of sets of tallies so that no person is in two of the sets."""
    rounds = [together(tally.origin.rounds for tally in one.values()) for one in sets]
    return [
        {key: _in_rounds(tally, tally.origin.rounds.renamed(names)) for key, tally in one.items()}
        for one, names in zip(sets, of_different_people(rounds), strict=True)
    ]


def in_several_rounds(tally: T, number: int) -> T:
    """Split a round into several rounds of the same people, whose sizes are not known."""
    return _in_rounds(tally, tally.origin.rounds.split(number)) if number > 1 else tally


def tallies_in_one_round(tallies: dict[Key, T]) -> dict[Key, T]:
    one = Rounds.named(secrets.token_hex(SIZE), 0)
    return {key: _in_rounds(tally, one) for key, tally in tallies.items()}


def _in_rounds(tally: T, rounds: Rounds) -> T:
    return replace(tally, origin=tally.origin.with_rounds(rounds))
