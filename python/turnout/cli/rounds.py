"""``turnout rounds``: questions that take rounds, each of which is a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import Plan
from turnout._files import atomic_write
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
from turnout.serve.storage.opening import place_of
from turnout.signing import SigningKey

State = Annotated[
    Path,
    typer.Argument(metavar="STATE", help="What turnout rounds hitters or rare wrote."),
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
        The folder of the plans, which turnout serve finds new ones in; default: that of the state.
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
                        f"{path} is signed by {signer}: devices that know this key take no plan "
                        "without it; pass --sign FILE with the same key"
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
            rows = [*rows, ("rounds", f"all {under_way.number} are closed; turnout rounds show")]
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
        The new state; the plan appears beside it.
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
                f"{self.target} is there already: it may hold rounds under way, take another name"
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
        For whole numbers of N bits.
    length
        For texts of at most N bytes or characters.
    alphabet
        The characters that occur; default: any, as UTF-8.
    oracle
        How reports are randomized.
    step
        By how many bits prefixes grow in a round.
    keep
        The most prefixes that are kept: the bound on memory.
    family_wise_error
        The largest probability that a round keeps any prefix that nobody holds.
    confirm
        Whether a last round estimates what was found afresh.
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
    """Begin to look for frequent words or numbers of which there are far too many to count.

    Writes the state of the search, and the plan of its first round beside it or into --plans: of
    search.json the plan search.round-0.json, which turnout randomize --plan takes, and turnout
    serve where it is in the folder that it serves. Each person is asked in one
    round only, which turnout rounds split sees to, or the coin of a device; then the whole search
    spends epsilon once. turnout rounds close takes the tally of a round and writes the next plan,
    turnout rounds show says what was found.

    --json prints protocol, finished, round (the number of the open one), plan_file and
    detectable_frequency (null without --nodes).

    [bold]Examples:[/]

        turnout rounds hitters --epsilon 4 --length 6 -o search.json

        turnout rounds hitters -e 4 --bits 32 --nodes 1000000 -o search.json --sign plans.key

        turnout rounds hitters -e 4 --length 6 -o search.json --plans plans/

    Parameters
    ----------
    nodes
        Say how frequent a value must be among so many people.
    """
    output.refuse_there()
    protocol = HeavyHitters(epsilon, **vars(search))
    record: dict[str, Any] = {"detectable_frequency": None}
    rows = [("values", str(protocol._values)), ("epsilon", number(epsilon))]
    if nodes is not None:
        found = protocol.detectable_frequency(nodes, participation=participation)
        record["detectable_frequency"] = found
        text = "no value is frequent enough" if found > 1 else f"{percent(found, 3)} of the people"
        rows.append(("found from", f"{text}, among {nodes:,} people, whoever the others are"))
    output.write(protocol.rounds(), rows, record, participation)


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """Who reports in which round, and how.

    Attributes
    ----------
    first_rate
        The share of the people that report first.
    second_rate
        The expected share that report in the second round.
    low
        The least probability to report in the second round.
    high
        The largest, of those who hold a rare answer.
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
    """Begin a collection in two rounds, of which the second asks more of who holds a rare answer.

    Writes the state, and the plan of the first round beside it, as turnout rounds hitters does.
    turnout rounds close takes the tally of the first round, decides how likely the holders of each
    answer report in the second, and writes its plan. Who reports then depends on the answer; what
    that says, and what silence says, is counted in epsilon, and the rest is left for the reports.

    It pays at a large epsilon, from 6 on, and few reports; else one round is better.

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
    """Split people into the groups of the rounds: each person is asked in one round.

    Rows go at random, whatever they hold, to round-0.parquet, round-1.parquet and so on in a new
    folder, with the columns that are named and no others. The answers in these files are as they
    were: keep them as safe as the input. Split once: whoever is in two groups reports twice, and
    spends epsilon twice.

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
    plans: _Plans,
) -> None:
    """Close the open round with its tally, and write the plan of the next.

    The tally is that of all who were asked in the round, merged from all parts, or the store of
    turnout serve, which has it at this moment. A tally of another round is refused, and the state
    stays as it was.

    A server that runs on the folder of the plans takes the next one up by itself. Messages of the
    round before that come in later are taken, and change nothing. If the plan of the round before
    is signed, the next one must be signed by the same key.

    --json prints protocol, finished, round and plan_file (null if the rounds are over).

    [bold]Examples:[/]

        turnout rounds close search.json round-0.tally

        turnout rounds close search.json reports.db --plans plans/ --sign plans.key

    Parameters
    ----------
    tally
        A file that turnout tally wrote, or a store: its file, or postgresql://user@host/name.
    """
    under_way: Any = Rounds.read(state)
    options.refuse_overwriting_inputs(state, [Path(tally)])
    counts = read_tally(tally, question=under_way.current)
    try:
        under_way.close(counts.total if isinstance(counts, GroupedTally) else counts)
    except InvalidValueError as error:
        raise type(error)(f"{place_of(tally)}: {error}") from error
    plans.write_to(state, under_way, [], {}, participation)


@command
def plan(state: State, *, participation: options.Participation = None, plans: _Plans) -> None:
    """Write the plan of the open round again.

    For a plan file that was lost, and where turnout rounds close was ended before it wrote one.

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
    """Show what was found, with intervals, and what happened in each round.

    For a search: the values, the most frequent first, from which frequency on a value was found
    with a probability of 90 %, and whether the bound on memory left prefixes out that stood out.
    Of two rounds: the shares, and what both rounds spent.

    --json prints protocol, finished and round, and at the end nodes, interval and estimates: a list
    of objects with label, count, frequency, standard_error, low and high. Of a search it has rounds
    too (a list of objects with number, bits, candidates, kept, nodes, received, level, cut and
    more), and at the end confirmed, cut, detectable_frequency and realized_epsilon; of two rounds
    received and spent (an object with total, first, report, silence and randomizer).

    --plot draws the shares of what was found, with their intervals.

    [bold]Example:[/]

        turnout rounds show search.json --interval 0.9
    """
    under_way: Any = Rounds.read(state)
    for option, path in (("--output", output.target), ("--plot", output.plot)):
        if path is not None:
            options.refuse_overwriting_inputs(path, [state])
            if not under_way.finished:
                raise InvalidValueError(
                    f"{state}: round {under_way.number} is open, and nothing is found yet for "
                    f"{option}"
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
