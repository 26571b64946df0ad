"""The work of :mod:`turnout.pipeline` on a Ray cluster."""
