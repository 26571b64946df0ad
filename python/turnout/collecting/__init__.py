"""The one road of every kind of question: plans, reports, files and messages.

What is here knows no kind: a question is what :mod:`~turnout.collecting.randomizer` says. A
:mod:`~turnout.collecting.plan` says what is asked and who takes part, and is written to a
:mod:`~turnout.collecting.plan_file`; :mod:`~turnout.collecting.reports` are made under it, in
memory, in :mod:`~turnout.collecting.report_files`, or one by one as
:mod:`~turnout.collecting.report_messages`.
"""
