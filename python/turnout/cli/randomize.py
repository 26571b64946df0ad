"""``turnout randomize``: one column of a file in, a file of reports out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from turnout import Bernoulli, Domain, Everyone, FrequencyOracle, Reports
from turnout.cli.answers import (
    ColumnName,
    Labels,
    LabelsFile,
    Missing,
    MissingValues,
    Source,
    check_labels,
    read_answers,
)
from turnout.cli.running import (
    check_epsilon,
    check_rate,
    messages,
    note,
    output,
    refuse_overwriting_inputs,
    refusing,
)
from turnout.cli.tables import file_size, number, properties
from turnout.cli.tally import describe_participation
from turnout.errors import InvalidValueError
from turnout.frequency.candidates import registered
from turnout.planning import choose_oracle
from turnout.report_files import file_format, write_reports

__all__ = ["randomize"]

#: From so many bytes of reports on a note says which oracles have smaller ones.
_LARGE = 2**30


@refusing
def randomize(
    source: Source,
    *,
    column: ColumnName,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon", "-e", callback=check_epsilon, help="Privacy of one report; less is more."
        ),
    ],
    target: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="Report file: .parquet or .arrow."),
    ],
    participation: Annotated[
        float,
        typer.Option(
            "--participation", "-p", callback=check_rate, help="Probability that a person reports."
        ),
    ] = 1.0,
    oracle_name: Annotated[
        str,
        typer.Option(
            "--oracle",
            metavar="NAME",
            help="How answers are randomised; auto takes the one of smallest error.",
        ),
    ] = "direct_encoding",
    labels: Labels = None,
    labels_file: LabelsFile = None,
    missing: Missing = None,
    missing_value: MissingValues = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            help="For tests only: whoever knows the seed can undo the noise.",
        ),
    ] = None,
) -> None:
    """Turn answers into reports that are safe to hand over.

    Each person reports with the probability given, and a report is randomised so that no answer
    makes it more than e^epsilon times as likely as another. The report file carries the plan
    (epsilon, labels, participation) and a checksum over every byte.

    State the possible answers with --labels or --labels-file. Without them the distinct values of
    the column become the labels; they then stand in the report file for all to read, so this is
    right only when the list of answers is public anyway.

    --oracle names the randomizer, with hyphens or underscores. The default, direct-encoding, is
    good for few answers and for a large epsilon; auto compares all of them.

    [bold]Example:[/]

        turnout randomize adult.csv --column occupation --epsilon 1 --participation 0.3
            --missing-value "?" --missing drop -o reports.parquet
    """
    _check_usage(target, labels, labels_file)
    name = _checked_name(oracle_name)
    refuse_overwriting_inputs(target, [source])
    answers = read_answers(
        source,
        column,
        labels=labels,
        labels_file=labels_file,
        missing=missing,
        missing_values=missing_value,
    )
    oracle = _oracle(name, epsilon, answers.domain)
    who = Everyone() if participation == 1 else Bernoulli(participation)
    _warn_of_size(oracle, participation * len(answers.values))
    with messages().status("randomizing"):
        reports = oracle.randomize(answers.values, participation=who, seed=seed)
        write_reports(reports, target)
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    output().print(properties(f"Reports in {target}", _summary(reports, target, answers.dropped)))


def _check_usage(target: Path, labels: str | None, labels_file: Path | None) -> None:
    check_labels(labels, labels_file)
    try:
        file_format(target)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error


def _checked_name(name: str) -> str:
    """Accept ``auto`` or the name of an oracle, before anything is read."""
    wanted = name.lower().replace("-", "_")
    known = registered()
    if wanted != "auto" and wanted not in known:
        listed = ", ".join(("auto", *sorted(each.replace("_", "-") for each in known)))
        raise typer.BadParameter(f"{name!r} is none of {listed}", param_hint="--oracle")
    return wanted


def _oracle(name: str, epsilon: float, domain: Domain) -> FrequencyOracle:
    if name != "auto":
        return registered()[name](epsilon, domain)
    choice = choose_oracle(epsilon, domain)
    note(f"--oracle auto: {choice.explain()}")
    return choice.oracle


def _warn_of_size(oracle: FrequencyOracle, reports: float) -> None:
    """Say so if the reports take gigabytes: only some oracles suit many answers."""
    size = reports * oracle.report_bits / 8
    if size >= _LARGE:
        note(
            f"{reports:,.0f} reports of {oracle.report_bits:,} bits are {file_size(round(size))}; "
            "the reports of hadamard-response, projective-geometry-response, "
            "optimized-local-hashing and hadamard-count-mean-sketch are small for any number of "
            "answers"
        )


def _summary(reports: Reports, target: Path, dropped: int) -> list[tuple[str, str]]:
    oracle = reports.oracle
    size = target.stat().st_size
    ratio = np.exp(oracle.realized_epsilon)
    rows = [("nodes", f"{reports.nodes:,}")]
    if dropped:
        rows.append(("dropped", f"{dropped:,} without an answer"))
    return [
        *rows,
        ("reports", f"{len(reports):,}"),
        ("participation", describe_participation(reports.plan)),
        ("oracle", oracle.name.replace("_", " ")),
        ("domain", f"{oracle.domain.size} labels"),
        ("epsilon", f"{number(oracle.epsilon)} asked, {number(oracle.realized_epsilon)} realised"),
        ("file", f"{file_size(size)}, {oracle.report_bits:g} bits a report"),
        (
            "guarantee",
            f"Whatever a person answered, no report is more than {ratio:.4g} times as likely as "
            "under another answer. Who sees which people report learns that they took part; "
            "the participation rate adds no protection beyond epsilon.",
        ),
    ]
