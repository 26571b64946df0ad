"""The frequency oracles, one family a module."""
