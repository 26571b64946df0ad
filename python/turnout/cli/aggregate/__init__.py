"""``turnout aggregate``: counts under secret sharing, a whole round in one process."""
