"""``turnout sample-report``: real and drawn records in, a page about both out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from turnout import samplers
from turnout._progress import doing
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.sample.command import check_epsilon, table_sampler
from turnout.cli.sample.mixed import TableRecords, read_table
from turnout.cli.sample.wanted import TABLE, Rows, Wanted, Way
from turnout.cli.tables import print_json, printable, table, tell
from turnout.errors import InvalidValueError
from turnout.pipeline.records import id_name
from turnout.pipeline.sources import open_source
from turnout.reporting import report
from turnout.reporting.words import percent
from turnout.samplers.population.draws import grouped


@dataclass(frozen=True, kw_only=True)
class _Law:
    """How the records were drawn, which is public: what was given to ``turnout sample``.

    Attributes
    ----------
    epsilon
        Privacy of a person's record; with --rows-are an attacker is then tried.
    reference
        The public rows that records were drawn around, or the collected reference.
    known_records
        About how many rows a person has, if turnout sample was told so.
    """

    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", callback=check_epsilon)] = None
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    known_records: Annotated[int | None, typer.Option("--records", metavar="N", min=1)] = None

    def __post_init__(self) -> None:
        """Refuse what an attacker alone needs where there is none."""
        alone = self.epsilon is None
        options.refuse_if(
            (alone and self.reference is not None, "--reference", "needs --epsilon"),
            (alone and self.known_records is not None, "--records", "needs --epsilon"),
        )


@command
def sample_report(
    source: Annotated[Path, typer.Argument(metavar="REAL")],
    drawn: Annotated[Path, typer.Argument(metavar="DRAWN")],
    *,
    rows: Rows,
    law: _Law,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT.html", callback=options.ending_in(".html", ".htm")
        ),
    ] = None,
    title: str | None = None,
    as_json: options.AsJson = False,
) -> None:
    r"""Compare drawn records with the real ones, if you hold these.

    The report shows the distance of columns and of pairs of columns, and which real values occur.
    It shows the distance from drawn records to the nearest real one, and how well a model that is
    trained on drawn records does on real ones. With --epsilon and --rows-are, it also shows how
    often an attacker finds out whose record was drawn, next to the bound of epsilon. The report is
    about the real records and is not private: keep it as safe as these.

    [bold]Example:[/]

        turnout sample-report visits.csv records.csv --columns age,sex,hours --epsilon 2 \
            --rows-are user --bounds age=17:90,hours=0.0:99.0 --labels sex=f,m -o quality.html

    Parameters
    ----------
    source
        The real rows: CSV (also .csv.gz), Parquet or Arrow IPC file.
    drawn
        The records that turnout sample drew from them.
    target
        The page, a file ending in .html.
    title
        The heading of the page.
    """
    way = Way(method=TABLE, reference=law.reference, known_records=law.known_records)
    wanted = way.of(rows)
    if target is not None:
        options.refuse_overwriting_inputs(target, [source, drawn])
    real = read_table(source, wanted)
    found = _compared(real, drawn, wanted, law)
    if target is not None:
        with doing("writing the page"):
            report(found, target, title=title)
    if as_json:
        print_json(_object(found, target))
        return
    _show(found, source, drawn, target)


def _compared(real: TableRecords, drawn: Path, wanted: Wanted, law: _Law) -> samplers.TableQuality:
    """Compare the records, with an attacker where all is known that that takes."""
    names = open_source(drawn).schema.names
    # The files of a job have a name of their own for whose record it is.
    own = (wanted.user_column, None if wanted.user_column is None else id_name(wanted.columns))
    whose = next((name for name in own if name in names), None)
    given = read_table(drawn, replace(wanted, user_column=whose), like=real)
    if law.epsilon is None or whose is None:
        with doing("comparing"):
            return samplers.quality(real.data, given.data, real.given)
    users, places = grouped(given.users, len(given.users))
    if len(users) < len(given.users):
        raise InvalidValueError(
            f"{drawn}: there must be one record for each person of {whose!r}, got "
            f"{len(given.users):,} records of {len(users):,} persons"
        )
    records = given.data.take(np.concatenate(places))
    sampler = table_sampler(law.epsilon, wanted, real)
    population = samplers.PopulationDraws(users, records, sampler)
    with doing("comparing, and trying an attacker"):
        return samplers.quality(real.data, population, users=real.users)


def _object(found: samplers.TableQuality, target: Path | None) -> dict[str, Any]:
    return {
        "distances": found.to_records(),
        "shares": {
            name: [
                {"value": value, "real": real, "drawn": drawn}
                for value, (real, drawn) in shares.items()
            ]
            for name, shares in found.shares.items()
        },
        "same_cells": {
            "drawn": float((found.nearest == 0.0).mean()),
            "real": float((found.nearest_of_real == 0.0).mean()),
        },
        "models": found.models,
        "attack": found.attack,
        "output": None if target is None else str(target),
    }


def _show(found: samplers.TableQuality, source: Path, drawn: Path, target: Path | None) -> None:
    rows = [("records", f"{len(found.nearest):,} drawn ones")]
    if found.attack is not None:
        right, error, bound = (
            percent(found.attack[name], 1) for name in ("right", "standard_error", "bound")
        )
        rows.append(
            (
                "attacker",
                f"names whose record it is, of two people, in {right} (standard error {error}); "
                f"no attacker exceeds {bound}",
            )
        )
    else:
        rows.append(("attacker", "not tried: that takes --epsilon, --rows-are, and ids in DRAWN"))
    rows.append(("protects", "nobody: these numbers are functions of the real records"))
    distances = table(
        ("columns", "distance", "by chance", "covered"),
        [
            (
                printable(row["columns"]),
                *(f"{row[name]:.3f}" for name in ("total_variation", "by_chance")),
                percent(row["coverage"], 1),
            )
            for row in found.to_records()
        ],
        right=range(1, 4),
    )
    shown = [distances]
    if found.models:
        columns = [
            (printable(name), *(percent(scores[of], 1) for of in ("drawn", "real", "constant")))
            for name, scores in found.models.items()
        ]
        head = ("model of", "trained on drawn", "trained on real", "always the same")
        shown.append(table(head, columns, right=range(1, 4)))
    tell(f"{drawn} beside {source}", rows, *shown, page=target)
