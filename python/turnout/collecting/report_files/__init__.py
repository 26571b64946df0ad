"""Files of reports: Parquet and Arrow IPC, with the plan inside.

A report file is an ordinary Parquet or Arrow IPC file that any Arrow reader opens. Its schema
metadata make it a report file.

Columns
    ``report``
        One received report a row, in node order: the output of the node's randomizer, not the
        node's value. No nulls. If a report is one number, the type is the smallest unsigned
        integer that holds every report (8 to 64 bits). If a report is a row of numbers, it is a
        binary of fixed size with their bytes, little-endian: packed bits as 64-bit words (answer
        ``i`` in bit ``i % 64`` of word ``i / 64``), scores as signed 32-bit numbers.
    ``probability``
        Float64, no nulls; only with personal participation: the probability with which the node
        of this report took part.
    one column for each name of a group
        Only if the reports are grouped: the group of the node, unchanged. Not protected.
    ``pseudonym``
        16 bytes, no nulls; only on request: a keyed digest of the person's identifier.

Schema metadata
    ``turnout``
        A JSON object in ASCII, with these members in any order and no others::

            {"format": "turnout-reports", "version": 2,
             "plan": {...},        what Plan.to_json gives, domain labels included
             "nodes": 1000,        all nodes, reporting or not
             "reports": 300,       rows in the file
             "design": {...},      only with personal participation: sums over all nodes
             "pseudonyms": true,   only if there is that column
             "groups": {           only if the reports are grouped
                 "names": ["country"], "keys": [["DE"], ["FR"]],
                 "nodes": [600, 400], "designs": [{...}, {...}], "unanswered": [6, 0]},
             "part": {             only in a file that is part of a job
                 "job": "6f...", "number": 7},
             "id": "a3...",        128 random bits of the reports, in any other file
             "left_out": {         only if anything is left out: in none of the numbers above
                 "unanswered": 6, "ungrouped": 0, "duplicates": 4, "refused": 0, "absent": 0}}

        Values of keys are null, booleans, numbers, texts, or objects such as
        ``{"date": "2026-01-31"}``. ``designs`` exist only with personal participation, and
        ``unanswered`` of the groups only if the total is above 0. The numbers of ``left_out`` are
        exact, and not protected.

        Two files with the same ``id``, or of the same part, hold the same reports, written twice.
        They cannot be tallied together.

    ``turnout.checksum``
        ``turnout-sha256:`` and 64 hexadecimal digits: the SHA-256 of the *whole file*, with zeros
        in place of these digits wherever they occur.

:func:`read_reports` and :class:`ReportFile` check the checksum over every byte before any parser
sees the file. So they refuse a file that was truncated or altered anywhere, padding and statistics
included. The checksum finds accidents; it does not authenticate: whoever can write the file can
also seal a different one.

A small file can also *ask* for much: it can name very many answers, or hold very many equal
reports. The memory for counting it is at most a billion bytes or eight times its size, whichever
is more, unless ``max_memory`` says otherwise. A page or record batch that is larger than that,
uncompressed, is not read. Pages have the encodings ``PLAIN``, ``PLAIN_DICTIONARY``, ``RLE`` or
``RLE_DICTIONARY``; in an Arrow IPC file no column is a dictionary.

In Parquet, the metadata are once in the file, in the footer; the Arrow schema is not stored beside
them. An Arrow IPC file repeats its schema in the footer, and the checksum with it. A text in a
label that looks like the marker of the checksum is written with a JSON escape, so the marker occurs
only at the checksum.
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
