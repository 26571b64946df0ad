"""Studies: error and cost of collections, oracles side by side, shuffled reports."""
