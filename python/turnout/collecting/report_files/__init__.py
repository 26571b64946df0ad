"""Files of reports: Parquet and Arrow IPC, with the plan inside.

A report file is an ordinary Parquet or Arrow IPC file that any Arrow reader opens. What makes it
a report file stands in its schema metadata.

Columns
    ``report``
        One received report a row, in node order: what the node's randomizer put out, not the
        node's value. No nulls. Of an oracle whose report is one number, the smallest unsigned
        integer type that holds every report (8 to 64 bits). Of an oracle whose report is a row of
        numbers, their bytes, little-endian, as a binary of fixed size: packed bits as 64-bit words
        (answer ``i`` in bit ``i % 64`` of word ``i / 64``), scores as signed 32-bit numbers.
    ``probability``
        Float64, no nulls; only with personalised participation: the probability with which the
        node that sent this report took part.
    one column for each name of a group
        Only if the reports are grouped: the group of the node, as it was given. Not protected.
    ``pseudonym``
        16 bytes, no nulls; only if it was asked for: a keyed digest of the person's identifier.

Schema metadata
    ``turnout``
        A JSON object in ASCII, with these members in any order and no others::

            {"format": "turnout-reports", "version": 2,
             "plan": {...},        what Plan.to_json gives, domain labels included
             "nodes": 1000,        all nodes, reporting or not
             "reports": 300,       rows in the file
             "design": {...},      only with personalised participation: sums over all nodes
             "pseudonyms": true,   only if there is that column
             "groups": {           only if the reports are grouped
                 "names": ["country"], "keys": [["DE"], ["FR"]],
                 "nodes": [600, 400], "designs": [{...}, {...}], "unanswered": [6, 0]},
             "part": {             only in a file that is part of a job
                 "job": "6f...", "number": 7},
             "id": "a3...",        128 random bits of the reports, in any other file
             "left_out": {         only if anything is left out: in none of the numbers above
                 "unanswered": 6, "ungrouped": 0, "duplicates": 4, "refused": 0, "absent": 0}}

        Values of keys are null, booleans, numbers, texts, or ``{"date": "2026-01-31"}`` and the
        like. ``designs`` are there with personalised participation only, ``unanswered`` of the
        groups only where it is above 0 in all. What is left out is counted exactly, and not
        protected.

        Two files with one ``id``, or of one part, hold the same reports, be it because these were
        written twice: they are not tallied together.

    ``turnout.checksum``
        ``turnout-sha256:`` and 64 hexadecimal digits: the SHA-256 of the *whole file* with these
        digits, wherever they occur, replaced by zeros.

:func:`read_reports` and :class:`ReportFile` check the checksum over every byte before any parser
sees the file, so a file that was truncated or altered anywhere is refused, padding and statistics
included. It is a checksum against accidents, not authentication: whoever may write the file may
also seal a different one. A small file can also *ask* for much: name very many answers, or hold
very many equal reports. What counting it takes up is bounded, by a billion bytes or eight times
its size, whichever is more, unless ``max_memory`` says otherwise; no page or record batch that is
larger than that, uncompressed, is read. Pages have the encodings ``PLAIN``, ``PLAIN_DICTIONARY``,
``RLE`` or ``RLE_DICTIONARY``; in an Arrow IPC file no column is a dictionary.

In Parquet the metadata stands once, in the footer (the Arrow schema is not stored beside it); an
Arrow IPC file repeats its schema in the footer, and the checksum with it. A text in a label that
looks like the checksum's marker is written with a JSON escape, so the marker occurs only where
the checksum is.
"""

from turnout.collecting.report_files.reading import MAX_MEMORY, ReportFile, read_reports
from turnout.collecting.report_files.writing import FileFormat, file_format, write_reports

__all__ = [
    "MAX_MEMORY",
    "FileFormat",
    "ReportFile",
    "file_format",
    "read_reports",
    "write_reports",
]
