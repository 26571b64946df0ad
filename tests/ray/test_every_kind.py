"""Every kind of question is randomized and counted on a cluster as on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import turnout as tn
from turnout.errors import InvalidTypeError
from turnout.pipeline import collect, scan
from turnout.pipeline.sources import open_source

ROWS = 50


def test_every_kind_runs_on_a_cluster(ray: Any, kinds: Any, tmp_path: Path) -> None:
    found = {}
    for name, oracle in kinds.KINDS.items():
        table = kinds.table_of(oracle)
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        names = table.column_names
        column = names if len(names) > 1 else names[0]
        asked: dict[str, Any] = {"participation": tn.Bernoulli(0.5), "seed": 4}
        try:
            made = tn.ray.randomize(
                str(path), column, oracle, **asked, block_rows=ROWS, output=tmp_path / name
            )
        except InvalidTypeError as error:
            found[name, "Ray"] = str(error)
            continue
        expected = collect(scan(open_source(str(path), block_rows=ROWS), column), oracle, **asked)
        assert tn.ray.tally(made) == expected, name
        on_cluster = tn.ray.collect(str(path), column, oracle, **asked, block_rows=ROWS)
        assert on_cluster == expected, name
        found[name, "Ray"] = "works"
    kinds.compare(found)
