"""``turnout sample-reference``: rows of people in, a reference for private records out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import samplers
from turnout._files import atomic_write
from turnout._progress import doing
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.running import note_seed
from turnout.cli.sample.command import check_epsilon
from turnout.cli.sample.mixed import read_table
from turnout.cli.sample.wanted import COLLECTED, TABLE, Rows, Way
from turnout.cli.tables import print_json, tell
from turnout.reporting.words import number
from turnout.samplers.tables.collected_file import text_of


@dataclass(frozen=True, kw_only=True)
class _Output:
    """What is written.

    Attributes
    ----------
    target
        The file of the reference, which ends in .json.
    overwrite
        Replace an existing file.
    """

    target: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT.json", callback=options.ending_in(COLLECTED)),
    ]
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False
    as_json: options.AsJson = False

    def check(self, source: Path) -> None:
        """Refuse to lose the input, or what people have already reported."""
        options.refuse_overwriting_inputs(self.target, [source])
        if not self.overwrite:
            options.refuse_drawing_again(self.target, "reference")


@command
def sample_reference(
    source: Annotated[Path, typer.Argument(metavar="IN")],
    *,
    rows: Rows,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=check_epsilon)],
    pairs: Annotated[bool, typer.Option("--pairs")] = False,
    written: _Output,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1)] = None,
) -> None:
    r"""Collect a reference for private records, under local privacy.

    turnout sample draws records around a public distribution. If no public table is like the
    people, let people supply the distribution: each one reports one column of one row, randomized
    with all of epsilon. The file holds estimated shares only, and may be public. Pass it to
    turnout sample --reference, with the same columns. Each column needs --bounds or --labels, which
    must not be computed from the data.

    A person who reports here and also gives a record spends both epsilons: turnout sample says the
    sum. If the two files have different people, each person spends one of them.

    --json prints people (how many reported), epsilon, columns, pairs (true or false), guarantee and
    output.

    [bold]Example:[/]

        turnout sample-reference visits.csv --columns age,sex,hours --epsilon 0.5 \
            --rows-are user --bounds age=17:90,hours=0.0:99.0 --labels sex=f,m -o around.json
        turnout sample visits.csv --columns age,sex,hours --epsilon 1.5 --rows-are user \
            --bounds age=17:90,hours=0.0:99.0 --labels sex=f,m --reference around.json

    Parameters
    ----------
    source
        CSV (also .csv.gz), Parquet or Arrow IPC file with rows of people.
    epsilon
        Privacy of a person's report.
    pairs
        Ask each person for two columns, to learn which values go together. Needs at least three
        columns, and more people.
    seed
        For tests only: anybody who knows the seed can undo the protection.
    """
    wanted = Way(method=TABLE).of(rows)
    few = len(wanted.columns) < 3
    options.refuse_if((pairs and few, "--pairs", "needs at least three columns"))
    written.check(source)
    records = read_table(source, wanted)
    with doing("collecting"):
        found = samplers.collect_reference(
            epsilon, records.given, records.data, records.users, pairs=pairs, seed=seed
        )
    note_seed(seed, "undo the protection")
    with atomic_write(written.target) as temporary:
        temporary.write_text(text_of(found, records.parts), encoding="ascii")
    _show(found, source, written, records)


def _show(found: samplers.CollectedReference, source: Path, written: _Output, records: Any) -> None:
    """Say what was collected."""
    guarantee = (
        f"every person's report has epsilon {number(found.epsilon)}; whoever also gives a record "
        "spends the epsilon of that record too"
    )
    if written.as_json:
        print_json(
            {
                "people": found.users,
                "epsilon": found.epsilon,
                "columns": list(records.columns),
                "pairs": bool(found.pairs),
                "guarantee": guarantee,
                "output": str(written.target),
            }
        )
        return
    summary = [("people", f"{found.users:,}")]
    if records.left_out:
        summary.append(("left out", f"{records.left_out.total:,} rows with something missing"))
    asked = "two columns of one row" if found.pairs else "one column of one row"
    summary += [
        ("columns", records.described),
        ("each reports", asked),
        ("guarantee", guarantee),
        ("file", str(written.target)),
    ]
    tell(f"A reference from {source}", summary)
