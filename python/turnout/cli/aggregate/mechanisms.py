"""Which mechanism the options of ``turnout aggregate`` ask for, and what there is to say of it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import typer

from turnout import Bounds, Domain, distributed
from turnout._types import Array
from turnout.cli import options
from turnout.cli.running import note
from turnout.distributed import recommend
from turnout.distributed.mechanisms import known
from turnout.distributed.parameters import Parameters
from turnout.reporting.words import number

#: The word that compares all mechanisms.
_COMPARE = "recommend"

#: How many labels a note names.
_FEW = 5


def words() -> dict[str, tuple[type[distributed.AggregationMechanism], Mapping[str, Any]]]:
    """List the words for mechanisms, each with its mechanism and arguments.

    Examples
    --------
    >>> list(words())[:3]
    ['sampling', 'two-stage', 'discrete-laplace']
    """
    return {
        word: (kind, arguments)
        for kind in known().values()
        for word, arguments in kind._command_words().items()
    }


def _check_word(value: str) -> str:
    """Accept the word of a mechanism, or that of the comparison."""
    there = [*words(), _COMPARE]
    if value not in there:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(there)}")
    return value


def _parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


def _belongs(argument: str) -> list[str]:
    """List the words that an argument belongs to."""
    found = [word for word, (kind, _) in words().items() if argument in _parameters(kind)]
    return [*found, *([_COMPARE] if argument in _parameters(recommend) else [])]


# The groups of options in the help.
_TRUST = "Who takes part"
_SAMPLING = "Sampling, in one stage or two"
_TWO_STAGE_OPTIONS = "Two-stage sampling"
_NOISE = "Noise"


def _check_parties(value: str | None) -> Any:
    """Accept ``users`` or a number of at least two."""
    if value is None or value == "users":
        return value
    if value.isdecimal() and int(value) >= 2:
        return int(value)
    raise typer.BadParameter(f"{value!r} is not users, and not a number of at least 2")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """How the counts are protected: a mechanism and its arguments.

    Attributes
    ----------
    epsilon
        Privacy of what is published; less is more.
    mechanism
        The mechanism that protects the counts; recommend compares all.
    delta
        Not needed for discrete-laplace. Without it, recommend compares mechanisms without delta.
    floor
        The least number of people that every item has, whatever happens.
    dummies
        The number of made-up people to add to every item; holds for any data.
    threshold
        Publish only counts of at least this; holds for any data, but trusts the server.
    parties
        The parties that add up: a number of aggregators, or users. 3 if not given.
    source
        The parties that add the noise: users, if not given.
    aggregators
        For answers with proofs: how many parties verify and add up. 2 if not given.
    participation
        The probability that a person takes part, by a coin that nobody sees.
    honest_aggregators
        The least number of aggregators that do not collude.
    max_colluding_users
        How many users may collude.
    max_missing_users
        How many users may be missing.
    adjacency
        What is hidden: a person's item, or the person.
    reported
        Items that a user reports.
    gamma
        How much more likely the own item is. Uniform if not given.
    collusion_bound
        Elect more users than this for an item.
    elected
        Elect exactly this many users for an item.
    """

    epsilon: options.Epsilon
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", metavar="NAME", callback=_check_word)
    ]
    delta: Annotated[float | None, typer.Option("--delta", "-d", callback=options.check_delta)] = (
        None
    )
    floor: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None
    dummies: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None
    threshold: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None
    parties: Annotated[
        str | None,
        typer.Option(metavar="M|users", callback=_check_parties, rich_help_panel=_TRUST),
    ] = None
    source: Annotated[Literal["users", "parties"] | None, typer.Option(rich_help_panel=_NOISE)] = (
        None
    )
    aggregators: Annotated[int | None, typer.Option(min=2, rich_help_panel=_TRUST)] = None
    participation: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, rich_help_panel=_TRUST)
    ] = None
    honest_aggregators: Annotated[int, typer.Option(min=1, rich_help_panel=_TRUST)] = 1
    max_colluding_users: Annotated[int, typer.Option(min=0, rich_help_panel=_TRUST)] = 0
    max_missing_users: Annotated[int, typer.Option(min=0, rich_help_panel=_TRUST)] = 0
    adjacency: Annotated[
        Literal["replace", "add_or_remove"], typer.Option(rich_help_panel=_TRUST)
    ] = "replace"
    reported: Annotated[int | None, typer.Option(min=1, rich_help_panel=_TWO_STAGE_OPTIONS)] = None
    gamma: Annotated[float | None, typer.Option(rich_help_panel=_TWO_STAGE_OPTIONS)] = None
    collusion_bound: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_TWO_STAGE_OPTIONS)
    ] = None
    elected: Annotated[int | None, typer.Option(min=1, rich_help_panel=_TWO_STAGE_OPTIONS)] = None

    def arguments(self, context: typer.Context) -> dict[str, Any]:
        """Take the arguments of the mechanism from the options, those that are not None.

        Raises
        ------
        typer.BadParameter
            If the mechanism does not have one, or needs another.
        """
        name = self.mechanism
        for argument in [each for each in vars(self) if each != "mechanism"]:
            names = _belongs(argument)
            if name not in names:
                belongs = f"belongs to --mechanism {', '.join(names)}; not to {name}"
                options.refuse_given(context, (argument,), belongs)
        given = {each: value for each, value in vars(self).items() if value is not None}
        del given["mechanism"]
        self._refuse_incomplete(given)
        return given

    def _refuse_incomplete(self, given: Mapping[str, Any]) -> None:
        """Refuse what the mechanism cannot do without, and what does not go together."""
        name = self.mechanism
        needed: list[str] = []
        protecting: tuple[str, ...] = ()
        if name != _COMPARE:
            kind, stated = words()[name]
            signature = inspect.signature(kind)
            needed = [
                each
                for each, parameter in signature.parameters.items()
                if parameter.default is parameter.empty and each not in ("domain", "users")
            ]
            if kind._needs_delta(**stated):
                needed.append("delta")
            protecting = kind._protecting
        listed = " or ".join(f"--{each}" for each in protecting)
        options.refuse_if(
            *(
                (each not in given, "--mechanism", f"{name} needs --{each.replace('_', '-')}")
                for each in needed
            ),
            (
                bool(protecting) and given.keys().isdisjoint(protecting),
                "--mechanism",
                f"{name} needs {listed}: without noise, only hidden coins of other holders of the "
                "same item protect a person",
            ),
            *(
                ({"threshold", each} <= given.keys(), f"--{each}", "is not needed with --threshold")
                for each in ("floor", "dummies")
            ),
            (
                {"elected", "collusion_bound"} <= given.keys(),
                "--elected",
                "give --elected or --collusion-bound, not both",
            ),
        )


def mechanism_of(
    name: str, domain: Domain | Bounds, users: int, arguments: Mapping[str, Any], *, numbers: bool
) -> Any:
    """Make a mechanism, of items or of numbers; its rate or noise is calibrated."""
    kind, stated = words()[name]
    made = kind._of_numbers if numbers else kind
    assert made is not None
    return made(domain, users, **stated, **arguments)


def check_numbers(name: str) -> None:
    """Refuse a mechanism that adds up no numbers.

    Raises
    ------
    typer.BadParameter
        If it does not.
    """
    which = [word for word, (kind, _) in words().items() if kind._of_numbers is not None]
    options.refuse_if(
        (
            name not in [*which, _COMPARE],
            "--mean",
            f"needs --mechanism {' or '.join([*which, _COMPARE])}, which add up numbers; {name} "
            "counts labels",
        )
    )


def floor_holds(arguments: dict[str, Any], domain: Any, codes: Array, what: str) -> bool | None:
    """Tell whether every item has as many people as the floor promises, and note which has not.

    None if nothing rests on a floor: none was given, or nothing of it is hidden from those who
    collude.
    """
    floor = arguments.get("floor", 0)
    if floor <= arguments["max_colluding_users"] + arguments["max_missing_users"]:
        return None
    held = np.bincount(codes, minlength=domain.size)
    rarest = np.argsort(held, kind="stable")
    below = [domain.labels[code] for code in rarest if held[code] < floor]
    if below:
        names = ", ".join(map(str, below[:_FEW])) + (", ..." if len(below) > _FEW else "")
        note(
            f"the floor of {floor:,} does not hold here: {len(below):,} of {domain.size:,} labels "
            f"{'is' if len(below) == 1 else 'are'} held by fewer ({names}); {what} does not hold "
            "for this data"
        )
    return not below


def rows(mechanism: Parameters) -> list[tuple[str, str]]:
    """Say what a mechanism is, what was found for it, and what it guarantees."""
    return [*mechanism._told(), ("guarantee", _guarantee(mechanism))]


def _guarantee(mechanism: Parameters) -> str:
    promise = mechanism.guarantee
    changed = {
        "replace": f"one person's {mechanism._holding} is another",
        "add_or_remove": "one person more or less",
    }
    target = f"epsilon {number(promise.epsilon or 0.0)}"
    target += f", delta {number(promise.delta)}" if promise.delta else ", delta 0"
    meaning = changed.get(promise.adjacency, promise.adjacency)
    conditions = "".join(f"\n- {sentence}" for sentence in promise.assumptions)
    return f"{target}: {meaning}, where{conditions}"
