"""``turnout sample``: one private record for each user of a file."""
