"""What loads a dump's rules into the kernel, and counts what they did: one class for each way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TypeAlias

from analyzer.semantics.base_chains import Rules
from netns_lab.namespace import Namespace

#: An address, as an integer, and a port.
Door: TypeAlias = tuple[int, int]


class Backend(ABC):
    """The rules of one dump in one namespace."""

    def __init__(self, namespace: Namespace, ruleset: Rules) -> None:
        self.namespace = namespace
        self.load(ruleset)

    @abstractmethod
    def load(self, ruleset: Rules) -> None:
        """Put the rules in place, and check that the kernel holds just what the dump says.

        Raises:
            LabError: a rule was not understood and is not loaded blindly, the kernel refuses it,
                or what it holds is not what the dump says.
        """

    @abstractmethod
    def counters(self) -> Counter[Door]:
        """Return how many new flows were sent to each endpoint since the rules were loaded.

        The kernel counts them, by another way than the captures do.
        """

    def endings(self) -> Counter[str] | None:
        """Return what the rules that drop or reject have counted, by their text.

        None where rules do not count.
        """
        return None

    @abstractmethod
    def forget_clients(self) -> None:
        """Empty what session affinity keeps: each client is as one that has never been here."""

    def cross_check(self) -> None:  # noqa: B027  # not all have a second way
        """Read the counters by a second way too, where there is one.

        Raises:
            LabError: the two differ.
        """
