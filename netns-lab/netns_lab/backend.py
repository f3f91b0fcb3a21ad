"""What loads a dump's rules into the kernel, and counts what they did: one class for each way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection
from typing import TypeAlias

from analyzer.model.diagnostics import Diagnostic
from analyzer.semantics.base_chains import Rules
from netns_lab.namespace import Namespace

#: An address, as an integer, and a port.
Door: TypeAlias = tuple[int, int]


class Backend(ABC):
    """The rules of one dump in one namespace.

    With `lenient` rules that cannot be loaded are left out, and named.
    """

    def __init__(self, namespace: Namespace, ruleset: Rules, *, lenient: bool = False) -> None:
        self.namespace = namespace
        self.lenient = lenient
        self.file = ruleset.file
        self.tables = tuple(ruleset.tables)
        #: What of the dump is not loaded as it stands.
        self.notes: list[Diagnostic] = []
        self.load(ruleset)

    @abstractmethod
    def load(self, ruleset: Rules) -> None:
        """Put the rules in place, and check that the kernel holds just what the dump says.

        Raises:
            LabError: a rule was not understood and is not loaded blindly, the kernel refuses it,
                or what it holds is not what the dump says.
        """

    @abstractmethod
    def adopt(self, ruleset: Rules) -> None:
        """Go by the rules that are there, which must be just these.

        Raises:
            LabError: they are others.
        """

    @abstractmethod
    def change(self, commands: str) -> bool:
        """Give commands to the program that reads changes; tell whether it took them."""

    @abstractmethod
    def saved(self) -> str:
        """Return the rules as they are, without what packets change."""

    @abstractmethod
    def resync(self, ruleset: Rules, without: Collection[str] = ()) -> bool:
        """Write kube-proxy's rules of `ruleset` anew as it does; tell whether they were taken.

        Chains in `without` are deleted, as kube-proxy deletes those of endpoints that are gone.
        """

    @abstractmethod
    def replacement(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, that puts other rules in place of those there.

        Raises:
            LabError: they are of another kind, or not understood.
        """

    @abstractmethod
    def sync(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, by which kube-proxy would write its rules anew."""

    @abstractmethod
    def listing(self) -> list[str]:
        """Return the program that prints the rules as they are."""

    @abstractmethod
    def check(self, ruleset: Rules, listing: str) -> None:
        """See that what `listing` printed is `ruleset`.

        Raises:
            LabError: it is not.
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
