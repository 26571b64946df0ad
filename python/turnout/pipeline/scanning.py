"""The location of answers, and the meaning of the columns beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnout import _arguments
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import AnswersElsewhere, Kind
from turnout.collecting.reports import Reports
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError
from turnout.participation import Participation
from turnout.pipeline.answers import Answers, Duplicates
from turnout.pipeline.columns import group_label
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.running import collect, randomized_in_memory
from turnout.pipeline.sources import open_source


class Scan(Answers, AnswersElsewhere):
    """Answers that oracles accept in place of values, as :func:`scan` returns them."""

    def randomized_by(
        self, oracle: Kind, participation: Participation | float | None, seed: int | None
    ) -> Reports:
        """Randomize block by block and keep the reports: :meth:`Kind.randomize`."""
        return randomized_in_memory(self, oracle, participation, seed)

    def collected_by(
        self, oracle: Kind, participation: Participation | float | None, seed: int | None
    ) -> BaseTally:
        """Collect into one tally, whatever the groups: :meth:`Kind.collect`."""
        tally = collect(self, oracle, participation=participation, seed=seed)
        return tally.total if isinstance(tally, GroupedTally) else tally


def scan(
    data: Any,
    column: str | Sequence[str],
    *,
    missing: Any = None,
    missing_values: Sequence[str] = (),
    trim: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    id_column: str | None = None,
    duplicates: Duplicates = "refuse",
    group_by: str | Sequence[str] | None = None,
    probability_column: str | None = None,
    pseudonym_key: PseudonymKey | None = None,
    pseudonym_context: str | None = None,
    max_groups: int = 100_000,
) -> Answers:
    """Describe where the answers are and what the other columns mean, without reading anything.

    Parameters
    ----------
    data
        One of

        - a path, a folder (searched with the folders in it), a glob such as ``"day-*.parquet"``, or
          a list of these: Parquet, Arrow IPC, CSV or TSV files (``.csv.gz`` too), all of one
          format. Folders named ``country=DE`` are Hive partitions and become columns, of numbers if
          all of their values are. Files come in natural order of their paths (``part-2`` before
          ``part-10``), whatever the order of a list;
        - a table: pyarrow, pandas, polars, or any other that narwhals accepts; nothing is copied if
          Arrow permits it. Columns of pandas whose names are not text are named by their text;
        - a dictionary of columns, or a list of dictionaries, one for each row;
        - a query that runs while it is read: a polars LazyFrame, a DuckDB relation, a
          ``pyarrow.dataset.Dataset``, a Ray data set. Its order must be the same whenever it runs;
        - a stream that is read once: a ``RecordBatchReader``, an iterator of record batches, any
          object with ``__arrow_c_stream__``.
    column
        The column of answers, one row for each person. For a plan of several questions (a
        :class:`turnout.JointTable`, ``PairTables``, ``SplitBudget`` or ``SampledAttribute``) the
        columns, in their order.
    missing
        What a missing answer is (a null, NaN, and ``turnout.pipeline.MISSING_TEXTS``, such as
        ``""``, ``NA`` or ``None``, unless they are labels of the domain): None refuses it,
        ``"drop"`` leaves the row out, anything else is the label that is reported. Being left out
        is not protected: the number of rows left out, in each file and group, is written and shown.
        If not having answered is private, pass a label. It may be a dictionary by column, whose key
        None is for all other columns; a row is left out if any of its answers is dropped. A row
        without a group is refused, or left out if ``missing`` is ``"drop"`` for any column. A label
        is for answers, unless the dictionary states it for the column of groups (``{"region":
        "unknown"}``).
    missing_values
        Additional texts that stand for a missing answer or group, such as ``"?"`` or ``"-9"``.
    trim
        Whether to remove white space around the texts of answers and groups: then ``"a "`` is
        ``"a"``.
    separator
        The text between two fields of CSV files. The default is a comma, and a tab in ``.tsv``. It
        is a semicolon, tab or ``|`` if only that divides the header and the first row of a file
        into the same number of fields.
    encoding
        The encoding of CSV files, such as ``"cp1252"``. The default is UTF-8, or the encoding that
        a mark at the beginning of a file states (UTF-16).
    id_column
        The column that identifies the person of a row: text, integers or bytes, compared byte by
        byte.
    duplicates
        The rule for several rows of a person: ``"refuse"``, or ``"first"``: only the first row
        counts, even if its answer is missing. None does not look for them, for identifiers that
        serve only for pseudonyms.
    group_by
        Columns that are reported with the answers **unchanged**, for a tally of each group.
    probability_column
        The column with the probability of each person to take part, in [2^-30, 1]. It is public.
    pseudonym_key
        With ``id_column``: the key of pseudonyms. Reports carry a pseudonym, which shows that two
        reports come from one person, but not from whom. :class:`turnout.pipeline.PseudonymKey`
        states what that does not protect.
    pseudonym_context
        The collection that pseudonyms are for; by default the fingerprint of the plan and the name
        of the column. Name each round of a repeated survey differently: under one name the reports
        of a person can be linked.
    max_groups
        The largest number of groups in a block.

    Returns
    -------
    Answers
        The answers, which can be randomized, collected, or listed in blocks.

    Raises
    ------
    InvalidValueError
        If a column is missing or duplicated, or is named for two purposes, one of them secret; if a
        folder or glob has no file of a known format; or if a file is named twice.
    InvalidTypeError
        If a column is nested, or an argument has a type that cannot be used.
    CorruptDataError
        If a file cannot be read, or does not have the required form.
    FileNotFoundError
        If a path does not exist.
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> table = pa.table({"who": [7, 8, 7], "answer": ["yes", None, "no"]})
    >>> answers = scan(table, "answer", missing="drop", id_column="who", duplicates="first")
    >>> tally = tn.pipeline.collect(answers, tn.DirectEncoding(1.0, ["no", "yes"]), seed=1)
    >>> print(tally.left_out)
    1 without an answer, 1 further row of a person
    """
    asked = asked_columns(column)
    for argument, name in (("id_column", id_column), ("probability_column", probability_column)):
        if name is not None:
            _arguments.instance(argument, name, str, "the name of a column")
            if name in asked:
                raise InvalidValueError(f"{argument} must not be {name!r}, a column of answers")
    names = group_columns("group_by", group_by, (*asked, id_column))
    _arguments.choice("duplicates", duplicates, ("refuse", "first", None))
    if pseudonym_key is not None:
        _arguments.instance("pseudonym_key", pseudonym_key, PseudonymKey, "a PseudonymKey")
        if id_column is None:
            raise InvalidValueError("pseudonym_key needs id_column, the column of persons")
    if pseudonym_context is not None:
        _arguments.instance("pseudonym_context", pseudonym_context, str, "text")
    texts = _arguments.items("missing_values", missing_values, "a sequence of texts")
    for text in texts:
        _arguments.instance("missing_values", text, str, "a sequence of texts")
    rules = by_column("missing", missing, (*asked, *names), one_for_all=True)
    for rule in rules.values():
        try:
            hash(rule)
        except TypeError as error:
            raise _arguments.mistyped("missing must be None, 'drop' or a label", rule) from error
    source = open_source(data, separator=separator, encoding=encoding)
    answers = Scan(
        source,
        asked[0],
        joint=asked[1:],
        missing=rules if isinstance(missing, Mapping) else missing,
        missing_values=frozenset(texts),
        trim=_arguments.instance("trim", trim, bool, "True or False"),
        id_column=id_column,
        duplicates=duplicates,
        group_by=names,
        probability_column=probability_column,
        pseudonym_key=pseudonym_key,
        pseudonym_context=pseudonym_context,
        max_groups=_arguments.integer("max_groups", max_groups, least=1),
    )
    source.check(answers.columns)
    for name in names if isinstance(missing, Mapping) else ():
        if rules.get(name) not in (None, "drop"):
            stored = source.schema.field(name).type
            answers = answers._with_rule(name, group_label(name, stored, rules[name]))
    return answers


def asked_columns(column: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of answers.

    Raises
    ------
    InvalidTypeError
        If ``column`` is neither a name nor names.
    InvalidValueError
        If it names none, or one twice.

    Examples
    --------
    >>> asked_columns("vote")
    ('vote',)
    """
    names = _arguments.names("column", column, "columns")
    if not names:
        raise InvalidValueError("column must name at least one column, got []")
    return names


def by_column(
    argument: str, given: Any, columns: tuple[str, ...], *, one_for_all: bool = False
) -> dict[str | None, Any]:
    """Read an argument that may be a dictionary by column.

    Parameters
    ----------
    argument, given
        Where it comes from, and what it is.
    columns
        The columns of answers.
    one_for_all
        Whether what is no dictionary is for all columns, and None in one is for all others.

    Raises
    ------
    InvalidTypeError
        If it is no dictionary and there are several columns.
    InvalidValueError
        If it names another column.

    Examples
    --------
    >>> by_column("missing", "drop", ("vote", "age"), one_for_all=True)
    {'vote': 'drop', 'age': 'drop'}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for name in given:
            if name not in columns and not (one_for_all and name is None):
                raise InvalidValueError(
                    f"{argument} names {_arguments.shown(name)}, which is not among the "
                    f"columns {_arguments.listed(columns)}"
                )
        return dict(given)
    if len(columns) > 1 and not one_for_all:
        raise _arguments.mistyped(
            f"{argument} must be a dictionary by column where there are several", given
        )
    return dict.fromkeys(columns, given)


def group_columns(
    argument: str, given: str | Sequence[str] | None, private: Sequence[str | None]
) -> tuple[str, ...]:
    """Return the names of the columns of groups.

    Parameters
    ----------
    argument
        Where the names come from.
    given
        A name, names, or None.
    private
        Columns that are not to be shown.

    Raises
    ------
    InvalidTypeError
        If ``given`` is neither a name nor names.
    InvalidValueError
        If it names a column twice, or a private one.

    Examples
    --------
    >>> group_columns("by", ["region"], ["vote"])
    ('region',)
    """
    names = () if given is None else _arguments.names(argument, given, "columns")
    for name in names:
        if name in private:
            raise InvalidValueError(
                f"{argument} must not name {name!r}: groups are written unprotected, and "
                "this column is private"
            )
    return names
