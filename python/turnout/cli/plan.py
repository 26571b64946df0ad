"""``turnout plan``: which oracle, and how many people must report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from turnout import Plan
from turnout._progress import doing
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.numbers import Numbers, record_of_plan, rows_of_plan
from turnout.cli.question import Choices, oracle_names
from turnout.cli.tables import print_json, table, tell, write_picture
from turnout.frequency.choice import registered
from turnout.participation import taking_part_in
from turnout.planning import PlanCheck, PlanProposal
from turnout.planning.candidates import written_cost
from turnout.planning.laws import WORDS
from turnout.planning.planner import plan as make_plan
from turnout.reporting.words import file_size, number, percent
from turnout.signing import SigningKey

Target = Literal["rmse", "max_error", "total_variation"]

#: The options that --mean and --distribution can have beside them.
_OF_A_MEAN = {
    "mean",
    "distribution",
    "epsilon",
    "participation",
    "oracle",
    "target_file",
    "sign",
    "serial",
    "expires",
    "as_json",
}

#: What the object of --json has of a candidate, of a simulation and of what is proposed.
_OF_A_CANDIDATE = {
    **{name: name for name in ("epsilon", "report_bits", "cost", "error", "remark")},
    "oracle": "name",
    "participation": "rate",
}
_OF_A_CHECK = ("measured", "standard_error", "runs")
_OF_A_PROPOSAL = (
    *("epsilon", "nodes", "target", "value", "budget", "confidence", "error", "errors"),
    *("expected_reports", "expected_bits", "cost"),
)


@dataclass(frozen=True, kw_only=True)
class _Goal:
    """What is to be reached, and what it may cost.

    Attributes
    ----------
    target
        The error that --value limits.
    value
        The largest error: find the cheapest plan.
    budget
        The largest cost: find the plan of smallest error.
    cost_per_report
        The cost of a report.
    cost_per_bit
        The cost of each bit of a report.
    confidence
        With --target max_error: the probability that it holds.
    report_bits
        The size of the largest report, in bits.
    """

    target: Annotated[Target, typer.Option("--target", "-t")] = "rmse"
    value: Annotated[float | None, typer.Option("--value", "-v")] = None
    budget: Annotated[float | None, typer.Option("--budget", "-b")] = None
    cost_per_report: Annotated[float, typer.Option(min=0.0)] = 1.0
    cost_per_bit: Annotated[float, typer.Option(min=0.0)] = 0.0
    confidence: Annotated[float, typer.Option(callback=options.check_level)] = 0.95
    report_bits: Annotated[int | None, typer.Option(min=1)] = None


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """Who is asked, and how reports may be randomized.

    Attributes
    ----------
    epsilon
        Privacy of one report; LOW:HIGH is a range, A,B,C a choice.
    nodes
        The number of people.
    participation
        Probability that a person reports, if you have decided on it.
    oracle
        Choose among these oracles only; repeatable.
    """

    epsilon: Annotated[str, typer.Option("--epsilon", "-e", metavar="NUMBER")]
    nodes: Annotated[int | None, typer.Option("--nodes", "-n", min=1)] = None
    participation: options.Participation = None
    oracle: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None

    def propose(self, choices: Choices, goal: _Goal) -> PlanProposal:
        """Find the oracle and the share of the people.

        Raises
        ------
        typer.BadParameter
            If an option cannot be read, or one is missing.
        TurnoutError
            If nothing reaches the goal.
        """
        if self.nodes is None:
            raise typer.BadParameter("is missing: give the number of people", param_hint="--nodes")
        oracles = None if self.oracle is None else oracle_names(self.oracle, registered())
        domain = choices.domain()
        with doing("planning"):
            return make_plan(
                epsilon=_epsilon(self.epsilon),
                domain_size=domain,
                nodes=self.nodes,
                participation=self.participation,
                oracles=oracles,
                **vars(goal),
            )


@dataclass(frozen=True, kw_only=True)
class _Check:
    """Whether the plan is tried in simulations.

    Attributes
    ----------
    check
        Simulate this many collections and measure the error.
    seed
        Make --check reproducible.
    """

    check: Annotated[int | None, typer.Option(metavar="RUNS", min=10)] = None
    seed: Annotated[int | None, typer.Option(min=0)] = None

    def measure(self, proposal: PlanProposal) -> PlanCheck | None:
        """Measure the error of what is proposed, if that is asked for."""
        if self.check is None:
            return None
        with doing(f"simulating {self.check:,} collections"):
            return proposal.simulate(self.check, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class _PlanOutput:
    """The plan file that is written.

    Attributes
    ----------
    target_file
        Write the plan file that devices follow.
    serial
        The serial number of the plan; devices refuse a plan with a smaller number than they have
        seen.
    expires
        When the plan expires, such as 2030-12-31T00:00:00Z.
    """

    target_file: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None
    sign: options.Sign = None
    serial: Annotated[int | None, typer.Option(min=0)] = None
    expires: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None

    def __post_init__(self) -> None:
        """Refuse what is of no plan file."""
        options.refuse_if(
            (
                self.target_file is None and self.sign is not None,
                "--sign",
                "needs --output: there is no plan file to sign",
            ),
            (
                self.target_file is None and (self.serial, self.expires) != (None, None),
                "--serial, --expires",
                "needs --output, which writes the plan file",
            ),
        )
        if self.target_file is not None and self.sign is not None:
            options.refuse_overwriting_inputs(self.target_file, [self.sign])

    def key(self) -> SigningKey | None:
        """Read the key that signs the plan, if one does.

        Raises
        ------
        TurnoutError
            If the file holds none.
        OSError
            If it cannot be read.
        """
        return None if self.sign is None else SigningKey.read(self.sign)

    def publish(self, plan: Plan, key: SigningKey | None) -> _Published:
        """Write the plan with its number and its end, if there is to be a file.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        plan = replace(plan, serial=self.serial, expires=self.expires)
        if self.target_file is not None:
            plan.write(self.target_file, signing_key=key)
        return _Published(plan, self.target_file, None if key is None else key.public_key)


@dataclass(frozen=True)
class _Published:
    """A plan, the file that it was written to, and the key that signed it; None where not."""

    plan: Plan
    file: Path | None
    public_key: str | None

    @property
    def line(self) -> dict[str, Any]:
        """Where the plan file is, and who signed it, for people."""
        by = "" if self.public_key is None else f", signed by {self.public_key}"
        return {"plan file": None if self.file is None else f"{self.file}{by}"}

    @property
    def record(self) -> dict[str, Any]:
        """The same for programs, beside other results."""
        found = {
            "path": str(self.file),
            "fingerprint": self.plan.fingerprint,
            "public_key": self.public_key,
        }
        return {"plan_file": None if self.file is None else found}


@command
def plan(
    context: typer.Context,
    *,
    setting: _Setting,
    choices: Choices,
    numbers: Numbers,
    goal: _Goal,
    check: _Check,
    output: _PlanOutput,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Plan a collection: choose the oracle and how many people must report.

    With --value, the command finds the cheapest plan whose error is at most that value. With
    --budget, it finds the plan of smallest error within that cost. With both, it finds the smallest
    epsilon of a range that satisfies both. With neither, it finds the smallest error if everyone
    reports. With --participation, which fixes the share of the people that reports, it finds the
    oracle of smallest error that satisfies --value and --budget.

    rmse is the root mean squared error of the estimated frequencies over all answers. max_error
    bounds the error of every answer with probability --confidence. total_variation is the expected
    total variation distance between estimate and truth. The errors assume that all answers are
    equally common.

    --json prints oracle, epsilon, report_bits, participation, nodes, domain_size, target, value,
    budget, confidence; error (the promise), errors (an object with all three), expected_reports,
    expected_bits, cost; candidates, a list of objects with oracle, epsilon, report_bits,
    participation, cost, error and remark (null if it can be chosen); check, null or an object
    with measured, standard_error and runs; and plan_file, null or an object with path, fingerprint
    and public_key (null if it is not signed).

    --output writes the chosen plan: the participation, oracle and answers from which a device makes
    its report. Without --labels or --labels-file, the answers are the codes 0, 1, 2, and so on.
    --serial and --expires become part of the plan: devices refuse an expired plan, and a plan with
    a smaller serial than the last one.

    --mean LOW:HIGH plans a mean instead, with the participation that --participation states. It
    takes the mechanism with the smallest worst-case standard error, unless --oracle names one. Its
    --json has oracle, epsilon, report_bits, participation, bounds, report_standard_error (the worst
    case of one report) and plan_file. --distribution LOW:HIGH[:BINS] plans a distribution; its
    --json has bins and window instead of report_standard_error.

    --plot draws the error against the participation rate, with one line for each oracle.

    [bold]Examples:[/]

        turnout plan --epsilon 1 --domain-size 50 --nodes 1000000 --value .002

        turnout plan -e .5:4 -k 50 -n 1000000 -t max_error -v .01 --budget 200000 --plot plan.png

        turnout plan -e 1 -n 100000 -v .01 --labels never,once,often -o plan.json --sign plans.key

        turnout plan -e 1 -n 50000 --labels no,yes --participation .2 -o plan.json

        turnout plan --mean 0:24 -e 1 --participation .3 -o hours.json
    """
    key = output.key()
    if numbers.bounds is not None:
        others = {*context.params} - _OF_A_MEAN
        reason = f"does not apply with {numbers.option}"
        options.refuse_given(context, others, reason)
        who = taking_part_in(setting.participation)
        made, why = numbers.plan(setting.epsilon, setting.oracle, participation=who)
        published = output.publish(made, key)
        if as_json:
            print_json({**record_of_plan(made), **published.record})
        else:
            tell("Plan", rows_of_plan(made, why), **published.line)
        return
    proposal = setting.propose(choices, goal)
    checked = check.measure(proposal)
    write_picture(plot, lambda: proposal.tradeoff().plot())
    published = output.publish(proposal.collection_plan, key)
    if as_json:
        print_json({**_record(proposal, checked), **published.record})
        return
    tell(
        "Plan",
        _rows(proposal, checked),
        lambda console: _print_table(console, proposal),
        picture=plot,
        **published.line,
    )


def _epsilon(text: str) -> float | tuple[float, float] | list[float]:
    """Read a number, a range or a list."""
    try:
        if ":" in text:
            low, high = (float(part) for part in text.split(":"))
            return low, high
        levels = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a number, a range LOW:HIGH or a list A,B,C", param_hint="--epsilon"
        ) from error
    return levels[0] if len(levels) == 1 else levels


def _rows(proposal: PlanProposal, checked: PlanCheck | None) -> list[tuple[str, str]]:
    oracle = proposal.oracle
    words = WORDS[proposal.target]
    if proposal.target == "max_error":
        words += f", with probability {number(proposal.confidence)}"
    everyone = proposal.rate == 1.0
    rows = [
        ("oracle", f"{oracle.name}, {oracle.report_bits:,} bits a report"),
        ("epsilon", f"{proposal.epsilon:.6g}"),
        ("participation", "everyone" if everyone else f"{percent(proposal.rate)} of the people"),
        (
            "reports",
            f"{proposal.expected_reports:,.0f} of {proposal.nodes:,} people, "
            f"{file_size(math.ceil(proposal.expected_bits / 8))} in all",
        ),
        ("cost", written_cost(proposal.cost)),
        ("promise", f"{proposal.error:.4g}: {words}"),
    ]
    if checked is not None:
        rows.append(
            (
                "measured",
                f"{checked.measured:.4g} ± {checked.standard_error:.2g} in {checked.runs:,} "
                "simulated collections",
            )
        )
    return [*rows, ("why", proposal.explain())]


def _print_table(console: Console, proposal: PlanProposal) -> None:
    """List what was looked at, and below it why an oracle cannot be had."""
    rows = [
        [
            ("→ " if each.oracle is proposal.oracle else "  ") + each.name.replace("_", " "),
            f"{each.epsilon:.4g}",
            f"{each.report_bits:,}",
            f"{each.rate:.3g}",
            written_cost(each.cost),
            f"{each.error:.3g}",
        ]
        for each in proposal._alternatives
        if each.oracle is not None
    ]
    header = ["  oracle", "epsilon", "bits", "rate", "cost", "error"]
    result = table(header, rows, right=(1, 2, 3, 4, 5))
    result.columns[0].no_wrap = True
    result.padding = (0, 0, 0, 1)
    console.print(result)
    for line in _refusals(proposal):
        console.print(line, markup=False, highlight=False, style="dim")


def _refusals(proposal: PlanProposal) -> list[str]:
    """Say which oracles cannot be chosen, one line for each reason; the table has the numbers."""
    names: dict[str, list[str]] = {}
    refused = []
    for each in proposal._alternatives:
        if each.epsilon == proposal.epsilon and each.remark is not None:
            name = each.name.replace("_", " ")
            if each.oracle is None:
                refused.append(f"{name}: {each.remark}")
            else:
                names.setdefault(each.remark, []).append(name)
    return [f"{reason}: {', '.join(those)}" for reason, those in names.items()] + refused


def _record(proposal: PlanProposal, checked: PlanCheck | None) -> dict[str, Any]:
    oracle = proposal.oracle
    candidates = [
        {name: getattr(each, field) for name, field in _OF_A_CANDIDATE.items()}
        for each in proposal._alternatives
    ]
    measured = None
    if checked is not None:
        measured = {name: getattr(checked, name) for name in _OF_A_CHECK}
    return {
        "oracle": oracle.name,
        "report_bits": oracle.report_bits,
        "domain_size": oracle.domain.size,
        "participation": proposal.rate,
        **{name: getattr(proposal, name) for name in _OF_A_PROPOSAL},
        "candidates": candidates,
        "check": measured,
    }
