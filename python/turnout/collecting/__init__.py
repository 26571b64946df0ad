"""What all kinds of questions share: plans, reports, files and messages.

This package knows no particular kind: :mod:`~turnout.collecting.randomizer` defines what a kind
offers. A :mod:`~turnout.collecting.plan` says what is asked and who takes part. It is written to a
:mod:`~turnout.collecting.plan_file`. :mod:`~turnout.collecting.reports` are made under it: in
memory, in :mod:`~turnout.collecting.report_files`, or one by one as
:mod:`~turnout.collecting.report_messages`.
"""
