"""Loading a dump's rules into the kernel, and counting their packets: one class per backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from analyzer.model.addresses import Address
from analyzer.model.diagnostics import Diagnostic, Location, partial_warning
from analyzer.semantics.base_chains import Rules
from netns_lab.namespace import Namespace

#: An address, as an integer, and a port.
SocketAddress: TypeAlias = tuple[int, int]


#: Code of the warning that a rule was not loaded.
LEFT_OUT: Final = "rule-left-out"


def not_loaded(location: Location, why: str) -> Diagnostic:
    """Return the warning that a rule of a dump was not loaded."""
    says = f"this rule is not loaded: {why}"
    return partial_warning(LEFT_OUT, says, location.file, location.line)


class Backend(ABC):
    """The rules of one dump in one namespace.

    If `lenient`, rules that cannot be loaded are left out, and named in `notes`.
    """

    def __init__(self, namespace: Namespace, ruleset: Rules, *, lenient: bool = False) -> None:
        self.namespace = namespace
        self.lenient = lenient
        self.file = ruleset.file
        self.tables = tuple(ruleset.tables)
        #: What of the dump was not loaded as it stands.
        self.notes: list[Diagnostic] = []
        self._so_far: Counter[SocketAddress] = Counter()
        self.load(ruleset)

    @abstractmethod
    def load(self, ruleset: Rules) -> None:
        """Load the rules, and check that the kernel holds exactly what the dump says.

        Raises:
            LabError: a rule was not understood, so it is not loaded; the kernel refuses it; or what
                the kernel holds differs from the dump.
        """

    @abstractmethod
    def adopt(self, ruleset: Rules) -> None:
        """Use the rules that are loaded already, which must be exactly these.

        Raises:
            LabError: they differ.
        """

    @abstractmethod
    def change(self, commands: str) -> bool:
        """Run commands through the restore program; return whether it accepted them."""

    @abstractmethod
    def saved(self) -> str:
        """Return the loaded rules, without what packets change in them."""

    @abstractmethod
    def resync(self, ruleset: Rules, without: Collection[str] = ()) -> bool:
        """Rewrite kube-proxy's rules of `ruleset` as it does; return whether they were accepted.

        Chains in `without` are deleted, as kube-proxy deletes those of removed endpoints.
        """

    @abstractmethod
    def replacement(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, that replaces the loaded rules with other ones.

        Raises:
            LabError: they are of another kind, or not understood.
        """

    @abstractmethod
    def sync(self, ruleset: Rules) -> tuple[list[str], str]:
        """Return the program, and its input, with which kube-proxy would rewrite its rules."""

    @abstractmethod
    def listing(self) -> list[str]:
        """Return the command that prints the loaded rules."""

    @abstractmethod
    def check(self, ruleset: Rules, listing: str) -> None:
        """Check that `listing`, printed by the command of `listing()`, is `ruleset`.

        Raises:
            LabError: it is not.
        """

    def counters(self) -> Counter[SocketAddress]:
        """Return how many new flows were sent to each endpoint since the rules were loaded.

        The kernel counts them, independently of the captures.
        """
        self.drawn()
        return self._so_far.copy()

    def drawn(self) -> Counter[SocketAddress]:
        """Return how many were sent to each since the last call of this, or of `counters`."""
        found = self._newly_drawn()
        self._so_far.update(found)
        return found

    @abstractmethod
    def _newly_drawn(self) -> Counter[SocketAddress]:
        """Read the kernel's counters, and return what is new in them."""

    def endings(self) -> Counter[tuple[str, str]] | None:
        """Return the packet counts of the rules that drop or reject, by table and text.

        None if the rules have no counters.
        """
        return None

    @abstractmethod
    def forget_clients(self) -> None:
        """Empty the session affinity lists: every client is treated as a new one.

        Raises:
            NotMeasuredError: the lists cannot be emptied.
        """

    def changed(self) -> None:  # noqa: B027  # not all keep anything
        """Pass over what is known of the rules: a program has changed them."""

    @abstractmethod
    def forgetting(self, clients: Sequence[Address]) -> AbstractContextManager[Callable[[], None]]:
        """Return what makes the rules forget `clients`; what else they know they forget now.

        No rules come or go meanwhile.

        Raises:
            NotMeasuredError: as of `forget_clients`.
        """

    def cross_check(self) -> None:  # noqa: B027  # not all have a second way
        """Read the counters in a second way too, if there is one.

        Raises:
            LabError: the two differ.
        """
