"""A running collection: messages come in over HTTP, and results are available at any time.

:mod:`turnout.serve.storage` keeps the messages and their tallies in a database,
:mod:`turnout.serve.collection` knows the plans and reads messages, and
:mod:`turnout.serve.writing` puts the messages of many requests into one transaction.
:mod:`turnout.serve.web` needs the extra ``serve``: requests, limits and the process itself, as the
command ``turnout serve`` runs it. Nothing here knows a kind of question.
"""
