"""Everything that makes new names, sharing one salt over all files of a run."""

from __future__ import annotations

import hmac

from analyzer.anonymise import devices
from analyzer.anonymise.chains import ChainNames
from analyzer.anonymise.comments import Comments
from analyzer.anonymise.pseudonyms import Pseudonyms, Renamed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

#: Replaces a text that is not understood.
REMOVED: Final = "removed"


class Naming:
    """New names for everything in rules and objects.

    `well_known`: the Services that every cluster has keep their names.

    Attributes:
        removals: how many texts were not understood, and are gone, by what they were.
    """

    removed: Final = REMOVED

    def __init__(self, salt: bytes, *, well_known: bool = True) -> None:
        self.names = Pseudonyms(salt, well_known=well_known)
        self.chains = ChainNames(self.names)
        self.comments = Comments(self.names, self.chains.hashed)
        self.removals: dict[str, int] = {}
        self._devices = hmac.digest(salt, b"kubeodds anonymise devices", "sha256")
        self._named: dict[str, str] = {}

    def device(self, name: str) -> str:
        """Return the new name of a device, or of a wildcard ending in ``+`` or ``*``."""
        found = self._named.get(name)
        if found is None:
            found = self._named[name] = devices.renamed(self._devices, name)
            self.names.note("device", name, found)
        return found

    def list_name(self, name: str) -> str:
        """Return the new name of a ``-m recent`` list, which is that of a kube-proxy chain."""
        if name == "DEFAULT":
            return name
        return self.chains.hashed(name) or self.names.name("list", name)

    def mark(self, text: str) -> str:
        """Return a placeholder for a removed text: the same for the same text."""
        return self.names.hashed("removed", text).lower()

    def remove(self, what: str, text: str) -> None:
        """Count a removed text."""
        del text  # nothing of it is kept
        self.removals[what] = self.removals.get(what, 0) + 1

    def rows(self) -> Iterator[Renamed]:
        """Yield the rows of the private map."""
        return self.names.rows()
