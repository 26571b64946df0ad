"""``turnout rounds``: questions that take rounds, each of which is a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import Plan
from turnout._files import atomic_write
from turnout._label_texts import number_of
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.input import Files, People
from turnout.cli.output import Output
from turnout.cli.question import Choices
from turnout.cli.showing.rounds import show_search, show_two, summary
from turnout.cli.tables import Whole, print_json, tell
from turnout.cli.tallies import read_tally
from turnout.collecting.groups.tally import GroupedTally
from turnout.errors import InvalidValueError
from turnout.frequency.adaptive import SecondRound, TwoRoundCollection
from turnout.frequency.heavy_hitters import HeavyHitters, Search, SearchRound
from turnout.frequency.rounds import Rounds
from turnout.pipeline.splitting import split as split_rows
from turnout.reporting import words
from turnout.reporting.words import number, percent
from turnout.serve.collection import Published
from turnout.serve.results import LEAST
from turnout.serve.storage.opening import place_of
from turnout.signing import SigningKey

State = Annotated[
    Path,
    typer.Argument(
        metavar="STATE", help="The state file that turnout rounds hitters or rare wrote."
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", "-e", callback=options.check_positive, help="Privacy of all rounds together."
    ),
]


def _oracle(text: str) -> str:
    return text.lower().replace("-", "_")


@dataclass(frozen=True, kw_only=True)
class _Plans:
    """The plan of the open round that is written.

    Attributes
    ----------
    plans
        The folder of the plans, where turnout serve finds new plans. Default: the folder of the
        state.
    """

    plans: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None
    sign: options.Sign = None
    as_json: options.AsJson = False

    def place(self, state: Path, number: int) -> Path:
        """Name the plan file of a round."""
        return (self.plans or state.parent) / f"{state.stem}.round-{number}.json"

    def key(self, state: Path, number: int) -> SigningKey | None:
        """Read the key that signs the plan of a round.

        Raises
        ------
        InvalidValueError
            If the plan before it, or an earlier one of the same round, is signed by another key.
        """
        key = None if self.sign is None else SigningKey.read(self.sign)
        for earlier in (number, number - 1):
            path = self.place(state, earlier)
            if path.exists():
                signer = Published.read(path).public_key
                if signer and (key is None or key.public_key != signer):
                    raise InvalidValueError(
                        f"{path} is signed by {signer}, and devices that know this key refuse "
                        "other plans: pass --sign FILE with the same key"
                    )
        return key

    def write_to(
        self,
        state: Path,
        under_way: Rounds[Any, Any],
        rows: list[tuple[str, str]],
        record: dict[str, Any],
        participation: float | None,
    ) -> None:
        """Write the plan of the open round and then the state, and say where they are."""
        file = None
        if not under_way.finished:
            plan = under_way.plan(participation)
            key = self.key(state, under_way.number)
            file = self.place(state, under_way.number)
            file.parent.mkdir(exist_ok=True)
            options.refuse_overwriting_inputs(file, [] if self.sign is None else [self.sign])
            # A plan that is out has its round in the state. Killed in between, there is none yet,
            # and turnout rounds plan writes it.
            with atomic_write(file, before=lambda: under_way.write(state)) as temporary:
                plan.write(temporary, signing_key=key)
            rows = [*rows, *_plan_rows(plan, file, under_way, key)]
        else:
            under_way.write(state)
            rows = [
                *rows,
                (
                    "rounds",
                    f"all {under_way.number} rounds are closed; turnout rounds show prints "
                    "the results",
                ),
            ]
        if self.as_json:
            path = None if file is None else str(file)
            print_json({**summary(under_way), **record, "plan_file": path})
            return
        tell(f"State in {state}", rows)


@dataclass(frozen=True, kw_only=True)
class _StateOutput(_Plans):
    """The state of rounds that begin.

    Attributes
    ----------
    target
        The new state file; the plan is written beside it.
    """

    target: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")]

    def refuse_there(self) -> None:
        """Refuse to begin where rounds may be under way.

        Raises
        ------
        InvalidValueError
            If there is such a file.
        """
        if self.target.exists():
            raise InvalidValueError(
                f"{self.target} already exists and may contain rounds in progress; choose "
                "another name"
            )

    def write(
        self,
        under_way: Rounds[Any, Any],
        rows: list[tuple[str, str]],
        record: dict[str, Any],
        participation: float | None,
    ) -> None:
        """Write the state, and the plan of the first round beside it."""
        self.write_to(self.target, under_way, rows, record, participation)


@dataclass(frozen=True, kw_only=True)
class _Search:
    """What is looked for, and how.

    Attributes
    ----------
    bits
        Search for whole numbers of N bits.
    length
        Search for texts of at most N bytes, or characters of --alphabet.
    alphabet
        The characters that occur. Default: all, as UTF-8.
    oracle
        How reports are randomized.
    step
        The number of bits by which prefixes grow in each round.
    keep
        The largest number of prefixes kept, which bounds memory.
    family_wise_error
        The largest probability that a round keeps a prefix that nobody holds.
    confirm
        Add a last round that estimates the values found with fresh reports.
    """

    bits: Annotated[int | None, typer.Option(metavar="N")] = None
    length: Annotated[int | None, typer.Option(metavar="N")] = None
    alphabet: Annotated[str | None, typer.Option(metavar="TEXT")] = None
    oracle: Annotated[str, typer.Option(metavar="NAME", parser=_oracle)] = "auto"
    step: int = 4
    keep: int = 512
    family_wise_error: float = 0.05
    confirm: Annotated[bool, typer.Option("--confirm/--no-confirm")] = True


@command
def hitters(
    *,
    epsilon: Epsilon,
    search: _Search,
    participation: options.Participation = None,
    nodes: Annotated[int | None, typer.Option("--nodes", "-n", min=1)] = None,
    output: _StateOutput,
) -> None:
    """Find the most frequent values of a huge domain.

    The command writes the state of the search, and the plan of its first round beside the state or
    into --plans: for search.json, the plan is search.round-0.json. Use the plan with turnout
    randomize --plan, or put it into the folder of turnout serve. Ask each person in one round only;
    turnout rounds split or the coin of a device does that. Then the whole search spends epsilon
    once. turnout rounds close reads the tally of a round and writes the next plan. turnout rounds
    show prints the results.

    --json prints protocol, finished, round (the number of the open one), plan_file and
    detectable_frequency (null without --nodes).

    [bold]Examples:[/]

        turnout rounds hitters --epsilon 4 --length 6 -o search.json

        turnout rounds hitters -e 4 --bits 32 --nodes 1000000 -o search.json --sign plans.key

        turnout rounds hitters -e 4 --length 6 -o search.json --plans plans/

    Parameters
    ----------
    nodes
        The number of people: print how frequent a value must be to be found.
    """
    output.refuse_there()
    protocol = HeavyHitters(epsilon, **vars(search))
    record: dict[str, Any] = {"detectable_frequency": None}
    rows = [("values", str(protocol._values)), ("epsilon", number(epsilon))]
    if nodes is not None:
        found = protocol.detectable_frequency(nodes, participation=participation)
        record["detectable_frequency"] = found
        text = "no value is frequent enough" if found > 1 else f"{percent(found, 3)} of the people"
        rows.append(("found from", f"{text}, among {nodes:,} people, whatever the others hold"))
    output.write(protocol.rounds(), rows, record, participation)


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """Who reports in which round, and how.

    Attributes
    ----------
    first_rate
        The share of the people that reports in the first round.
    second_rate
        The expected share that reports in the second round.
    low
        The smallest probability of reporting in the second round.
    high
        The largest probability of reporting, for people with a rare answer.
    oracle
        How reports are randomized.
    """

    first_rate: Annotated[float, typer.Option()]
    second_rate: Annotated[float, typer.Option()]
    low: Annotated[float, typer.Option()]
    high: Annotated[float, typer.Option()]
    oracle: Annotated[str, typer.Option(metavar="NAME", parser=_oracle)] = "direct-encoding"


@command
def rare(*, epsilon: Epsilon, choices: Choices, rates: _Rates, output: _StateOutput) -> None:
    """Estimate rare answers in two rounds.

    The second round asks more of the people whose answer is rare. The command writes the state, and
    the plan of the first round beside it, as turnout rounds hitters does. turnout rounds close
    reads the tally of the first round, chooses the probability of reporting for each answer, and
    writes the plan of the second round. A person's reporting or silence then depends on the answer;
    epsilon includes both, and the reports get the rest of it.

    Two rounds pay off at a large epsilon (6 or more) with few reports; otherwise one round is
    better.

    --json prints protocol, finished, round (the number of the open one) and plan_file.

    [bold]Example:[/]

        turnout rounds rare -e 8 --labels A,B,AB,0 --first-rate .02 --second-rate .03 \
            --low .01 --high .5 -o blood.json
    """
    output.refuse_there()
    collection = TwoRoundCollection(choices.domain(), epsilon=epsilon, **vars(rates))
    rows = [("domain", f"{collection.domain.size:,} labels"), ("epsilon", number(epsilon))]
    output.write(collection.rounds(), rows, {}, None)


@command
def split(
    state: State,
    *,
    files: Files,
    people: People,
    column: options.Column,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")],
    as_json: options.AsJson = False,
) -> None:
    """Split people into groups, so that each person is asked in one round.

    Rows go at random, whatever they contain, to round-0.parquet, round-1.parquet and so on in a new
    folder, with the named columns only. These files contain the original answers: protect them like
    the input. Split only once: a person in two groups reports twice and spends epsilon twice.

    --json prints files: a list of objects with path and rows.

    [bold]Example:[/]

        turnout rounds split search.json people.parquet --column word -o groups/

    Parameters
    ----------
    target
        The folder of the groups.
    """
    under_way: Any = Rounds.read(state)
    answers = files.scan([column], **people.read())
    groups = split_rows(answers, under_way.assign, target, len(under_way._shares))
    if as_json:
        print_json({"files": [{"path": str(path), "rows": rows} for path, rows in groups]})
        return
    rows = [(path.name, f"{count:,} rows") for path, count in groups]
    tell(f"Groups in {target}", rows)


@command
def close(
    state: State,
    tally: Annotated[str, typer.Argument(metavar="TALLY")],
    *,
    participation: options.Participation = None,
    least: Annotated[int, typer.Option(min=1)] = LEAST,
    plans: _Plans,
) -> None:
    """Close the open round with its tally, and write the plan of the next.

    Pass the tally of everyone who was asked in the round, merged from all parts, or the store of
    turnout serve, whose current tally is read. The command refuses a tally of another round, or of
    fewer reports than --least, and leaves the state unchanged. You cannot reopen a closed round.

    A server that runs on the folder of plans finds the next plan by itself. It still accepts late
    messages of the earlier round, which change nothing. If the earlier plan is signed, sign the
    next plan with the same key.

    --json prints protocol, finished, round and plan_file (null if the rounds are over).

    [bold]Examples:[/]

        turnout rounds close search.json round-0.tally

        turnout rounds close search.json reports.db --plans plans/ --sign plans.key

    Parameters
    ----------
    tally
        A file that turnout tally wrote, or a store: its file, or postgresql://user@host/name.
    least
        With fewer reports the round stays open.
    """
    under_way: Any = Rounds.read(state)
    options.refuse_overwriting_inputs(state, [Path(tally)])
    counts = read_tally(tally, question=under_way.current)
    counts = counts.total if isinstance(counts, GroupedTally) else counts
    try:
        under_way.close(counts)
    except InvalidValueError as error:
        raise type(error)(f"{place_of(tally)}: {error}") from error
    if counts.received < least:
        raise InvalidValueError(
            f"{place_of(tally)}: the round has {number_of(counts.received, 'report')}, and is "
            f"closed with {least:,} or more: wait for more, or pass --least {counts.received}"
        )
    plans.write_to(state, under_way, [], {}, participation)


@command
def plan(state: State, *, participation: options.Participation = None, plans: _Plans) -> None:
    """Write the plan of the open round again.

    Use this if a plan file was lost, or if turnout rounds close was stopped before it wrote the
    plan.

    --json prints protocol, finished, round and plan_file.

    [bold]Example:[/]

        turnout rounds plan search.json --plans plans/ --sign plans.key
    """
    under_way: Any = Rounds.read(state)
    _ = under_way.current
    plans.write_to(state, under_way, [], {}, participation)


@command
def show(
    state: State,
    *,
    level: options.Level = 0.95,
    clip: options.Clip = False,
    output: Output,
) -> None:
    """Show the values found, with intervals, and a summary of each round.

    For a search: the values, most frequent first; the frequency from which a value is found with
    probability 90 %; and whether the bound on memory excluded significant prefixes. For two rounds:
    the shares, and the epsilon that both rounds spent.

    --json prints protocol, finished and round. When all rounds are closed, it also prints nodes,
    interval and estimates: a list of objects with label, count, frequency, standard_error, low and
    high. For a search it also has rounds (a list of objects with number, bits, candidates, kept,
    nodes, received, level, cut and more) and, at the end, confirmed, cut, detectable_frequency and
    realized_epsilon. For two rounds it has received and spent (an object with total, first, report,
    silence and randomizer).

    --plot draws the shares of the values found, with their intervals.

    [bold]Example:[/]

        turnout rounds show search.json --interval 0.9
    """
    under_way: Any = Rounds.read(state)
    for option, path in (("--output", output.target), ("--plot", output.plot)):
        if path is not None:
            options.refuse_overwriting_inputs(path, [state])
            if not under_way.finished:
                raise InvalidValueError(
                    f"{state}: round {under_way.number} is still open, so there are no "
                    f"results for {option} yet"
                )
    kind = show_search if isinstance(under_way, Search) else show_two
    made = kind(under_way, level, clip=clip)
    made.deliver(f"Rounds in {state}", **vars(output))


def _plan_rows(
    plan: Plan, file: Path, under_way: Rounds[Any, Any], key: SigningKey | None
) -> list[tuple[str, str]]:
    oracle: Any = plan.oracle
    asked: list[tuple[str, str]] = []
    if isinstance(oracle, SearchRound):
        asked = [("candidates", f"{len(oracle.candidates):,}, and all others")]
    if isinstance(oracle, SecondRound):
        low, high = oracle.rates.min(), oracle.rates.max()
        spent = under_way.protocol._spending(oracle)
        asked = [
            ("rates", f"{percent(low, 3)} to {percent(high, 3)}, by the answer"),
            ("spends", str(spent)),
        ]
    inner = getattr(oracle, "oracle", oracle)
    last = max(len(under_way._shares) - 1, 1)
    return [
        ("round", f"{under_way.number}; the last is {last} at most"),
        *asked,
        ("oracle", inner.name.replace("_", " ")),
        ("participation", words.participation(plan)),
        ("plan file", Whole(f"{file}{'' if key is None else f', signed by {key.public_key}'}")),
    ]
