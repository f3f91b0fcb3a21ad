"""The errors that stop the lab, or the measurement of one route."""

from analyzer.errors import AnalyzerError


class LabError(AnalyzerError):
    """The lab cannot start, or cannot continue; the message says why."""


class NotMeasuredError(LabError):
    """One route cannot be measured, the others can; the message says why."""
