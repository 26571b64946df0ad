"""``turnout randomize``: one column of a file in, a file of reports out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from turnout import Bernoulli, DirectEncoding, Domain, Everyone, Reports
from turnout._extras import require
from turnout.cli.columns import Column, Value, label_text, parse_label, read_column
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
from turnout.errors import InvalidValueError, UnknownLabelError
from turnout.report_files import file_format, write_reports

__all__ = ["randomize"]

_SHOWN = 5


@refusing
def randomize(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="CSV (also .csv.gz), Parquet or Arrow IPC file with one row a person.",
        ),
    ],
    *,
    column: Annotated[
        str, typer.Option("--column", "-c", help="Column with the answers; no other is read.")
    ],
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
    labels: Annotated[
        str | None,
        typer.Option("--labels", metavar="A,B,C", help="The possible answers, comma-separated."),
    ] = None,
    labels_file: Annotated[
        Path | None,
        typer.Option("--labels-file", help="The possible answers, one a line (UTF-8)."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            metavar="LABEL|drop",
            help="Count missing answers as this label, or drop those people.",
        ),
    ] = None,
    missing_value: Annotated[
        list[str] | None,
        typer.Option(
            "--missing-value",
            metavar="TEXT",
            help="A text that means missing, beside empty fields, nulls and NaN; repeatable.",
        ),
    ] = None,
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

    [bold]Example:[/]

        turnout randomize adult.csv --column occupation --epsilon 1 --participation 0.3
            --missing-value "?" --missing drop -o reports.parquet
    """
    _check_usage(target, labels, labels_file)
    refuse_overwriting_inputs(target, [source])
    with messages().status(f"reading {source.name}"):
        answers = read_column(source, column, missing_values=missing_value or ())
    answers, dropped = _settle_missing(answers, missing)
    answers, domain = _settle_domain(answers, _read_labels(labels, labels_file), missing)
    oracle = DirectEncoding(epsilon=epsilon, domain=domain)
    who = Everyone() if participation == 1 else Bernoulli(participation)
    with messages().status("randomizing"):
        reports = oracle.randomize(_as_arrow(answers), participation=who, seed=seed)
        write_reports(reports, target)
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    output().print(properties(f"Reports in {target}", _summary(reports, target, dropped)))


def _check_usage(target: Path, labels: str | None, labels_file: Path | None) -> None:
    if labels is not None and labels_file is not None:
        raise typer.BadParameter("give --labels or --labels-file, not both")
    try:
        file_format(target)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error


def _read_labels(labels: str | None, labels_file: Path | None) -> list[str] | None:
    if labels is not None:
        return [label.strip() for label in labels.split(",")]
    if labels_file is None:
        return None
    try:
        lines = labels_file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{labels_file}: not UTF-8 text: {error}") from error
    return [line for line in lines if line.strip()]


def _settle_missing(answers: Column, missing: str | None) -> tuple[Column, int]:
    """Refuse or drop missing answers; those that become a label wait for the domain."""
    rows = answers.missing_rows()
    if not rows.size or (missing is not None and missing != "drop"):
        return answers, 0
    if missing == "drop":
        return replace(answers, indices=answers.indices[answers.indices >= 0]), rows.size
    raise InvalidValueError(
        f"column {answers.name!r}: {rows.size:,} of {answers.indices.size:,} answers are missing "
        f"({_rows(rows)}); say with --missing what they are: a label, or drop"
    )


def _rows(rows: Any) -> str:
    """Name the first rows; the first row of data is row 1."""
    shown = ", ".join(str(int(row) + 1) for row in rows[:_SHOWN])
    more = ", ..." if len(rows) > _SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def _settle_domain(
    answers: Column, labels: Sequence[str] | None, missing: str | None
) -> tuple[Column, Domain]:
    """Domain from the labels given or from the data, and the answers in its terms."""
    wanted = missing if missing != "drop" and answers.missing_rows().size else None
    texts = [*(labels or ()), *(() if wanted is None else (wanted,))]
    if any(parse_label(text, answers.kind) is None for text in texts):
        # One Arrow column has one type: integers beside "unknown" all become text.
        order = _sorted(answers.values)
        answers = answers.as_text()
        found: Sequence[Value] = [label_text(value) for value in order]
    else:
        found = _sorted(answers.values)
    if labels is None:
        domain_labels = list(found)
        note(
            f"the {len(domain_labels)} labels of the domain are taken from the data and treated "
            "as public; state them with --labels or --labels-file"
        )
    else:
        domain_labels = [_parsed(text, answers) for text in labels]
    if wanted is not None:
        answers = _fill_missing(answers, _parsed(wanted, answers))
        if labels is None and _parsed(wanted, answers) not in domain_labels:
            domain_labels.append(_parsed(wanted, answers))
    domain = Domain(domain_labels)
    _refuse_unknown(answers, domain)
    return answers, domain


def _sorted(values: Sequence[Any]) -> list[Any]:
    return sorted(values)


def _parsed(text: str, answers: Column) -> Value:
    value = parse_label(text, answers.kind)
    assert value is not None  # as_text was called when a label did not parse
    return value


def _fill_missing(answers: Column, label: Value) -> Column:
    values = answers.values if label in answers.values else (*answers.values, label)
    code = np.int32(values.index(label))
    indices = np.where(answers.indices < 0, code, answers.indices)
    return replace(answers, values=values, indices=indices)


def _refuse_unknown(answers: Column, domain: Domain) -> None:
    known = frozenset(domain.labels)
    unknown = [code for code, value in enumerate(answers.values) if value not in known]
    if not unknown:
        return
    rows = np.flatnonzero(np.isin(answers.indices, unknown))
    first = ", ".join(repr(answers.values[code]) for code in unknown[:_SHOWN])
    more = ", ..." if len(unknown) > _SHOWN else ""
    raise UnknownLabelError(
        f"column {answers.name!r}: {rows.size:,} answers are not among the {domain.size} labels: "
        f"{first}{more} ({_rows(rows)})"
    )


def _as_arrow(answers: Column) -> Any:
    pa = require("pyarrow", "cli")
    return pa.DictionaryArray.from_arrays(pa.array(answers.indices), pa.array(answers.values))


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
