"""Reports and tallies on the cluster are those of the plain path, row by row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnknownLabelError,
)
from turnout.frequency.groups import GroupedTally
from turnout.pipeline import scan
from turnout.pipeline.sources import open_source

ROWS, BLOCK_ROWS = 5003, 100
DOMAIN = tn.Domain(["never", "once", "often"])
ORACLE = tn.DirectEncoding(1.0, DOMAIN)
HALF = tn.Bernoulli(0.5)


def table() -> Any:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "answer": np.array(DOMAIN.labels)[random.integers(0, 3, ROWS)],
            "who": random.permutation(ROWS),
            "country": np.array(["DE", "FR", "IT"])[random.integers(0, 3, ROWS)],
            "chance": random.uniform(0.1, 1.0, ROWS),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    rows, start = table(), 0
    for number, size in enumerate([1000, 0, 7, 2996, 1000]):
        part = rows.slice(start, size)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=450)
        start += size
    assert start == ROWS
    return folder


def plain(files: Path, **options: Any) -> Any:
    return scan(open_source(str(files), block_rows=BLOCK_ROWS), "answer", **options)


def on_ray(function: Any, data: Any, participation: Any = HALF, **options: Any) -> Any:
    return function(data, "answer", ORACLE, participation, block_rows=BLOCK_ROWS, **options)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "groups": {"group_by": "country"},
    "persons": {"id_column": "who"},
    "personal": {"probability_column": "chance"},
    "all": {"group_by": ["country"], "id_column": "who", "probability_column": "chance"},
}


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("given", ["paths", "data set"])
def test_collect_is_the_plain_path(ray: Any, files: Path, kind: str, given: str) -> None:
    options = OPTIONS[kind]
    who = None if "probability_column" in options else HALF
    expected = tn.pipeline.collect(plain(files, **options), ORACLE, participation=who, seed=3)
    data = str(files) if given == "paths" else ray.data.read_parquet(str(files))
    found = on_ray(tn.ray.collect, data, who, seed=3, **options)
    assert type(found) is type(expected)
    assert found == expected
    assert on_ray(tn.ray.collect, data, who, seed=4, **options) != expected


def rows_of(folder: Path) -> list[Any]:
    return [pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        pytest.param("data set", "all", marks=pytest.mark.everyday),
        *(("data set", kind) for kind in OPTIONS if kind != "all"),
        *(("paths", kind) for kind in OPTIONS),
    ],
)
def test_files_are_those_of_the_plain_path(
    ray: Any, files: Path, tmp_path: Path, kind: str, given: str
) -> None:
    options = OPTIONS[kind]
    who = None if "probability_column" in options else HALF
    one, two = tmp_path / "plain", tmp_path / "ray"
    expected = tn.pipeline.randomize(
        plain(files, **options), ORACLE, one, participation=who, seed=3
    )
    data = str(files) if given == "paths" else ray.data.read_parquet(str(files))
    found = on_ray(tn.ray.randomize, data, who, output=two, seed=3, **options)
    assert [path.name for path in found.paths] == [path.name for path in expected.paths]
    assert len(found) == 7
    assert rows_of(one) == rows_of(two)
    assert found.totals == expected.totals
    groups = options.get("group_by")
    assert found.tally(group_by=groups) == expected.tally(group_by=groups)
    assert tn.ray.tally(found, group_by=groups) == expected.tally(group_by=groups)
    assert tn.ray.tally(two, ORACLE) == expected.tally()


def test_pseudonyms(ray: Any, files: Path, tmp_path: Path) -> None:
    key = tn.pipeline.PseudonymKey.generate()
    options = {"id_column": "who", "pseudonym_key": key}
    tn.pipeline.randomize(plain(files, **options), ORACLE, tmp_path / "plain", seed=3)
    on_ray(tn.ray.randomize, str(files), None, output=tmp_path / "ray", seed=3, **options)
    assert rows_of(tmp_path / "plain") == rows_of(tmp_path / "ray")
    assert rows_of(tmp_path / "ray")[0].column_names == ["report", "pseudonym"]
    counted = tn.ray.tally(tmp_path / "ray", duplicates="refuse")
    assert counted.received == ROWS


def test_repeated_pseudonyms(ray: Any, files: Path, tmp_path: Path) -> None:
    key = tn.pipeline.PseudonymKey.generate()
    options = {"id_column": "who", "pseudonym_key": key, "pseudonym_context": "one"}
    for day in ("monday", "tuesday"):
        on_ray(tn.ray.randomize, str(files), None, output=tmp_path / day, **options)
    with pytest.raises(InvalidValueError, match="5,003 pseudonym"):
        tn.ray.tally(tmp_path, duplicates="refuse")
    first = tn.ray.tally(tmp_path, duplicates="first")
    assert first == tn.pipeline.tally(tmp_path, duplicates="first")
    monday = tn.pipeline.tally(tmp_path / "monday")
    assert first == replace(monday, left_out=tn.LeftOut(duplicates=monday.nodes))


def test_persons_with_several_rows(ray: Any, tmp_path: Path) -> None:
    rows = pa.concat_tables([table(), table().slice(1000, 700)])
    data = ray.data.from_arrow(rows)
    with pytest.raises(InvalidValueError, match=r"700 person\(s\) have more than one row"):
        on_ray(tn.ray.collect, data, id_column="who")
    expected = tn.pipeline.collect(
        scan(
            open_source(rows, block_rows=BLOCK_ROWS), "answer", id_column="who", duplicates="first"
        ),
        ORACLE,
        participation=HALF,
        seed=3,
    )
    options = {"id_column": "who", "duplicates": "first"}
    assert on_ray(tn.ray.collect, data, seed=3, **options) == expected
    reports = on_ray(tn.ray.randomize, data, seed=3, output=tmp_path / "reports", **options)
    assert reports.tally() == expected
    assert reports.totals.left_out.duplicates == 700


def test_steps_before_and_uneven_blocks(ray: Any, files: Path) -> None:
    from ray.data.expressions import col

    made = (
        ray.data.read_parquet(str(files))
        .map_batches(lambda batch: {**batch, "answer": batch["answer"][::-1]}, batch_size=None)
        .filter(expr=col("country") != "FR")
    )
    found = on_ray(tn.ray.collect, made, seed=3)
    # The same steps, block after block in the order in which Ray reads them.
    made.context.execution_options.preserve_order = True
    tables = [part for part in ray.get(made.materialize().to_arrow_refs()) if part.num_rows]
    assert len({len(part) for part in tables}) > 2
    expected = tn.pipeline.collect(
        scan(open_source(pa.concat_tables(tables), block_rows=BLOCK_ROWS), "answer"),
        ORACLE,
        participation=HALF,
        seed=3,
    )
    assert 3000 < found.nodes < 3700
    assert found == expected


def test_nobody(ray: Any, tmp_path: Path) -> None:
    empty = ray.data.from_arrow(table().slice(0, 0))
    assert on_ray(tn.ray.collect, empty).nodes == 0
    grouped = on_ray(tn.ray.collect, empty, group_by="country")
    assert isinstance(grouped, GroupedTally)
    assert len(grouped) == 0
    reports = on_ray(tn.ray.randomize, empty, output=tmp_path / "reports")
    assert len(reports) == 0
    assert tn.ray.tally(reports).nodes == 0


@pytest.mark.parametrize("given", ["paths", "data set"])
def test_bad_answers_are_the_plain_errors(ray: Any, tmp_path: Path, given: str) -> None:
    answers = table()["answer"].to_pylist()
    answers[4321] = "perhaps"
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"answer": answers}), path)
    data = str(path) if given == "paths" else ray.data.read_parquet(str(path))
    name = "bad.parquet" if given == "paths" else "the Ray data set"
    with pytest.raises(
        UnknownLabelError, match=rf"{name}.*labels of the domain \(row 4,322\)"
    ) as caught:
        on_ray(tn.ray.collect, data)
    assert type(caught.value) is UnknownLabelError
    with pytest.raises(UnknownLabelError, match=r"row 4,322"):
        on_ray(tn.ray.randomize, data, output=tmp_path / "reports")
    for part in rows_of(tmp_path / "reports"):
        assert part.num_rows
    answers[4321] = None
    pq.write_table(pa.table({"answer": answers}), path)
    with pytest.raises(InvalidValueError, match=r"1 of 100 answers are missing \(row 4,322\)"):
        on_ray(tn.ray.collect, str(path))
    assert on_ray(tn.ray.collect, str(path), missing="drop").nodes == ROWS - 1


def test_arguments(ray: Any, files: Path, tmp_path: Path) -> None:
    data = ray.data.read_parquet(str(files))
    with pytest.raises(InvalidValueError, match="'nothing'"):
        tn.ray.collect(data, "nothing", ORACLE)
    with pytest.raises(InvalidTypeError, match="oracle must be an oracle"):
        tn.ray.collect(data, "answer", 1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="workers must be"):
        tn.ray.collect(data, "answer", ORACLE, workers=0)
    with pytest.raises(TypeError, match="unknown"):
        tn.ray.collect(data, "answer", ORACLE, unknown=1)
    with pytest.raises(InvalidValueError, match="probability_column"):
        tn.ray.collect(data, "answer", ORACLE, tn.Personalized([0.5]))
    with pytest.raises(FileNotFoundError):
        tn.ray.collect(str(tmp_path / "none.parquet"), "answer", ORACLE)
    with pytest.raises(FileNotFoundError):
        tn.ray.tally(tmp_path / "none.parquet")


def test_tally_of_files_of_other_plans(ray: Any, tmp_path: Path) -> None:
    from turnout.collecting.report_files import write_reports

    for number, epsilon in enumerate([1.0, 2.0]):
        reports = tn.DirectEncoding(epsilon, DOMAIN).randomize(["once"] * 10)
        write_reports(reports, tmp_path / f"{number}.parquet")
    with pytest.raises(PlanMismatchError, match=r"0\.parquet and .*1\.parquet"):
        tn.ray.tally(tmp_path)
    with pytest.raises(PlanMismatchError):
        tn.ray.tally(tmp_path / "0.parquet", tn.DirectEncoding(2.0, DOMAIN))
    with pytest.raises(InvalidValueError, match="are in the files"):
        tn.ray.tally(tmp_path / "0.parquet", nodes=10)


def test_tally_of_files_whose_plans_differ_in_serial_number_and_end(
    ray: Any, tmp_path: Path
) -> None:
    from turnout.collecting.report_files.writing import ReportWriter

    for serial in range(3):
        plan = tn.Plan(ORACLE, tn.Everyone(), serial=serial)
        with ReportWriter(tmp_path / f"{serial}.parquet", plan) as writer:
            writer.add(ORACLE.randomize([ORACLE.domain.labels[0]] * 10).codes)
            writer.close(10)
    assert tn.ray.tally(tmp_path) == tn.pipeline.tally(tmp_path)


@pytest.mark.parametrize("oracle", [ORACLE, tn.OptimizedUnaryEncoding(1.0, DOMAIN)])
def test_tally_of_a_data_set_of_reports(ray: Any, tmp_path: Path, oracle: Any) -> None:
    from turnout.collecting.report_files import write_reports

    for number in range(4):
        reports = oracle.randomize(["once", "never"] * 300, participation=HALF)
        write_reports(reports, tmp_path / f"{number}.parquet")
    expected = tn.pipeline.tally(tmp_path)
    data = ray.data.read_parquet(str(tmp_path))
    assert tn.ray.tally(data, oracle, HALF, nodes=2400) == expected
    with pytest.raises(InvalidValueError, match="nodes must be given"):
        tn.ray.tally(data, oracle, HALF)
    with pytest.raises(InvalidTypeError, match="oracle must be given"):
        tn.ray.tally(data)
    with pytest.raises(InvalidValueError, match="files of reports"):
        tn.ray.tally(data, oracle, group_by="country")
    with pytest.raises(InvalidValueError, match="no column 'report'"):
        tn.ray.tally(ray.data.from_arrow(pa.table({"a": [1]})), oracle)
    with pytest.raises(InvalidValueError, match=r"column 'report'|report"):
        tn.ray.tally(ray.data.from_arrow(pa.table({"report": [7, 1]})), oracle)


@pytest.mark.parametrize(
    "mechanism", [tn.mean.Piecewise(1.0, bounds=(0, 1)), tn.SquareWave(1.0, (0, 1))], ids=repr
)
def test_numbers_are_randomized_tallied_and_grouped_as_on_one_machine(
    ray: Any, files: Path, tmp_path: Path, mechanism: Any
) -> None:
    options: dict[str, Any] = {"block_rows": BLOCK_ROWS, "seed": 3, "group_by": "country"}
    source = open_source(str(files), block_rows=BLOCK_ROWS)
    answers = scan(source, "chance", group_by="country")
    expected = tn.pipeline.collect(answers, mechanism, participation=HALF, seed=3)
    assert tn.ray.collect(str(files), "chance", mechanism, HALF, **options) == expected
    made = tn.ray.randomize(
        str(files), "chance", mechanism, HALF, output=tmp_path / "reports", **options
    )
    assert tn.ray.tally(made, mechanism, group_by="country") == expected
