"""Databases of messages and tallies: SQLite in a file, PostgreSQL for several servers."""
