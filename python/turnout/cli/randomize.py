"""``turnout randomize``: one column of files in, files of reports out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import Plan, _arguments
from turnout.cli import options
from turnout.cli.answers import in_domain, settled, tell_of_labels
from turnout.cli.commands import command
from turnout.cli.input import Input, NamedPeople, People, listed_files
from turnout.cli.numbers import Numbers
from turnout.cli.question import Labels, PlanFile, oracle_names
from turnout.cli.running import note, note_seed
from turnout.cli.tables import Whole, print_json, tell
from turnout.collecting.report_files import ReportFile, file_format
from turnout.errors import InvalidValueError
from turnout.frequency.choice import registered
from turnout.frequency.joint import JointTable
from turnout.participation import Participation, taking_part_in
from turnout.pipeline import Answers
from turnout.pipeline.answers import plan_of
from turnout.pipeline.encoding import Totals
from turnout.pipeline.job import Job
from turnout.pipeline.running import randomize as run_job
from turnout.pipeline.running import randomize_to_file
from turnout.pipeline.sources.files import rows_of_files
from turnout.planning.choice import choose_oracle
from turnout.reporting import words
from turnout.reporting.telling import telling
from turnout.reporting.words import file_size, number, rounded_up

#: From so many bytes of reports on a note says which oracles have smaller ones.
_LARGE = 2**30

#: From so many groups on a note says when there are hardly more people than groups.
_MANY_GROUPS = 100


_PROMISE = "No report is more than {} times as likely under one answer as under another."
_RATE = (
    "Anyone who sees which people report learns that they took part. The "
    "participation rate adds no protection beyond epsilon."
)
_SILENCE = (
    "Nor is sending no report: whether a person reports depends on the "
    "answer, and epsilon includes that."
)


#: How numbers are asked for.
_NUMBERS = "--mean LOW:HIGH asks for their mean, --distribution LOW:HIGH for their distribution"

#: The options that say what a plan says.
_IN_PLAN = (
    "epsilon",
    "participation",
    "oracle_name",
    "mean",
    "distribution",
    "labels",
    "labels_file",
)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """Which columns are answered, and how answers are randomized.

    Attributes
    ----------
    column
        Column of the answers; no other column is read. With a --plan of several questions, the
        default is the columns named like the questions.
    joint
        Another column whose answer goes into the same report, for a joint table or a --plan of
        several questions; repeatable.
    oracle_name
        How answers are randomized. The default, auto, takes the randomizer of smallest error.
    """

    column: Annotated[str | None, typer.Option("--column", "-c", metavar="COLUMN")] = None
    joint: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None
    oracle_name: Annotated[str | None, typer.Option("--oracle", metavar="NAME")] = None

    def columns(self, plan: Plan | None) -> list[str]:
        """Name the columns, which may have the names of a plan's questions.

        Raises
        ------
        typer.BadParameter
            If there are none, or one is named twice.
        """
        known = self.column is not None
        columns = [self.column, *(self.joint or ())] if known else _questions(plan)
        options.refuse_if(
            (
                not known and (self.joint is not None or not columns),
                "--column",
                "is missing: name the column of the answers",
            ),
            (len(set(columns)) < len(columns), "--joint", "names a column twice"),
        )
        return columns

    def oracle(self, numbers: Numbers) -> str:
        """Name what randomizes.

        Raises
        ------
        typer.BadParameter
            If there is none of the name.
        """
        if numbers.bounds is not None:
            return numbers.named(self.oracle_name)
        return oracle_names([self.oracle_name or "auto"], ("auto", *registered()))[0]


@dataclass(frozen=True, kw_only=True)
class _Privacy:
    """How people are protected.

    Attributes
    ----------
    epsilon
        Privacy of one report; smaller is more private.
    participation
        Probability that a person reports; default 1.
    """

    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", callback=options.check_positive)
    ] = None
    participation: options.Participation = None
    seed: options.Seed = None


@dataclass(frozen=True, kw_only=True)
class _Output:
    """Where the reports go.

    Attributes
    ----------
    target
        A report file (.parquet or .arrow), or a folder for a job that can be resumed.
    resume
        Continue the job in the folder, if there is one.
    overwrite
        Replace an existing report file.
    workers
        Files processed at once. Default: the number of processors.
    """

    target: Annotated[Path, typer.Option("--output", "-o", metavar="OUT")]
    resume: Annotated[bool, typer.Option("--resume")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False
    workers: Annotated[int | None, typer.Option(min=1)] = None
    as_json: options.AsJson = False

    def __post_init__(self) -> None:
        """Refuse what is for a file or for a folder alone."""
        options.refuse_if(
            (self.single and self.resume, "--resume", "needs a folder as --output"),
            (self.overwrite and not self.single, "--overwrite", "needs a file as --output"),
        )

    @property
    def single(self) -> bool:
        """Whether it is one file; what is neither a report file nor a folder is refused."""
        if self.target.is_dir() or not self.target.suffix:
            return False
        try:
            file_format(self.target)
        except InvalidValueError as error:
            raise typer.BadParameter(str(error), param_hint="--output") from error
        return True

    def check(self, data: Input) -> None:
        """Refuse to lose an input, or reports that somebody may have.

        Raises
        ------
        InvalidValueError
            If that would happen.
        """
        # A folder or a pattern stands for its files: none of them may be lost to the output.
        options.refuse_overwriting_inputs(self.target, [*map(Path, data.sources), *data.paths])
        if self.single and not self.overwrite:
            options.refuse_drawing_again(self.target, "reports")

    def write(self, answers: Answers, plan: Plan, seed: int | None) -> _Written:
        """Randomize the answers into the file, or into the folder.

        Raises
        ------
        TurnoutError
            If an answer cannot be randomized.
        OSError
            If a file cannot be read or written.
        """
        who = None if answers.probability_column is not None else plan.participation
        if self.single:
            totals = randomize_to_file(
                answers, plan.oracle, self.target, participation=who, seed=seed, progress=True
            )
            return _Written(totals, [self.target], answers.source.file_rows)
        there = Job.read(self.target)
        if self.resume and there is not None and there.complete:
            note(f"the job in {self.target} is already complete; nothing was randomized")
        reports = run_job(
            answers, plan.oracle, self.target,
            participation=who, seed=seed, resume=self.resume, workers=self.workers, progress=True,
        )  # fmt: skip
        totals = reports.totals or Totals()
        return _Written(totals, list(reports.paths), reports.jobs[0].file_rows)


@dataclass(frozen=True)
class _Written:
    """What was written: how many reports, in which files, and how many rows each source had."""

    totals: Totals
    paths: list[Path]
    rows: Mapping[str, int]

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(path.stat().st_size for path in self.paths)

    def json(self, plan: Plan) -> dict[str, Any]:
        """Give the numbers, and the plan, in terms of JSON."""
        return {
            "nodes": self.totals.nodes,
            "reports": self.totals.reports,
            "left_out": self.totals.left_out.to_dict(),
            "plan": plan.to_dict(),
        }


@command
def randomize(
    context: typer.Context,
    *,
    question: _Question,
    numbers: Numbers,
    labels: Labels,
    planned: PlanFile,
    privacy: _Privacy,
    data: Input,
    people: NamedPeople,
    output: _Output,
) -> None:
    r"""Randomize answers into reports that are safe to share.

    Each person reports with the given probability. A report is randomized so that no answer makes
    it more than e^epsilon times as likely as another answer does. A report file contains the plan
    (epsilon, labels or bounds, participation) and a checksum over every byte. Input of any size is
    read block by block.

    State the possible answers with --labels or --labels-file. Without them, the distinct values of
    the column become the labels. The report file then shows them to everyone, so this is right only
    if the list of answers is public anyway.

    --oracle names the randomizer, with hyphens or underscores. The default, auto, compares all of
    them and prints its choice: direct-encoding for few answers or a large epsilon.

    --joint COLUMN puts the answers of several columns into one report. This gives their joint
    table, and the shares of one answer among the people who gave another. --labels COLUMN=A,B,C
    states the labels of a column, and --missing COLUMN=LABEL the label of its missing answers.

    --mean LOW:HIGH reads a column of numbers, for their mean. --oracle is then duchi, hybrid,
    piecewise or auto, which takes the smallest worst-case variance. A number outside the bounds is
    refused. --distribution LOW:HIGH[:BINS] reads a column of numbers for its quantiles and the
    share of each bin. --plan reads a plan of any kind, except one with permanent answers.

    If OUT is a folder, the reports are written in parts, and each part appears whole or not at all.
    After a run was killed, the same command with --resume continues it; nobody is randomized twice.
    Until the job is complete, its folder contains the secret of its noise: protect it like the
    answers.

    An existing report file is replaced only with --overwrite. Anyone who has both the old and the
    new reports has two reports of each person, which spend epsilon twice.

    Each person should have one report: --id-column refuses duplicate rows of a person, or drops
    them (--duplicates first). --group-by writes further columns unchanged beside the reports; these
    columns are not protected.

    --json prints output, files (each with path and rows), nodes (the people counted), reports,
    left_out (rows that do not count, by reason), and plan.

    [bold]Examples:[/]

        turnout randomize adult.csv --column occupation --epsilon 1 \
            --participation 0.3 --missing-value "?" --missing drop -o reports.parquet

        turnout randomize answers/ --column answer --plan plan.json --id-column user \
            --group-by country --group-by day -o reports/ --resume

        turnout randomize people.csv --column sex --joint vote --epsilon 1 -o joint.parquet

        turnout randomize people.parquet --column hours --mean 0:24 --epsilon 1 -o hours.parquet

    Parameters
    ----------
    plan_file
        A plan file, instead of the options above.
    """
    _check_options(context, numbers)
    name = question.oracle(numbers)
    plan = planned.read()
    columns = question.columns(plan)
    output.check(data)
    answers = data.scan(columns, **people.read())
    if plan is not None:
        _check_plan(plan, planned.plan_file, answers)
        answers = in_domain(answers, plan.domain)
    else:
        epsilon, unnamed = privacy.epsilon or 0.0, question.oracle_name is None
        if numbers.bounds is None:
            stated = labels.of(columns)
            answers, oracle = _settled(answers, epsilon, name, stated, chosen=unnamed)
        else:
            oracle, why = numbers.mechanism(name, epsilon)
            answers = in_domain(answers, oracle.domain)
            if why:
                note(f"--oracle auto: {why}")
        plan = plan_of(answers, oracle, _rate(privacy, people))
    _warn_of_size(plan, answers)
    written = output.write(answers, plan, privacy.seed)
    if answers.group_by:
        _warn_of_groups(written.paths)
    note_seed(privacy.seed, "remove the noise")
    chosen = (question.oracle_name, planned.plan_file, numbers.distribution) == (None, None, None)
    how = ", of least error" if chosen else ""
    if output.as_json:
        found = {**listed_files(written.rows), **written.json(plan)}
        print_json({"output": str(output.target), **found})
        return
    read = [("read", Whole(rows_of_files(written.rows)))] if written.rows else []
    rows = [*read, *_summary(plan, written, answers, how)]
    tell(f"Reports in {output.target}", rows)


def _check_options(context: typer.Context, numbers: Numbers) -> None:
    """Refuse what does not go together, of the options that say what is asked."""
    given = context.params
    if given["plan_file"] is not None:
        options.refuse_given(context, _IN_PLAN, "conflicts with --plan, which already states it")
    else:
        options.refuse_if(
            (given["epsilon"] is None, "--epsilon", "is missing: pass --epsilon or --plan")
        )
    if numbers.bounds is not None:
        options.refuse_if(
            (bool(given["joint"]), numbers.option, "applies to one question, not to --joint")
        )
        reason = f"conflicts with {numbers.option}, which asks for numbers"
        options.refuse_given(context, ("labels", "labels_file"), reason)


def _rate(privacy: _Privacy, people: People) -> Participation | None:
    """Say who takes part; None if each person has a probability of their own."""
    own = people.probability_column is not None
    options.refuse_if(
        (
            own and privacy.participation is not None,
            "--participation",
            "conflicts with --probability-column, which gives each person's own",
        )
    )
    return None if own else taking_part_in(privacy.participation)


def _questions(plan: Plan | None) -> list[str]:
    """Name the questions of a plan that has several."""
    return [] if plan is None else list(getattr(plan.domain, "columns", ()))


def _settled(
    answers: Answers,
    epsilon: float,
    name: str,
    stated: Mapping[str, Sequence[str]],
    *,
    chosen: bool,
) -> tuple[Answers, Any]:
    """Settle which labels can be given, by those that are stated, and make what randomizes them.

    A note says why an oracle was taken, unless ``auto`` was ``chosen`` by nobody.
    """
    answers, domains, read = settled(answers, stated)
    tell_of_labels(answers, domains, read, _NUMBERS)
    if answers.joint:
        return answers, JointTable(epsilon, domains, oracle=name)
    domain = domains[answers.column]
    if name != "auto":
        return answers, registered()[name](epsilon, domain)
    choice = choose_oracle(epsilon, domain)
    if not chosen:
        note(f"--oracle auto: {choice.explain()}")
    return answers, choice.oracle


def _check_plan(plan: Plan, file: Path | None, answers: Answers) -> None:
    """Refuse a plan by which no column can be randomized."""
    plan._check_current()
    if not plan.oracle.fresh:
        raise InvalidValueError(
            f"{file}: the plan asks for permanent answers, which need a state on each "
            "person's device. Let each device make its message with "
            "oracle.client(...).message(plan, answer), and count the messages with "
            "turnout tally day.jsonl --plan FILE"
        )
    questions = _questions(plan)
    if questions and questions != list(answers.asked):
        raise InvalidValueError(
            f"{file}: --column and --joint must name the questions of the plan in their order, "
            f"{_arguments.listed(questions)}, got {_arguments.listed(answers.asked)}"
        )
    personal = plan.participation.uniform_rate is None
    if personal != (answers.probability_column is not None):
        raise InvalidValueError(
            f"{file}: the participation is {plan.participation!r}; pass "
            "--probability-column for a plan with personal probabilities, and only "
            "for such a plan"
        )


def _warn_of_size(plan: Plan, answers: Answers) -> None:
    """Say so if the reports take gigabytes: those of some oracles grow with the answers."""
    oracle = plan.oracle
    reports = (answers.rows or 0) * (plan.participation.uniform_rate or 1.0)
    size = reports * oracle.report_bits / 8
    if size >= _LARGE:
        note(
            f"{reports:,.0f} reports of {oracle.report_bits:,} bits are "
            f"{file_size(round(size))}: turnout plan --report-bits 64 finds oracles "
            "with short reports"
        )


def _warn_of_groups(written: list[Path]) -> None:
    """Say so if the columns of the groups look like identifiers: they are not protected."""
    for path in written[:1]:
        with ReportFile(path) as file:
            header = file.header
        groups = 0 if header.groups is None else len(header.groups.keys)
        if groups >= _MANY_GROUPS and 2 * groups > header.nodes:
            note(
                f"--group-by makes {groups:,} groups of {header.nodes:,} people in "
                f"{path}, and writes them as they are: if one of these columns identifies "
                "people, do not share the file"
            )


def _summary(plan: Plan, written: _Written, answers: Answers, how: str) -> list[tuple[str, str]]:
    oracle = plan.oracle
    ratio = rounded_up(oracle.realized_ratio, 4)
    rows = [("nodes", f"{written.totals.nodes:,}")]
    if oracle._asked_of:
        rows.append(("asked", oracle._asked_of))
    rows += words.left_out(written.totals.left_out, always=answers._drops)
    return [
        *rows,
        ("reports", f"{written.totals.reports:,}"),
        ("participation", words.participation(plan)),
        ("oracle", oracle.name.replace("_", " ") + how),
        telling(plan).asked(oracle.domain),
        ("epsilon", f"{number(oracle.epsilon)} asked, {number(oracle.realized_epsilon)} realised"),
        ("file", f"{file_size(written.size)}, {oracle.report_bits:g} bits a report"),
        ("guarantee", f"{_PROMISE.format(ratio)} {_SILENCE if oracle.silent else _RATE}"),
    ]
