"""Where the answers are, and what the columns beside them mean."""

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
    """Answers that oracles take in place of values; :func:`scan` makes them."""

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
    """Say where the answers are and what the columns beside them mean; nothing is read yet.

    Parameters
    ----------
    data
        One of

        - a path, a folder (searched with the folders in it), a glob such as ``"day-*.parquet"``, or
          a list of these: Parquet, Arrow IPC, CSV or TSV files (``.csv.gz`` too), all of one
          format. Folders named ``country=DE`` are Hive partitions and become columns, of numbers if
          all of their values are. Files come in natural order of their paths (``part-2`` before
          ``part-10``), whatever the order of a list;
        - a table: pyarrow, pandas, polars, or any that narwhals takes; nothing is copied where
          Arrow allows. Columns of pandas whose names are no text go by the text of the name;
        - a dictionary of columns, or a list of dictionaries, one a row;
        - a query that is run as it is read: a polars LazyFrame, a DuckDB relation, a
          ``pyarrow.dataset.Dataset``, a Ray data set. Its order must be the same whenever it runs;
        - a stream that is read once: a ``RecordBatchReader``, an iterator of record batches, any
          object with ``__arrow_c_stream__``.
    column
        The column of answers, one row a person; of a plan of several questions (a
        :class:`turnout.JointTable`, ``PairTables``, ``SplitBudget`` or ``SampledAttribute``) the
        columns, in their order.
    missing
        What a missing answer is (a null, NaN, and ``turnout.pipeline.MISSING_TEXTS``, such as
        ``""``, ``NA`` or ``None``, where they are no label of the domain): None refuses it,
        ``"drop"`` leaves the row out, anything else is the label that is reported. Who is left out
        is not protected: how many they are, in each file and group, is written and shown. Where not
        to have answered is private, give a label. It may be a dictionary by column, whose None is
        for all others: a row is left out if any of its answers is dropped. A row without a group is
        refused, or left out wherever any is; a label is for answers, unless the dictionary states
        it of the column of groups (``{"region": "unknown"}``).
    missing_values
        Further texts that stand for a missing answer or group, such as ``"?"`` or ``"-9"``.
    trim
        Whether white space around the texts of answers and groups is taken off: then ``"a "`` is
        ``"a"``.
    separator
        What stands between two fields of CSV files. By default a comma, in ``.tsv`` a tab; or a
        semicolon, tab or ``|`` where only that divides the header and the first row of a file into
        as many fields.
    encoding
        How CSV files are written, such as ``"cp1252"``. By default UTF-8; or what a mark at the
        beginning of a file says (UTF-16).
    id_column
        A column that says which person a row is of: text, integers or bytes, compared byte by byte.
    duplicates
        What happens when a person has several rows: ``"refuse"``, or ``"first"``: the first row
        counts and the others do not, even if the answer in it is missing. None looks for none, for
        identifiers that only make pseudonyms.
    group_by
        Columns that are reported beside the answers **as they are**, for a tally of each group.
    probability_column
        A column of the probability with which each person takes part, in [2^-30, 1]. Public.
    pseudonym_key
        With ``id_column``: reports carry a pseudonym, by which two of one person can be seen and
        not whose they are. See :class:`turnout.pipeline.PseudonymKey` for what that does not
        protect.
    pseudonym_context
        The collection that pseudonyms are for; by default the fingerprint of the plan and the name
        of the column. Name each round of a survey that is repeated: under one name the reports of a
        person can be linked.
    max_groups
        The largest number of groups in a block.

    Returns
    -------
    Answers
        What can be randomized, collected, or listed block by block.

    Raises
    ------
    InvalidValueError
        If a column is not there exactly once, or is named for two purposes of which one is secret;
        if a folder or glob has no file of a known format, or a file is named twice.
    InvalidTypeError
        If a column is nested, or an argument has a type that cannot be used.
    CorruptDataError
        If a file cannot be read, or is not of the form that it must have.
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
    """Name the columns of answers.

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
    """Read what may be a dictionary by column.

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
                    f"{argument} names {_arguments.shown(name)}, which is none of the columns "
                    f"{_arguments.listed(columns)}"
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
    """Name the columns of groups.

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
                f"{argument} must not name {name!r}: groups are reported as they are, and its "
                "values are private"
            )
    return names
