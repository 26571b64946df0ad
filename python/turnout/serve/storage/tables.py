"""Define the tables of tasks in SQLite's words: what an aggregator of DAP must remember.

PostgreSQL has the same tables, with its own names of types. All rows are of a task, by its number.

* ``reports``: every received report, by its ID and its time, until it is too old to arrive again,
  so that none counts twice. A leader keeps the report itself (``report``) until it is aggregated;
  ``job`` is its aggregation job.
* ``jobs``: aggregation jobs. A helper keeps its answer, so that a repeated request gets the same,
  until the reports of the job are too old to come again (``answered`` is the time).
* ``buckets``: the sums over the reports of a time, or of a batch: the aggregate share, the number
  of reports, the checksum of their IDs, and their first and last time.
* ``collected``: ranges of buckets that were collected; no further report counts there.
* ``collections``: collection jobs of a leader, and aggregate shares of a helper. The share with its
  noise is written in the transaction that marks the batch as collected: its noise is drawn once.
* ``refused``: how many reports were refused, by the reason.
"""

from __future__ import annotations

from typing import Final

#: The statements that make the tables.
TASKS: Final = """
    CREATE TABLE turnout_tasks (number INTEGER PRIMARY KEY, task BLOB NOT NULL UNIQUE,
        role TEXT NOT NULL, configuration BLOB NOT NULL);
    CREATE TABLE turnout_task_reports (task INTEGER NOT NULL, id BLOB NOT NULL, time INTEGER,
        job BLOB, report BLOB, PRIMARY KEY (task, id)) WITHOUT ROWID;
    CREATE INDEX turnout_task_reports_waiting ON turnout_task_reports (task, job)
        WHERE report IS NOT NULL;
    CREATE TABLE turnout_task_jobs (task INTEGER NOT NULL, id BLOB NOT NULL, bucket BLOB,
        answered INTEGER, request BLOB, answer BLOB, PRIMARY KEY (task, id));
    CREATE TABLE turnout_task_buckets (task INTEGER NOT NULL, bucket BLOB NOT NULL,
        opened INTEGER NOT NULL, reports INTEGER NOT NULL, checksum BLOB NOT NULL,
        share BLOB NOT NULL, first INTEGER, last INTEGER, PRIMARY KEY (task, bucket));
    CREATE TABLE turnout_task_collected (task INTEGER NOT NULL, first BLOB NOT NULL,
        last BLOB NOT NULL, PRIMARY KEY (task, first));
    CREATE TABLE turnout_task_collections (task INTEGER NOT NULL, id BLOB NOT NULL,
        request BLOB NOT NULL, state TEXT NOT NULL, share BLOB, share_request BLOB,
        reports INTEGER, first INTEGER, last INTEGER, answer BLOB, problem TEXT,
        PRIMARY KEY (task, id));
    CREATE TABLE turnout_task_refused (task INTEGER NOT NULL, kind TEXT NOT NULL,
        number INTEGER NOT NULL, PRIMARY KEY (task, kind))
"""
