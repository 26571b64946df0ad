"""Surveys under secret sharing, whose owner trusts that not all aggregators collude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from turnout._seeds import derived
from turnout.accounting.values import target_delta
from turnout.collecting.keys import in_order
from turnout.collecting.left_out import LeftOut
from turnout.distributed.recommendation import recommend
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers
from turnout.surveying.local import Question, part_of, read
from turnout.surveying.results import ShareGroups, SurveyResult, SurveyResults, together
from turnout.surveying.words import (
    about_labels,
    about_left_out,
    about_seed,
    in_one_process,
    statement_of_left_out,
)

#: So many groups are named where guarantees differ.
_NAMED: Final = 5

#: A smaller delta is no help, and no search for noise comes to an end near the smallest floats.
_LEAST_DELTA: Final = 1e-300


def aggregated(
    answers: Answers,
    questions: Mapping[str, Question],
    *,
    epsilon: float,
    delta: float | None,
    parties: int,
    seed: int | None,
) -> SurveyResult | SurveyResults:
    """Count each column of each group in its own round, by the mechanism of least error.

    What a person gives to several columns composes: each gets its part of epsilon and delta.

    Raises
    ------
    InvalidValueError
        If a column has numbers.
    """
    domains = {}
    for name, question in questions.items():
        if not isinstance(question.domain, Domain):
            raise InvalidValueError(f"bounds: aggregators count answers, and {name!r} has numbers")
        domains[name] = question.domain
    found, by = read(answers, questions), answers.group_by
    target_delta(delta or 0.0, max(found.groups.size, 1))
    part = part_of(epsilon, len(questions))
    share = part_of(delta or 0.0, len(questions))
    share_of_delta = share if share >= _LEAST_DELTA else None
    order = {key: place for place, key in enumerate(in_order(found.keys))}
    results: dict[str, SurveyResult] = {}
    guarantees: dict[str, Any] = {}
    for (name, domain), codes in zip(domains.items(), found.codes, strict=True):
        rounds, estimates, mechanisms, named = {}, {}, {}, {}
        for group, key in sorted(enumerate(found.keys), key=lambda pair: order[pair[1]]):
            mine = codes[found.groups == group]
            if not mine.size:
                # Of nobody no round counts: they are among those who are left out.
                continue
            best: Any = recommend(mine.size, domain, part, share_of_delta, parties=parties).best
            at = f" in {', '.join(map(str, key))}" if key else ""
            mechanisms[key] = named[f"Of {name!r}{at}"] = best
            rounds[key] = best.run(domain.decode(mine), derived(seed, len(results), group))
            left_out = LeftOut(found.unanswered[group]) if by else found.left_out
            estimates[key] = replace(rounds[key].estimate, left_out=left_out)
        guarantees |= named
        users = sum(mechanism.users for mechanism in mechanisms.values())
        where = "" if not by else f", in {len(rounds):,} groups"
        one = (
            f"{users:,} people have an answer in {questions[name].asked(name)} and all count, "
            f"under secret sharing by {best._adders()} at epsilon "
            f"{best.epsilon!r}{where}.",
            *_guarantees(named),
        )
        notes = tuple(about_labels(questions[name]))
        if by:
            groups = ShareGroups(by, estimates)
            results[name] = SurveyResult(
                rounds, groups, name, by, one, notes, mechanisms, found.left_out
            )
        else:
            shares = estimates[()]
            results[name] = SurveyResult(
                rounds[()], shares, name, by, one, notes, best, found.left_out
            )
    statement = (
        f"{found.groups.size:,} people have answers in {', '.join(map(repr, questions))}, and each "
        f"answer was counted under secret sharing by {parties} parties at epsilon {part!r}.",
        f"All that is published of a person together has epsilon {epsilon!r}"
        + ("." if not delta else f" and delta {delta!r}."),
        *_guarantees(guarantees),
    )
    notes_of_all = (
        *about_seed(seed),
        *about_left_out(found.left_out),
        *dict.fromkeys(map(in_one_process, guarantees.values())),
    )
    without = tuple(statement_of_left_out(answers, found.groups.size, found.left_out))
    return together(results, without, statement, notes_of_all, epsilon)


def _guarantees(mechanisms: Mapping[str, Any]) -> list[str]:
    """List each distinct guarantee once, with its conditions and, if they differ, its scope."""
    of: dict[str, list[str]] = {}
    for name, mechanism in mechanisms.items():
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
