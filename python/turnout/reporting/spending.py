"""The privacy that a person spends who reports under every plan, with each epsilon by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from turnout import _rounding
from turnout.collecting.plan import Plan
from turnout.frequency.longitudinal import Memoized
from turnout.reporting.telling import telling
from turnout.reporting.words import epsilon_of_one, epsilon_together, rounded_up, written

#: What an epsilon is of, and its value.
Spent = tuple[str, Fraction]


@dataclass(frozen=True)
class Asked:
    """A question that was asked once or repeatedly.

    Attributes
    ----------
    plans
        The plans that ask it; their oracles are equal.
    """

    plans: tuple[Plan, ...]

    @property
    def together(self) -> Fraction:
        """The epsilon of a person who reported every time, whatever they answered."""
        return epsilon_together(self.plans[0], len(self.plans))

    @property
    def unchanged(self) -> Fraction:
        """The epsilon of a person who reported every time with the same answer."""
        oracle = self.plans[0].oracle
        if isinstance(oracle, Memoized):
            return min(written(oracle.lifetime_epsilon), self.together)
        return self.together

    @property
    def spent(self) -> list[Spent]:
        """Name what the reports of a person spend."""
        plan, times = self.plans[0], len(self.plans)
        found = [("one report", written(epsilon_of_one(plan)))]
        if isinstance(plan.oracle, Memoized):
            kept = written(plan.oracle.lifetime_epsilon)
            found.append(("all reports of an answer that stays the same", kept))
        if times > 1:
            changing = "" if plan.oracle.fresh else " whose answers may change at any time"
            found.append((f"{times:,} reports of one person{changing}", self.together))
        return found

    @property
    def words(self) -> str:
        """State what is asked, how, and how often."""
        oracle = self.plans[0].oracle
        _, asked = telling(self.plans[0]).asked(oracle.domain)
        often = f", {len(self.plans):,} times" if len(self.plans) > 1 else ""
        return f"{asked}, {oracle.name.replace('_', ' ')}{often}"


@dataclass(frozen=True)
class Ledger:
    """The privacy that a person spends who reports under each of some plans.

    Fresh reports add up. Reports of a permanent answer spend less together, as
    :class:`turnout.Memoized` bounds it. Different questions add up.

    Attributes
    ----------
    questions
        What was asked.

    Examples
    --------
    >>> import turnout as tn
    >>> fresh = tn.DirectEncoding(0.5, ["no", "yes"])
    >>> kept = tn.Memoized(tn.DirectEncoding(2.0, 3), first_epsilon=1.5)
    >>> days = [tn.Plan(fresh, tn.Everyone(), serial=day) for day in range(4)]
    >>> for name, value in Ledger.of([*days, tn.Plan(kept, tn.Everyone())]).rows():
    ...     print(f"{name}: {value}")
    plans so far: 5
    question 1: 2 labels, direct encoding, 4 times
    ε of one report: 0.5
    ε of 4 reports of one person: 2
    question 2: 3 labels, memoized
    ε of one report: 1.5
    ε of all reports of an answer that stays the same: 2
    ε of all reports, whatever was answered: 3.5
    """

    questions: tuple[Asked, ...]

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Ledger:
        """Put plans together that ask the same in the same way, whoever takes part."""
        kinds: list[list[Plan]] = []
        for plan in plans:
            for kind in kinds:
                if kind[0].oracle == plan.oracle:
                    kind.append(plan)
                    break
            else:
                kinds.append([plan])
        return cls(tuple(Asked(tuple(kind)) for kind in kinds))

    @property
    def times(self) -> int:
        """The number of plans."""
        return sum(len(each.plans) for each in self.questions)

    @property
    def total(self) -> Fraction:
        """The epsilon of all reports of a person together, whatever they answered."""
        return sum((each.together for each in self.questions), Fraction(0))

    @property
    def unchanged(self) -> Fraction:
        """The epsilon of all reports of a person together, if no answer changed."""
        return sum((each.unchanged for each in self.questions), Fraction(0))

    def rows(self) -> list[tuple[str, str]]:
        """Return the ledger as names and values."""
        several = len(self.questions) > 1
        rows = [("plans so far", f"{self.times:,}")]
        for number, each in enumerate(self.questions, 1):
            rows.append((f"question {number}" if several else "question", each.words))
            rows += [(f"ε of {name}", rounded_up(value, 4)) for name, value in each.spent]
        if several:
            if self.unchanged < self.total:
                rows.append(
                    ("ε of all reports, if no answer changed", rounded_up(self.unchanged, 4))
                )
            rows.append(("ε of all reports, whatever was answered", rounded_up(self.total, 4)))
        return rows

    def statements(self) -> list[str]:
        """State what the numbers mean, one sentence for each entry."""
        said = [
            "This is the total epsilon of a person who reported under each of these plans. A "
            "person who reported less often has spent no more."
        ]
        rounds = dict.fromkeys(each.plans[0].oracle._asked_of for each in self.questions)
        said += [f"A round asks {asked}." for asked in rounds if asked]
        return said

    def described(self) -> dict[str, Any]:
        """Describe the ledger as a JSON-compatible dictionary; every epsilon is rounded up."""
        up = _rounding.rounded_up
        return {
            "times": self.times,
            "epsilon": up(self.total),
            "epsilon_unchanged": up(self.unchanged),
            "questions": [
                {
                    "question": each.words,
                    "plans": [plan.fingerprint for plan in each.plans],
                    "spent": [{"of": name, "epsilon": up(value)} for name, value in each.spent],
                }
                for each in self.questions
            ],
            "statements": self.statements(),
        }
