"""libnftables in one namespace, through its Python bindings.

Source: libnftables(3); libnftables-json(5); nftables, src/libnftables.c.
"""

from __future__ import annotations

import json
from typing import Any, Final

from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Characters of a libnftables error that a message quotes, since it repeats the whole command.
_QUOTED: Final = 300


class Nft:
    """A context of libnftables, whose socket to the kernel stays in the namespace.

    Raises:
        LabError: the bindings or the library are not installed.
    """

    def __init__(self, namespace: Namespace) -> None:
        try:
            import nftables  # only here, where libnftables.so.1 is needed
        except ImportError:
            raise LabError(
                "the nftables bindings are not installed; pip install '.[lab]' in a clone of "
                "kubeodds"
            ) from None
        self._namespace = namespace
        with namespace:
            try:
                self._context: Any = nftables.Nftables()
            except OSError as error:
                raise LabError(f"{error}; apt-get install libnftables1") from None

    def run(self, commands: str) -> str:
        """Run commands of nft(8), all or none, and return what they print.

        Raises:
            LabError: one of them is refused; the message quotes libnftables.
        """
        # Inside the namespace, since libnftables opens a socket each time it looks up an interface.
        with self._namespace:
            given = commands.encode("utf-8", "surrogateescape")
            status, output, error = self._context.cmd(given)
        if status:
            said = " ".join(error.decode("utf-8", "replace").split())[:_QUOTED]
            raise LabError(f"nftables in {self._namespace.name}: {said or f'error {status}'}")
        text: str = output.decode("utf-8", "surrogateescape")
        return text

    def json(self, what: str) -> str:
        """Return what ``nft -j -a list WHAT`` prints.

        Raises:
            LabError: there is no such thing.
        """
        self._context.set_json_output(True)
        self._context.set_handle_output(True)
        try:
            return self.run(f"list {what}")
        finally:
            self._context.set_json_output(False)
            self._context.set_handle_output(False)

    def listed(self, what: str) -> list[dict[str, Any]]:
        """Return the objects of `json`."""
        objects: list[dict[str, Any]] = json.loads(self.json(what))["nftables"]
        return objects
