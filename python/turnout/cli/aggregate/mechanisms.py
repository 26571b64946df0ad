"""Which mechanism the options of ``turnout aggregate`` ask for, and what there is to say of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import typer

from turnout import Domain, distributed
from turnout._types import Array
from turnout.cli import options
from turnout.cli.account.shared import down, up
from turnout.cli.running import note
from turnout.reporting.words import number

Name = Literal[
    "sampling", "two-stage", "discrete-laplace", "discrete-gaussian", "skellam", "recommend"
]

_NOISES = ("discrete-laplace", "discrete-gaussian", "skellam")
_SAMPLED = ("sampling", "two-stage")
_TWO_STAGE = ("two-stage",)

#: What runs without a delta.
_WITHOUT_DELTA = ("discrete-laplace", "recommend")

#: How many labels a note names.
_FEW = 5

#: Options of which sampling needs one.
_PROTECTING = ("floor", "dummies", "threshold")

#: Options that only some mechanisms have, and which.
_BELONGS: dict[str, tuple[str, ...]] = {
    "floor": (*_SAMPLED, "recommend"),
    "dummies": _SAMPLED,
    "threshold": ("sampling",),
    "parties": ("sampling", *_NOISES, "recommend"),
    "source": _NOISES,
    "reported": (*_TWO_STAGE, "recommend"),
    "gamma": (*_TWO_STAGE, "recommend"),
    "collusion_bound": _TWO_STAGE,
    "elected": _TWO_STAGE,
}


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
    """How the counts are protected: a mechanism and its arguments, of which each has some.

    Attributes
    ----------
    epsilon
        Privacy of what is published; less is more.
    mechanism
        How the counts are protected; recommend compares all.
    delta
        Not needed for discrete-laplace; without it recommend compares what needs none.
    floor
        Every item has so many people, whatever happens.
    dummies
        People that do not exist, on every item; holds for any data.
    threshold
        Publish counts from here on only; holds for any data, the server is trusted.
    parties
        Who adds up: so many aggregators, or the users. 3 if left out.
    source
        Who adds it. The users if left out.
    honest_aggregators
        How many do not collude, at least.
    max_colluding_users
        How many users may collude.
    max_missing_users
        How many users may be missing.
    adjacency
        What is hidden: a person's item, or the person.
    reported
        Items that a user reports.
    gamma
        How much likelier the own item is. Uniform if left out.
    collusion_bound
        Elect more users than this for an item.
    elected
        Elect exactly so many for an item.
    """

    epsilon: options.Epsilon
    mechanism: Annotated[Name, typer.Option("--mechanism", "-m", metavar="NAME")]
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
        for argument, names in _BELONGS.items():
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
        protecting = [
            each for each in _PROTECTING if name in _BELONGS[each] and name != "recommend"
        ]
        listed = " or ".join(f"--{each}" for each in protecting)
        options.refuse_if(
            (
                name not in _WITHOUT_DELTA and "delta" not in given,
                "--mechanism",
                f"{name} needs --delta",
            ),
            (
                name == "two-stage" and "reported" not in given,
                "--mechanism",
                "two-stage needs --reported",
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
    name: Name, domain: Domain, users: int, arguments: dict[str, Any]
) -> distributed.AggregationMechanism:
    """Make a mechanism; its rate or noise is calibrated."""
    if name == "sampling":
        return distributed.SamplingAggregation(domain, users, **arguments)
    if name == "two-stage":
        return distributed.TwoStageSampling(domain, users, **arguments)
    return distributed.NoisyAggregation(domain, users, noise=name.replace("-", "_"), **arguments)


def floor_holds(arguments: dict[str, Any], domain: Domain, codes: Array, what: str) -> bool | None:
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


def parameters(mechanism: distributed.AggregationMechanism) -> dict[str, Any]:
    """Give what was found for a mechanism, for programs."""
    found: dict[str, Any] = {"field": mechanism.field.modulus}
    if isinstance(mechanism, distributed.NoisyAggregation):
        found["parameter"] = mechanism.parameter
        found["noise_variance"] = mechanism.law().variance
    elif isinstance(mechanism, (distributed.SamplingAggregation, distributed.TwoStageSampling)):
        found["rate"] = mechanism.rate
        found["dummies_an_item"] = mechanism._contributors * mechanism.dummies
    if isinstance(mechanism, distributed.TwoStageSampling):
        found["own_probability"] = mechanism.own_probability
        found["sampling_probability"] = mechanism.sampling_probability
        found["reporting_epsilon"] = mechanism.reporting_epsilon
    return found


def rows(mechanism: distributed.AggregationMechanism) -> list[tuple[str, str]]:
    """Say what a mechanism is, what was found for it, and what it guarantees."""
    found = [("mechanism", _title(mechanism))]
    if isinstance(mechanism, distributed.NoisyAggregation):
        deviation = math.sqrt(mechanism.law().variance)
        found.append(("noise", f"standard deviation {deviation:.4g} on every count"))
    elif isinstance(mechanism, (distributed.SamplingAggregation, distributed.TwoStageSampling)):
        assert mechanism.rate is not None
        found.append(("rate", f"{down(mechanism.rate)} of the people take part, unseen"))
        if mechanism._contributors:
            found.append(("dummies", _dummies(mechanism)))
    threshold = getattr(mechanism, "threshold", None)
    if threshold is not None:
        found.append(
            ("threshold", f"counts below {threshold:,} are not published; 0 stands for them")
        )
    if isinstance(mechanism, distributed.TwoStageSampling):
        found.append(("first server", _first_server(mechanism)))
    return [*found, ("guarantee", _guarantee(mechanism))]


def _title(mechanism: distributed.AggregationMechanism) -> str:
    if isinstance(mechanism, distributed.TwoStageSampling):
        kind = "uniform"
        if mechanism.gamma is not None:
            kind = f"adaptive (gamma {number(mechanism.gamma)})"
        return f"two-stage sampling, {mechanism.reported} items reported, {kind}"
    who = getattr(mechanism, "parties", 0)
    adding = "all users add up" if who == "users" else f"{who} aggregators add up"
    if isinstance(mechanism, distributed.NoisyAggregation):
        source = "every user" if mechanism.source == "users" else "each that adds up"
        return f"{mechanism.noise.replace('_', ' ')} noise, a piece from {source}; {adding}"
    return f"sampling; {adding}"


def _dummies(mechanism: distributed.SamplingAggregation | distributed.TwoStageSampling) -> str:
    each = f"{mechanism.dummies:,} on every item"
    count = mechanism._contributors
    if isinstance(mechanism, distributed.TwoStageSampling):
        who = "the first user" if count == 1 else f"each of the first {count} users"
        return f"{each}, by {who} elected for it"
    return (
        f"{each}, by each of {count} {'users' if mechanism._users_are_parties else 'aggregators'}"
    )


def _first_server(mechanism: distributed.TwoStageSampling) -> str:
    if mechanism.gamma is None:
        return "learns nothing about a person's item from the items reported (epsilon 0)"
    return f"learns at most epsilon {up(mechanism.reporting_epsilon)} from the items reported"


def _guarantee(mechanism: distributed.AggregationMechanism) -> str:
    promise = mechanism.guarantee
    changed = {
        "replace": "one person's item is another",
        "add_or_remove": "one person more or less",
    }
    target = f"epsilon {number(promise.epsilon or 0.0)}"
    target += f", delta {number(promise.delta)}" if promise.delta else ", delta 0"
    meaning = changed.get(promise.adjacency, promise.adjacency)
    conditions = "".join(f"\n- {sentence}" for sentence in promise.assumptions)
    return f"{target}: {meaning}, where{conditions}"
