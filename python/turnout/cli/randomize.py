"""``turnout randomize``: one column of files in, files of reports out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import Bounds, Plan, _arguments
from turnout.cli import options
from turnout.cli.answers import (
    check_labels,
    files_of,
    in_domain,
    oracle_names,
    scanned,
    settled,
    stated_labels,
    tell_of_labels,
)
from turnout.cli.commands import command
from turnout.cli.numbers import (
    Distribution,
    Mean,
    mechanism_name,
    mechanism_of,
    numbers_of,
    option_of,
)
from turnout.cli.running import note
from turnout.cli.tables import Whole, tell
from turnout.collecting.report_files import ReportFile, file_format
from turnout.errors import InvalidValueError
from turnout.frequency.choice import registered
from turnout.frequency.joint import JointTable
from turnout.participation import taking_part_in
from turnout.pipeline import Answers, Job
from turnout.pipeline.processing import Totals, plan_of
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


_PROMISE = (
    "Whatever a person answered, no report is more than {} times as likely as under another answer."
)
_RATE = (
    "Who sees which people report learns that they took part; the participation rate adds no "
    "protection beyond epsilon."
)
_SILENCE = "Nor is it to send none: who reports depends on the answer, and epsilon counts that too."


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


@command
def randomize(
    context: typer.Context,
    sources: options.Sources,
    *,
    column: Annotated[str | None, typer.Option("--column", "-c", metavar="COLUMN")] = None,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="OUT")],
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", callback=options.check_positive)
    ] = None,
    participation: options.Participation = None,
    oracle_name: Annotated[str | None, typer.Option("--oracle", metavar="NAME")] = None,
    joint: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    mean: Mean = None,
    distribution: Distribution = None,
    labels: options.LabelsByColumn = None,
    labels_file: options.LabelsFile = None,
    plan_file: Annotated[Path | None, typer.Option("--plan", metavar="FILE")] = None,
    public_key: options.PublicKey = None,
    missing: options.Missing = None,
    missing_value: options.MissingValues = None,
    trim: options.Trim = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    id_column: options.IdColumn = None,
    duplicates: options.Duplicates = "refuse",
    pseudonym_key: options.PseudonymKeyFile = None,
    group_by: options.GroupBy = None,
    probability_column: options.ProbabilityColumn = None,
    resume: Annotated[bool, typer.Option("--resume")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    seed: options.Seed = None,
) -> None:
    r"""Turn answers into reports that are safe to hand over.

    Each person reports with the probability given, and a report is randomized so that no answer
    makes it more than e^epsilon times as likely as another. A report file carries the plan
    (epsilon, labels or bounds, participation) and a checksum over every byte. Input of any size is
    read block by block.

    State the possible answers with --labels or --labels-file. Without them the distinct values of
    the column become the labels; they then stand in the report file for all to read, so this is
    right only when the list of answers is public anyway.

    --oracle names the randomizer, with hyphens or underscores. The default, auto, compares all of
    them and says which it takes: direct-encoding for few answers or a large epsilon.

    --joint COLUMN puts the answers of several columns into one report, for a joint table of them
    and the shares of one answer among those who gave another. --labels COLUMN=A,B,C states the
    labels of one, --missing COLUMN=LABEL what is missing in it.

    --mean LOW:HIGH takes a column of numbers, for their mean; --oracle is then duchi, hybrid,
    piecewise or auto, the one of the smallest worst-case variance. A number outside of the bounds
    is refused. --distribution LOW:HIGH[:BINS] takes such a column for the distribution: its
    quantiles and the share of each bin. --plan takes a plan of any kind that draws every report
    afresh.

    If OUT is a folder, the reports are written in parts, each of which appears whole or not at all.
    A run that was killed is taken up by the same command with --resume: nobody is randomized twice.
    Until the job is complete its folder holds the secret of its noise: keep it as safe as the
    answers.

    A report file that is there is not replaced without --overwrite: whoever has the old reports
    and gets the new ones has two of each person, and twice epsilon is spent.

    One person should have one report: --id-column refuses second rows of a person, or leaves them
    out (--duplicates first). --group-by writes columns beside the reports as they are: these are
    not protected.

    [bold]Examples:[/]

        turnout randomize adult.csv --column occupation --epsilon 1 \
            --participation 0.3 --missing-value "?" --missing drop -o reports.parquet

        turnout randomize answers/ --column answer --plan plan.json --id-column user \
            --group-by country --group-by day -o reports/ --resume

        turnout randomize people.csv --column sex --joint vote --epsilon 1 -o joint.parquet

        turnout randomize people.parquet --column hours --mean 0:24 --epsilon 1 -o hours.parquet

    Parameters
    ----------
    column
        Column with the answers; no other is read. By default the columns that have the names of
        the questions, under a --plan of several.
    target
        A report file (.parquet or .arrow), or a folder for a job that can be resumed.
    epsilon
        Privacy of one report; less is more.
    participation
        Probability that a person reports; default 1.
    oracle_name
        How answers are randomized. The default, auto, takes the one of smallest error.
    joint
        A further column, whose answer goes into the same report, for a joint table or under a
        --plan of several questions; repeatable.
    plan_file
        A plan file, in place of the options above.
    resume
        Go on with the job in the folder, if there is one.
    overwrite
        Replace a report file that is there already.
    workers
        Files worked on at once; default: processors.
    """
    numbers = numbers_of(mean, distribution)
    check_labels(labels, labels_file)
    _check_options(context, numbers)
    if numbers is not None:
        name = mechanism_name(oracle_name, numbers)
    else:
        (name,) = oracle_names([oracle_name or "auto"], ("auto", *registered()))
    single = _is_file(target)
    plan = None if plan_file is None else Plan.read(plan_file, public_key=public_key)
    columns = [column, *(joint or ())] if column is not None else _questions(plan)
    options.refuse_if(
        (single and resume, "--resume", "needs a folder as --output"),
        (overwrite and not single, "--overwrite", "needs a file as --output"),
        (
            column is None and (joint is not None or not columns),
            "--column",
            "must name the column of answers",
        ),
        (len(set(columns)) < len(columns), "--joint", "names a column twice"),
    )
    # A folder or a pattern stands for its files: none of them may be lost to the output.
    options.refuse_overwriting_inputs(target, [*map(Path, sources), *files_of(sources)])
    if single and not overwrite:
        options.refuse_drawing_again(target, "reports")
    answers = scanned(
        sources,
        columns,
        missing=missing,
        missing_values=missing_value,
        trim=trim,
        separator=separator,
        encoding=encoding,
        id_column=id_column,
        duplicates=duplicates,
        pseudonym_key=pseudonym_key,
        group_by=group_by,
        probability_column=probability_column,
    )
    if plan_file is not None and plan is not None:
        _check_plan(plan, plan_file, answers)
        answers = in_domain(answers, plan.domain)
    else:
        options.refuse_if(
            (
                probability_column is not None and participation is not None,
                "--participation",
                "is each person's own with --probability-column",
            )
        )
        stated = stated_labels(labels, labels_file, columns)
        answers, oracle = _settled(
            answers, epsilon or 0.0, name, numbers or stated, chosen=oracle_name is None
        )
        rate = taking_part_in(participation) if probability_column is None else None
        plan = plan_of(answers, oracle, rate)
    _warn_of_size(plan, answers)
    who = None if probability_column is not None else plan.participation
    if single:
        totals = randomize_to_file(
            answers, plan.oracle, target, participation=who, seed=seed, progress=True
        )
        size = target.stat().st_size
        written = [target]
        files = answers.source.file_rows
    else:
        there = Job.read(target)
        if resume and there is not None and there.complete:
            note(f"the job in {target} is complete already; nothing was randomized")
        reports = run_job(
            answers, plan.oracle, target,
            participation=who, seed=seed, resume=resume, workers=workers, progress=True,
        )  # fmt: skip
        totals = reports.totals or Totals()
        size = sum(path.stat().st_size for path in reports.paths)
        written = list(reports.paths)
        files = reports.jobs[0].file_rows
    if answers.group_by:
        _warn_of_groups(written)
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    chosen = oracle_name is None and plan_file is None and distribution is None
    how = ", of least error" if chosen else ""
    read = [("read", Whole(rows_of_files(files)))] if files else []
    tell(f"Reports in {target}", [*read, *_summary(plan, totals, size, answers, how)])


def _check_options(context: typer.Context, numbers: Bounds | None) -> None:
    """Refuse what does not go together, of the options that say what is asked."""
    given = context.params
    if given["plan_file"] is not None:
        options.refuse_given(context, _IN_PLAN, "stands in the plan already")
    else:
        options.refuse_if(
            (given["epsilon"] is None, "--epsilon", "give --epsilon, or --plan"),
            (given["public_key"] is not None, "--public-key", "needs --plan"),
        )
    if numbers is not None:
        option = option_of(numbers)
        options.refuse_if((bool(given["joint"]), option, "is for one question: --joint"))
        options.refuse_given(context, ("labels", "labels_file"), f"are not for numbers: {option}")


def _is_file(target: Path) -> bool:
    """Tell whether the output is one file; refuse what is neither a report file nor a folder."""
    if target.is_dir() or not target.suffix:
        return False
    try:
        file_format(target)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error
    return True


def _questions(plan: Plan | None) -> list[str]:
    """Name the questions of a plan that has several."""
    return [] if plan is None else list(getattr(plan.domain, "columns", ()))


def _settled(
    answers: Answers,
    epsilon: float,
    name: str,
    asked: Bounds | Mapping[str, Sequence[str]],
    *,
    chosen: bool,
) -> tuple[Answers, Any]:
    """Settle what is asked, by numbers or labels that are stated, and make what randomizes it.

    A note says why an oracle was taken, unless ``auto`` was ``chosen`` by nobody.
    """
    if isinstance(asked, Bounds):
        oracle, reason = mechanism_of(name, epsilon, asked)
        if reason:
            note(f"--oracle auto: {reason}")
        return in_domain(answers, oracle.domain), oracle
    answers, domains, read = settled(answers, asked)
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


def _check_plan(plan: Plan, file: Path, answers: Answers) -> None:
    """Refuse a plan by which no column can be randomized."""
    plan._check_current()
    if not plan.oracle.fresh:
        raise InvalidValueError(
            f"{file}: asks for permanent answers, of which each person's device keeps a state that "
            "no column holds: let each device make its message with "
            "oracle.client(...).message(plan, answer), and count them with turnout tally "
            "day.jsonl --plan FILE"
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
            f"{file}: the participation is {plan.participation!r}; "
            "--probability-column is needed for personal probabilities, and only then"
        )


def _warn_of_size(plan: Plan, answers: Answers) -> None:
    """Say so if the reports take gigabytes: only some oracles suit many answers."""
    oracle = plan.oracle
    reports = (answers.rows or 0) * (plan.participation.uniform_rate or 1.0)
    size = reports * oracle.report_bits / 8
    if size >= _LARGE:
        note(
            f"{reports:,.0f} reports of {oracle.report_bits:,} bits are {file_size(round(size))}; "
            "the reports of hadamard-response, projective-geometry-response, "
            "optimized-local-hashing and hadamard-count-mean-sketch are small for any number of "
            "answers"
        )


def _warn_of_groups(written: list[Path]) -> None:
    """Say so if the columns of the groups look like identifiers: they are not protected."""
    for path in written[:1]:
        with ReportFile(path) as file:
            header = file.header
        groups = 0 if header.groups is None else len(header.groups.keys)
        if groups >= _MANY_GROUPS and 2 * groups > header.nodes:
            note(
                f"--group-by makes {groups:,} groups of {header.nodes:,} people in {path}, and "
                "writes them as they are: is one of the columns an identifier? Then hand over "
                "nothing of it"
            )


def _summary(
    plan: Plan, totals: Totals, size: int, answers: Answers, how: str
) -> list[tuple[str, str]]:
    oracle = plan.oracle
    ratio = rounded_up(oracle.realized_ratio, 4)
    rows = [("nodes", f"{totals.nodes:,}")]
    if oracle._asked_of:
        rows.append(("asked", oracle._asked_of))
    rows += words.left_out(totals.left_out, always=answers._drops)
    return [
        *rows,
        ("reports", f"{totals.reports:,}"),
        ("participation", words.participation(plan)),
        ("oracle", oracle.name.replace("_", " ") + how),
        telling(plan).asked(oracle.domain),
        ("epsilon", f"{number(oracle.epsilon)} asked, {number(oracle.realized_epsilon)} realised"),
        ("file", f"{file_size(size)}, {oracle.report_bits:g} bits a report"),
        ("guarantee", f"{_PROMISE.format(ratio)} {_SILENCE if oracle.silent else _RATE}"),
    ]
