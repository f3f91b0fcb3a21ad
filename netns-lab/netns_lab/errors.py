"""The error that stops the lab."""

from analyzer.errors import AnalyzerError


class LabError(AnalyzerError):
    """The lab cannot start, or cannot go on; the message says why."""
