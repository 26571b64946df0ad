"""``turnout account``: what random participation, shuffling and sampling protect."""
