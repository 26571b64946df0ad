"""From a tally, or from whole reports, to frequencies with their errors."""
