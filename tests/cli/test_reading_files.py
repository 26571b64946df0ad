"""Files as people have them, from file to result: what is odd is said, and nobody is lost."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.job import Job

Run = Callable[..., Any]

PEOPLE = 100_000
#: Never shown: what somebody wrote.
SECRET = "hugo7"


def lines(separator: str = ",") -> list[str]:
    """One row a person: a third say no."""
    return [f"{i}{separator}{'yes' if i % 3 else 'no'}\n" for i in range(PEOPLE)]


def write(path: Path, rows: list[str], header: str = "id,answer\n", **options: Any) -> Path:
    path.write_text(header + "".join(rows), **options)
    return path


def said(result: Any) -> str:
    return " ".join(result.stderr.split())


# Of three ways of each command; epsilon is so large that shares are nearly those of the file.
OPTIONS = ("-c", "answer", "--labels", "yes,no", "-e", 8)


@pytest.fixture(name="stray")
def stray_file(tmp_path: Path) -> Path:
    """A file of which all but 101 people are in one field, if nobody looks."""
    rows = lines()
    rows[101] = f'101,"{SECRET}\n'
    return write(tmp_path / "bad.csv", rows)


STRAY = "row 102 (line 103): the quote that opens field 2 is never closed"


@pytest.mark.parametrize(
    "command",
    [
        ("survey", *OPTIONS),
        ("survey", *OPTIONS, "--trust", "aggregators"),
        ("survey", "-c", "id", "-e", 8, "--mean", "0:100000"),
        ("randomize", *OPTIONS, "-o", "OUT.parquet"),
        ("randomize", *OPTIONS, "-o", "OUT"),
        ("aggregate", *OPTIONS[:4], "-m", "recommend", "-e", 1, "--delta", 1e-5),
        ("sample", "--columns", "id", "-e", 1, "-m", "density", "-o", "OUT.csv"),
    ],
)
def test_one_stray_quote_loses_nobody_in_silence(
    stray: Path, tmp_path: Path, turnout: Run, command: tuple[Any, ...]
) -> None:
    named = [str(tmp_path / str(each)) if "OUT" in str(each) else each for each in command]
    before = sorted(tmp_path.iterdir())
    result = turnout(named[0], stray, *named[1:])
    assert result.exit_code == 1
    assert STRAY in said(result)
    assert SECRET not in result.stderr + result.stdout
    # Nothing half-written: a folder of a job that was withdrawn is empty.
    left = [path for path in tmp_path.rglob("*") if path not in before and path.is_file()]
    assert left == []


def test_a_folder_with_one_bad_file_is_refused_and_named(
    stray: Path, tmp_path: Path, turnout: Run
) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder / "day-1.csv", lines()[:50])
    stray.rename(folder / "day-2.csv")
    assert f"day-2.csv: {STRAY}" in said(turnout("survey", folder, *OPTIONS))
    answers = tn.pipeline.scan(folder, "answer")
    with pytest.raises(CorruptDataError, match="day-2"):
        tn.pipeline.collect(answers, tn.DirectEncoding(1.0, tn.Domain(["yes", "no"])))
    with pytest.raises(CorruptDataError, match="day-2"):
        tn.pipeline.randomize(
            answers, tn.DirectEncoding(1.0, tn.Domain(["yes", "no"])), tmp_path / "out"
        )
    assert Job.read(tmp_path / "out") is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"101,{SECRET},x\n", "row 102 (line 103): has 3 fields where the header has 2"),
        (f"{SECRET}\n", "row 102 (line 103): has 1 field where the header has 2"),
        (f'101,"{SECRET}"x\n', "row 102 (line 103): there is text after the quote that closes"),
        (f"101,{SECRET}\0\n", "row 102 (line 103): there is a zero byte in field 2"),
        (f"101,{SECRET}\r", "row 102 (line 103): some rows end with a carriage return alone"),
        (f"101,{SECRET}\udcff\n", "line 103 holds text that is not UTF-8"),
        ("101," + 9 * 2**20 * "x" + "\n", "row 102 (line 103): is longer than 4 MiB"),
        ('101,"' + 5 * 2**20 * "x\n", "the quote that opens field 2 is not closed within 4 MiB"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_and_not_what_stands_there(
    tmp_path: Path, turnout: Run, row: str, message: str
) -> None:
    rows = lines()
    rows[101] = row
    path = write(tmp_path / "a.csv", rows, errors="surrogateescape", newline="")
    result = turnout("survey", path, *OPTIONS)
    assert result.exit_code == 1
    assert message in said(result)
    assert SECRET not in said(result)
    with pytest.raises(CorruptDataError) as caught:
        tn.survey(path, "answer", epsilon=1.0, labels=["yes", "no"])
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_line_ends_in_fields_and_empty_lines_are_what_they_are(
    tmp_path: Path, turnout: Run
) -> None:
    rows = [
        f'"a\n""{i}"", b",{"yes" if i % 4 else "no"}\r\n' + "\r\n" * (i % 3) for i in range(999)
    ]
    path = write(tmp_path / "a.csv", rows, newline="")
    found = json.loads(turnout("survey", path, *OPTIONS, "--json").stdout)
    assert (found["nodes"], found["files"]) == (999, [{"path": str(path), "rows": 999}])
    no = next(each for each in found["estimates"] if each["label"] == "no")
    # Its standard error is 0.0006.
    assert no["frequency"] == pytest.approx(250 / 999, abs=0.01)


def test_how_many_rows_each_file_had_is_said(tmp_path: Path, turnout: Run) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    for day, rows in (("1", 3000), ("2", 700), ("3", 0)):
        write(folder / f"day-{day}.csv", lines()[:rows])
    expected = {
        str(folder / f"day-{day}.csv"): rows
        for day, rows in zip("123", (3000, 700, 0), strict=True)
    }
    shown = turnout("survey", folder, *OPTIONS).stdout
    assert "3 files have 3,700 rows: " in shown
    assert f"{folder / 'day-2.csv'} 700" in shown
    for more in ((), ("-c", "id", "--bounds", "id=0:4000"), ("--trust", "aggregators")):
        labels = ("--labels", "answer=yes,no") if more[:1] == ("-c",) else ("--labels", "yes,no")
        options = ("survey", folder, "-c", "answer", *more, *labels, "-e", 8, "--json")
        found = json.loads(turnout(*options).stdout)
        assert {each["path"]: each["rows"] for each in found["files"]} == expected
    for out in ("reports.parquet", "reports"):
        shown = turnout("randomize", folder, *OPTIONS, "-o", tmp_path / out).stdout
        assert "3 files have 3,700 rows" in shown
        assert f"{folder / 'day-1.csv'} 3,000" in shown
    for out in ("again.parquet", "again", "reports"):
        # The last is complete already: its state says what it read.
        more = ("--resume",) if out == "reports" else ()
        shown = turnout("randomize", folder, *OPTIONS, "-o", tmp_path / out, "--json", *more)
        found = json.loads(shown.stdout)
        assert {each["path"]: each["rows"] for each in found["files"]} == expected
        assert (found["output"], found["nodes"]) == (str(tmp_path / out), 3700)
        assert found["reports"] == 3700
        assert found["left_out"]["unanswered"] == 0
        assert tn.Plan.from_dict(found["plan"]).oracle.epsilon == 8
    job = Job.read(tmp_path / "reports")
    assert job is not None
    assert job.file_rows == expected
    state = json.loads((tmp_path / "reports" / "_turnout" / "job.json").read_bytes())
    assert state["file_rows"] == expected
    again = turnout("randomize", folder, *OPTIONS, "-o", tmp_path / "reports", "--resume")
    assert "3 files have 3,700 rows" in " ".join(again.stdout.split())


def test_no_path_is_broken(tmp_path: Path, turnout: Run) -> None:
    folder = tmp_path / ("of a very long name " * 5)
    folder.mkdir()
    people = write(folder / "people.csv", lines()[:300])
    more = write(folder / "more people.csv", lines()[:300])
    reports, tally = folder / "the reports.parquet", folder / "the tally.tally"
    page, pictures = folder / "the page.html", folder / "the pictures"

    def shows(paths: list[Path], *command: Any) -> None:
        shown = turnout(*command)
        assert shown.exit_code == 0, shown.stderr
        assert [path for path in paths if str(path) not in shown.stdout] == []

    shows([people, more, tally], "survey", people, more, *OPTIONS, "-o", tally)
    shows([people, more, reports], "randomize", people, more, *OPTIONS, "-o", reports)
    tally.unlink()
    shows([tally], "tally", reports, "-o", tally)
    shows([page, pictures], "report", tally, "-o", page, "--pictures", pictures)


# Separators and encodings ----------------------------------------------------------------------


def share_of_no(result: Any) -> float:
    estimates = json.loads(result.stdout)["estimates"]
    return float(next(each["frequency"] for each in estimates if each["label"] in ("no", "né")))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_separator_that_is_plain_is_found_out(
    tmp_path: Path, turnout: Run, separator: str, quoted: bool
) -> None:
    rows = lines(separator)
    header = f"id{separator}answer\n"
    if quoted:
        rows = ['"' + row.strip().replace(separator, f'"{separator}"') + '"\n' for row in rows]
        header = f'"id, of a person"{separator}"answer"\n'
    path = write(tmp_path / "a.csv", rows, header)
    found = turnout("survey", path, *OPTIONS, "--json")
    assert share_of_no(found) == pytest.approx(1 / 3, abs=0.01)


def test_a_separator_that_is_not_plain_is_stated(tmp_path: Path, turnout: Run) -> None:
    # A comma divides the header and the first row too.
    path = write(tmp_path / "a.csv", ["1,5;yes\n", "2,5;no\n"] * 500, "wage, gross;answer\n")
    refused = said(turnout("survey", path, *OPTIONS))
    assert "no column 'answer'" in refused
    assert "--separator says what stands between fields, such as ';'" in refused
    found = turnout("survey", path, *OPTIONS, "--separator", ";", "--json")
    assert share_of_no(found) == pytest.approx(1 / 2, abs=0.05)
    with pytest.raises(
        InvalidValueError, match=r"separator \(--separator\), of survey and turnout"
    ):
        tn.survey(path, "answer", epsilon=8.0)
    result = tn.survey(path, "answer", epsilon=8.0, labels=["yes", "no"], separator=";")
    assert result.tally.nodes == 1000
    # One column, whose name has a semicolon, stays one.
    path = write(tmp_path / "b.csv", ["yes\n", "no\n"] * 500, "well; what do you say?\n")
    result = tn.survey(path, "well; what do you say?", epsilon=8.0, labels=["yes", "no"])
    assert result.tally.nodes == 1000


@pytest.mark.parametrize(
    ("separator", "reason"),
    [(";;", "one ASCII character"), ('"', "not a quote"), ("\n", "not a line end"), ("ü", "ASCII")],
)
def test_separators_that_cannot_be(
    tmp_path: Path, turnout: Run, separator: str, reason: str
) -> None:
    path = write(tmp_path / "a.csv", ["1,yes\n"])
    result = said(turnout("survey", path, *OPTIONS, "--separator", separator))
    assert "--separator must be one ASCII character" in result
    assert reason in result


def test_an_encoding_is_stated_unless_a_mark_says_it(tmp_path: Path, turnout: Run) -> None:
    rows = [row.replace("no", "né") for row in lines()]
    options = ("-c", "réponse", "--labels", "yes,né", "-e", 8)
    header = "id,réponse\n"
    cp1252 = write(tmp_path / "a.csv", rows, header, encoding="cp1252")
    refused = said(turnout("survey", cp1252, *options))
    assert "the header is not UTF-8; --encoding says how it is written, such as cp1252" in refused
    found = turnout("survey", cp1252, *options, "--encoding", "cp1252", "--json")
    assert share_of_no(found) == pytest.approx(1 / 3, abs=0.01)
    for encoding in ("utf-16", "utf-8-sig", "utf-32"):
        path = write(tmp_path / f"{encoding}.csv", rows, header, encoding=encoding)
        found = turnout("survey", path, *options, "--json")
        assert share_of_no(found) == pytest.approx(1 / 3, abs=0.01)
    bare = write(tmp_path / "bare.csv", rows, header, encoding="utf-16-le")
    refused = said(turnout("survey", bare, *options))
    assert "the header (line 1): there is a zero byte in field 1" in refused
    assert "--encoding says how it is written" in refused
    found = turnout("survey", bare, *options, "--encoding", "utf-16-le", "--json")
    assert share_of_no(found) == pytest.approx(1 / 3, abs=0.01)
    # What no byte of the encoding stands for.
    rows[7] = f"{SECRET},\x81\n"
    path = write(tmp_path / "b.csv", rows, header, encoding="latin-1")
    refused = said(turnout("survey", path, *options, "--encoding", "cp1252"))
    assert "b.csv: is not text in the encoding 'cp1252'" in refused
    assert "--encoding must be one that Python knows" in said(
        turnout("survey", path, *options, "--encoding", "hex")
    )


@pytest.mark.parametrize(
    "command",
    [
        ("randomize", *OPTIONS, "-o", "OUT.parquet"),
        ("randomize", *OPTIONS, "-o", "OUT"),
        ("aggregate", *OPTIONS[:4], "-m", "recommend", "-e", 1, "--delta", 1e-5),
        ("sample", "--columns", "answer", "-e", 1, "-m", "minimax", "-o", "OUT.csv"),
    ],
)
def test_other_commands_take_them_too(
    tmp_path: Path, turnout: Run, command: tuple[Any, ...]
) -> None:
    path = write(
        tmp_path / "a.csv", ["1,5;yes;ü\n", "2,5;no;ü\n"] * 50, "a,b;answer;c\n", encoding="cp1252"
    )
    named = [str(tmp_path / str(each)) if "OUT" in str(each) else each for each in command]
    assert turnout(named[0], path, *named[1:]).exit_code == 1
    result = turnout(named[0], path, *named[1:], "--separator", ";", "--encoding", "cp1252")
    assert result.exit_code == 0, result.stderr


def test_what_is_stated_is_part_of_a_job(tmp_path: Path, turnout: Run) -> None:
    path = write(tmp_path / "a.csv", ["1;yes\n", "2;no\n"] * 50, "id;answer\n")
    out = tmp_path / "out"
    assert turnout("randomize", path, *OPTIONS, "-o", out, "--separator", ";").exit_code == 0
    assert "was begun with other files" in said(
        turnout("randomize", path, *OPTIONS, "-o", out, "--resume", "--encoding", "cp1252")
    )


def test_they_are_of_text_alone(tmp_path: Path) -> None:
    path, table = tmp_path / "a.parquet", pa.table({"answer": ["yes", "no"]})
    pq.write_table(table, path)
    for data in (path, table):
        with pytest.raises(InvalidValueError, match="separator applies to CSV files"):
            tn.pipeline.scan(data, "answer", separator=";")


def test_decimals_on_the_command_line(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    column = pa.array(map(Decimal, [1, 2, 2, 3] * 100), pa.decimal128(38, 0))
    pq.write_table(pa.table({"answer": column}), path)
    for labels in ("1,2,3", "1.0,2.0,3.0"):
        shown = turnout("survey", path, "-c", "answer", "--labels", labels, "-e", 9, "--json")
        found = {each["label"]: each["frequency"] for each in json.loads(shown.stdout)["estimates"]}
        assert found[2] == pytest.approx(1 / 2, abs=0.05)
