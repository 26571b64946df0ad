"""The report of a collection: a page for people, and its pictures.

:func:`report` writes one self-contained HTML file. It shows what was collected, the guarantee in
plain words, the estimates with intervals, by group and over time if the tally is grouped, the
costs, and who was left out. :func:`write_pictures` writes the pictures as PDF, SVG and PNG.
"""

from turnout._public import listing
from turnout.reporting.figures import write_pictures
from turnout.reporting.page import report

__all__ = ["report", "write_pictures"]

__dir__ = listing(__all__)
