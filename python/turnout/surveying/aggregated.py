"""Counts under secret sharing: the owner trusts that not all aggregators collude."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from turnout._seeds import derived
from turnout.collecting.keys import in_order
from turnout.distributed.recommendation import recommend
from turnout.domain import Domain
from turnout.pipeline.in_memory import Columns
from turnout.surveying.local import part_of
from turnout.surveying.results import ShareGroups, SurveyResult, SurveyResults

#: So many groups are named where guarantees differ.
_NAMED: Final = 5

#: A smaller delta is no help, and no search for noise comes to an end near the smallest floats.
_LEAST_DELTA: Final = 1e-300


def aggregated(
    domains: Mapping[str, Domain],
    columns: Columns,
    by: tuple[str, ...],
    *,
    epsilon: float,
    delta: float | None,
    parties: int,
    notes: tuple[str, ...],
    notes_of: Mapping[str, Sequence[str]],
    seed: int | None,
) -> SurveyResult | SurveyResults:
    """Count each column of each group in a round of its own, by the mechanism of least error.

    What a person gives to several columns composes: each gets its part of epsilon and delta.
    """
    number = len(domains)
    part = part_of(epsilon, number)
    share = part_of(delta or 0.0, number)
    share_of_delta = share if share >= _LEAST_DELTA else None
    order = {key: place for place, key in enumerate(in_order(columns.keys))}
    results = {}
    for place, (name, domain) in enumerate(domains.items()):
        codes = columns.codes[place]
        rounds, mechanisms = {}, {}
        for group, key in sorted(enumerate(columns.keys), key=lambda pair: order[pair[1]]):
            mine = codes[columns.groups == group]
            found = recommend(mine.size, domain, part, share_of_delta, parties=parties)
            mechanisms[key] = found.best
            values = domain.decode(mine)
            rounds[key] = found.best.run(values, derived(seed, place, group))
        results[name] = _result(name, by, rounds, mechanisms, tuple(notes_of[name]))
    notes = (
        *notes,
        "All parties ran in this process, which saw the answers: distributed.Round.start(...) "
        "starts a round among machines that do not.",
    )
    if number == 1:
        [result] = results.values()
        return replace(result, notes=(*notes, *result.notes))
    asked = ", ".join(map(repr, domains))
    return SurveyResults(
        results,
        (
            f"{columns.groups.size:,} people were asked {asked}, and each answer was counted under "
            f"secret sharing by {parties} parties at epsilon {part!r}.",
            f"All that is published of a person together has epsilon {epsilon!r}"
            + ("." if not delta else f" and delta {delta!r}."),
            *_guarantees(
                (f"Of {name!r}{at}", mechanism)
                for name, one in results.items()
                for at, mechanism in _by_group(one.mechanism)
            ),
        ),
        notes,
    )


def _result(
    name: str,
    by: tuple[str, ...],
    rounds: dict[Any, Any],
    mechanisms: dict[Any, Any],
    notes: tuple[str, ...],
) -> SurveyResult:
    first = next(iter(mechanisms.values()))
    users = sum(mechanism.users for mechanism in mechanisms.values())
    where = "" if not by else f", in {len(rounds):,} groups"
    statement = (
        f"{users:,} people were asked {name!r} and all answered: counted under secret sharing by "
        f"{first.number_of_parties} parties at epsilon {first.epsilon!r}{where}.",
        *_guarantees(
            (f"Of {name!r}{at}", mechanism)
            for at, mechanism in _by_group(mechanisms if by else first)
        ),
    )
    if not by:
        return SurveyResult(rounds[()], rounds[()].estimate, name, by, statement, notes, first)
    estimate = ShareGroups(by, {key: each.estimate for key, each in rounds.items()})
    return SurveyResult(rounds, estimate, name, by, statement, notes, mechanisms)


def _by_group(mechanism: Any) -> list[tuple[str, Any]]:
    """List the mechanisms of a result, each with the words for its group."""
    if not isinstance(mechanism, dict):
        return [("", mechanism)]
    return [(f" in {', '.join(map(str, key))}", one) for key, one in mechanism.items()]


def _guarantees(found: Iterable[tuple[str, Any]]) -> list[str]:
    """List every guarantee with its conditions, once, and what it is of where they differ."""
    of: dict[str, list[str]] = {}
    for name, mechanism in found:
        of.setdefault(str(mechanism.guarantee), []).append(name)
    lines = []
    for text, names in of.items():
        if len(of) > 1:
            more = len(names) - _NAMED
            lines.append(
                "; ".join(names[:_NAMED]) + (f"; and {more:,} more" if more > 0 else "") + ":"
            )
        lines += text.splitlines()
    return lines
