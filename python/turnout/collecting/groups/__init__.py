"""Tallies by groups: by country, by version of the program, by day."""
