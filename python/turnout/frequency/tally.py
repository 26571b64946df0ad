"""Tallies of frequencies, from reports or from counts of a database.

For many oracles a tally is a group-by over the column of reports. If a report is one of a moderate
number of integers, it counts how often each occurs. If a report is a bit for each answer, it counts
the reports with each bit. If a report is a score for each answer, it sums the scores. If every
report has its own hash function, no group-by works: only the function tells which answers the
report supports. Each oracle says which case it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Array
from turnout.collecting.plan import Plan
from turnout.collecting.tally import CountedTally
from turnout.domain import code_of
from turnout.errors import CodeOutsideDomainError, InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate

#: What a key of counts may be.
_KEYS = ("code", "label")

_LARGEST = {True: (-(2**63), 2**63 - 1), False: (0, 2**64 - 1)}


class Tally(CountedTally):
    """The number of reports that support each answer, and the number of nodes.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The oracle and the participation.
    sums
        The support: the number of reports that support each answer, one uint64 for each code. If
        reports hold scores (:class:`turnout.SummationHistogramEncoding`), their sums.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        Sums of inverse probabilities, if every node has its own.
    design
        Sums of probabilities over all nodes, if every node has its own.
    origin
        The collections that are counted here, so that none counts twice; a new one by default. See
        :mod:`turnout.collecting.origin`.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> monday, tuesday = oracle.collect(["no"] * 60), oracle.collect(["yes"] * 40)
    >>> (monday + tuesday).received
    100
    >>> tn.Tally.from_bytes(monday.to_bytes()) == monday
    True
    """

    told: ClassVar[str] = "shares"

    @classmethod
    def _entries(cls, plan: Plan) -> int:
        return int(plan.oracle.domain.size)

    @classmethod
    def _entry_type(cls, plan: Plan) -> np.dtype[Any]:
        kind: np.dtype[Any] = plan.oracle._support_dtype
        return kind

    def _check_sums(self) -> None:
        self.plan.oracle._check_support(self.sums, self.received)

    @property
    def support(self) -> Array:
        """The number of reports that support each answer, uint64; read-only.

        If reports hold scores, their sums, int64.
        """
        support: Array = self.sums
        return support

    def estimate(self, method: str = "hajek") -> FrequencyEstimate:
        """Estimate the frequencies of the answers.

        Parameters
        ----------
        method
            ``"hajek"`` (default): ratio estimator with a bias of the order of one over the rate, in
            nodes. In practice it has the smallest variance of the estimators that are valid for
            every participation. ``"horvitz_thompson"``: unbiased for every participation (with
            personal probabilities it needs a report). ``"g"``, ``"c_hat"``: unbiased for a common
            rate. ``"T"``: unbiased if participation does not depend on the values. ``"c"``: the
            estimator that ignores participation, biased unless everyone takes part; kept to show
            this bias.

        Returns
        -------
        FrequencyEstimate
            Frequencies and counts with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If the method does not apply to this participation or to an empty tally; the error gives
            the reason.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
        >>> tally = oracle.collect(["no"] * 3000 + ["yes"] * 1000, seed=1)
        >>> tally.estimate().frequencies.round(1)
        array([0.7, 0.3])
        """
        return FrequencyEstimate._from_tally(self, method)


def tally_from_counts(plan: Plan, counts: Any, nodes: int, received: int | None, by: str) -> Any:
    """Build a tally from counts: see :meth:`turnout.FrequencyOracle.tally_from_counts`."""
    oracle = plan.oracle
    if plan.participation.uniform_rate is None:
        # Of personal probabilities, the weights of single reports matter.
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...) for a tally from counts, got "
            f"{plan.participation!r}: with personal probabilities each report has a weight of its "
            "own, which counts leave out"
        )
    _arguments.choice("by", by, _KEYS)
    oracle._refuse_counting()
    by_answer = oracle._counted_by != "number"
    if by == "label" and not by_answer:
        raise InvalidValueError(
            f"by must be 'code' for {type(oracle).__name__}, whose reports are not answers"
        )
    size = oracle.domain.size
    if not by_answer:
        # A report is no answer, but one of so many numbers.
        most = int(np.iinfo(oracle.report_dtype).max) + 1
        size = int(getattr(oracle, "_report_count", most))
    found, said = _pairs(counts, size)
    if by == "label":
        found = [(code_of("counts", oracle.domain, label), count) for label, count in found]
    signed = oracle._counted_by == "scores"
    known = _checked(found, size, signed=signed)
    total = _received(oracle, known, said if received is None else received, said)
    if by_answer:
        support = np.zeros(size, oracle._support_dtype)
        for code, count in known.items():
            support[code] = count
    else:
        support = _supported(oracle, known)
    return oracle.tally_type(plan, support, total, nodes)


def _pairs(counts: Any, size: int) -> tuple[list[tuple[Any, Any]], Any]:
    """Return keys with their counts, and the number of reports from a third column."""
    if hasattr(counts, "columns"):
        return _from_table(counts)
    if hasattr(counts, "items"):
        # A mapping, or a column of pandas, as value_counts() makes it: its index says of what.
        return list(counts.items()), None
    expected = "a mapping, a table with the columns key and count, or a sequence of counts"
    listed = counts.tolist() if isinstance(counts, np.ndarray) else None
    rows = _arguments.items("counts", counts, expected) if listed is None else listed
    if rows and all(isinstance(row, (tuple, list)) and len(row) in (2, 3) for row in rows):
        return _split(rows)
    if len(rows) != size:
        raise InvalidValueError(
            f"counts must have one count for each of the {size} codes, in their order, or name the "
            f"code of each count; got {len(rows)} counts"
        )
    return list(enumerate(rows)), None


def _from_table(table: Any) -> tuple[list[tuple[Any, Any]], Any]:
    pa = require("pyarrow", "cli")
    try:
        if hasattr(table, "reset_index"):
            # A table of pandas: the key of a group-by is its index, which Arrow puts last.
            table = table.reset_index(drop=list(table.index.names) == [None])
        held = table if isinstance(table, pa.Table) else pa.table(table)
    except Exception as error:
        # Anything can go wrong while a foreign table is read.
        raise InvalidTypeError(
            f"counts must be a table that Arrow can read, got a {type(table).__name__}"
        ) from error
    if held.num_columns not in (2, 3):
        raise InvalidValueError(
            "counts must have the columns key, count and perhaps the number of reports, got "
            f"{held.column_names}"
        )
    return _split(list(zip(*(column.to_pylist() for column in held.columns), strict=True)))


def _split(rows: Iterable[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    """Split off the third entry of all rows, the number of reports."""
    kept = [tuple(row) for row in rows]
    totals = {row[2] for row in kept if len(row) == 3}
    if len(totals) > 1:
        raise InvalidValueError(
            "the third column of counts must be the number of reports, the same in every row, got "
            f"{_arguments.listed(sorted(totals, key=str))}"
        )
    return [(row[0], row[1]) for row in kept], next(iter(totals), None)


def _checked(pairs: list[tuple[Any, Any]], size: int, *, signed: bool) -> dict[int, int]:
    """Check codes and counts."""
    known: dict[int, int] = {}
    for key, count in pairs:
        code = _whole(f"the code of counts {_arguments.shown(key)}", key)
        if not 0 <= code < size:
            raise CodeOutsideDomainError(
                f"counts has the code {code}: expected an integer from 0 to {size - 1}"
            )
        if code in known:
            raise InvalidValueError(f"counts has the duplicate code {code}")
        value = _whole(f"counts[{code}]", count)
        least, most = _LARGEST[signed]
        if not least <= value <= most:
            raise InvalidValueError(
                f"counts[{code}] must be a whole number from {least} to {most}, got {value}"
            )
        known[code] = value
    return known


def _whole(argument: str, value: Any) -> int:
    """Convert a whole number; databases return sums as decimals or floating-point numbers."""
    if isinstance(value, (Decimal, float, np.floating)):
        number = value if isinstance(value, Decimal) else float(value)
        if not math.isfinite(number) or number != int(number):
            raise InvalidValueError(f"{argument} must be a whole number, got {value}")
        if isinstance(number, float) and abs(number) > 2.0**53:
            raise InvalidValueError(
                f"{argument} must be exact, got the floating-point number {value} above 2^53"
            )
        return int(number)
    if value is None or isinstance(value, (bool, np.bool_, str, bytes)):
        raise _arguments.mistyped(f"{argument} must be a whole number", value)
    return _arguments.integer(argument, value, least=-(2**200))


def _received(oracle: Any, counts: dict[int, int], received: Any, said: Any) -> int:
    """Return the number of reports, and compare it with the counts."""
    total = sum(counts.values())
    checked = None if received is None else _whole("received", received)
    if said is not None and checked != _whole("the third column of counts", said):
        raise InvalidValueError(
            f"received must be what the third column of counts says, {said}, got {received}"
        )
    several: int | None = oracle._counts_of_a_report
    if several is None:
        if checked is None:
            raise InvalidValueError(
                f"received must be given for {type(oracle).__name__}: its counts do not say how "
                "many reports there are"
            )
        return checked
    if total % several or (checked is not None and checked * several != total):
        each = "" if several == 1 else f"{several} times "
        raise InvalidValueError(
            f"counts must add up to {each}the number of reports"
            f"{'' if checked is None else f' {checked}'}, got {total}"
        )
    return total // several


def _supported(oracle: Any, counts: dict[int, int]) -> Array:
    """Count the support of each answer, from distinct reports with their frequencies.

    A tally is a sum over reports. For each binary digit, the reports whose count has it are tallied
    once.
    """
    reports = np.array(list(counts), oracle.report_dtype)
    oracle.check_reports(reports)
    numbers = np.array(list(counts.values()), np.uint64)
    support = np.zeros(oracle.domain.size, np.uint64)
    for digit in range(max(counts.values(), default=0).bit_length()):
        chosen = (numbers >> np.uint64(digit)) & np.uint64(1) == 1
        support += oracle.count_reports(reports[chosen]).sums << np.uint64(digit)
    return support


def tally_sql(oracle: Any, source: str, column: str) -> str:
    """Write the query: see :meth:`turnout.FrequencyOracle.tally_sql`."""
    _arguments.instance("source", source, str, "the name of a table or of Parquet files")
    _arguments.instance("column", column, str, "the name of the column of reports")
    oracle._refuse_counting()
    named = _identifier(column)
    table = _table(source)
    if oracle._counted_by == "scores":
        raise InvalidValueError(
            f"{type(oracle).__name__} has 32-bit scores in binary, which SQL cannot add up: "
            "unnest them elsewhere, or use oracle.tally(reports)"
        )
    if oracle._counted_by != "bits":
        return f"SELECT {named} AS code, count(*) AS count FROM {table} GROUP BY {named}"
    # The bits of a byte count from the last; DuckDB's from the first.
    place = "(8 * (code // 8) + 7 - code % 8)::INTEGER"
    return (
        f"SELECT code, sum(get_bit(bits, {place})) AS count, count(*) AS received\n"
        f"FROM (SELECT {named}::BIT AS bits FROM {table}) AS reports,\n"
        f"     range({oracle.domain.size}) AS answers(code)\n"
        "GROUP BY code ORDER BY code"
    )


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(source: str) -> str:
    """Write the SQL name of a table, with its schema before a dot, or of files."""
    if source.endswith(".parquet"):
        quoted = source.replace("'", "''")
        return f"read_parquet('{quoted}')"
    return ".".join(map(_identifier, source.split(".")))
