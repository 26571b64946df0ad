"""What differs between the randomizers of two plans, in words."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.collecting.randomizer import Randomizer
from turnout.domain import Domain


def differences(ours: Randomizer, theirs: Randomizer) -> list[str]:
    """Say what another randomizer has instead of what is wanted."""
    found = []
    if ours.name != theirs.name:
        found.append(f"oracle {theirs.name} instead of {ours.name}")
    if ours.epsilon != theirs.epsilon:
        found.append(f"epsilon {theirs.epsilon} instead of {ours.epsilon}")
    if ours.domain != theirs.domain:
        found.append(f"domain {_domains(theirs.domain, ours.domain)}")
    if ours.name == theirs.name:
        asked, given = ours.parameters(), theirs.parameters()
        found += [
            f"{name} {_arguments.shown(given.get(name))} instead of "
            f"{_arguments.shown(asked.get(name))}"
            for name in asked | given
            if given.get(name) != asked.get(name)
        ]
    return found


def _domains(theirs: Any, ours: Any) -> str:
    """Say what differs between two domains, by their first different labels."""
    if repr(theirs) != repr(ours):
        return f"{theirs!r} instead of {ours!r}"
    if not (isinstance(theirs, Domain) and isinstance(ours, Domain)):
        return "with other labels"
    shown = _arguments.shown
    pairs = zip(theirs.labels, ours.labels, strict=True)
    for code, (their, our) in enumerate(pairs):
        if their != our or shown(their) != shown(our):
            return f"label {code} is {shown(their)} instead of {shown(our)}"
    return "labels have other types"
