"""What holding random rulesets against the kernel came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: False alarms that a whole run may raise, for all its counts together.
RATE: Final = 1e-6


@dataclass
class Findings:
    """What a run came to.

    Attributes:
        exact: questions of which nothing is unknown.
        matched: rules that the kernel matched.
        faults: ways that the tree does not allow, in words.
        p_values: of how often the kernel went a way, and what it is of.
    """

    packets: int = 0
    rulesets: int = 0
    exact: int = 0
    matched: int = 0
    faults: list[str] = field(default_factory=list)
    p_values: list[tuple[float, str]] = field(default_factory=list)

    @property
    def disagreements(self) -> list[str]:
        """What the tree does not allow, and what it allows and was too rare or too frequent."""
        least = RATE / max(1, len(self.p_values))
        return [*self.faults, *[says for value, says in self.p_values if value < least]]
