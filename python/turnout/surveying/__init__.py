"""Surveys: one call from a table of answers to shares, means and quantiles with intervals."""

from __future__ import annotations

from turnout._public import listing
from turnout.surveying.asking import survey
from turnout.surveying.numbers import NumberEstimate, NumberGroups
from turnout.surveying.results import ShareGroups, SurveyResult, SurveyResults

__all__ = [
    "NumberEstimate",
    "NumberGroups",
    "ShareGroups",
    "SurveyResult",
    "SurveyResults",
    "survey",
]

__dir__ = listing(__all__)
