"""The user's own programs as clients, and what they are assumed to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from analyzer.clients.connectors import CONNECTORS
from analyzer.clients.operations import Connection, Journey, LookUp, Operation
from analyzer.clients.resolvers import RESOLVERS
from analyzer.errors import UsageError
from analyzer.kubeproxy.view import Frontend, ServicePort, View
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.value import replace
from analyzer.parsers.resolv_conf import resolv_conf_from_bytes
from netns_lab.clients import Client
from netns_lab.naming import RESOLV_CONF, name_of, resolv_conf

#: Placeholders in a command, for the frontend.
PLACES: Final = ("{vip}", "{port}", "{name}")
_ANY_PLACE: Final = re.compile(r"\{\w*\}")


class ClientProgram:
    """A command that is run in place of the lab's own clients.

    Args:
        text: the command in shell syntax, with `PLACES` in it.
        like: names of the analysis's clients whose operations it performs, in order; empty if
            nothing is predicted.
        timeout: seconds after which it gives up an attempt to connect; None: like those clients.
        tries: how often it tries to connect; None: like those clients.

    Raises:
        UsageError: the command cannot be parsed, or has other placeholders, or `like` has a
            resolver and the dump shows no cluster DNS.
    """

    def __init__(
        self,
        text: str,
        view: View,
        *,
        like: Sequence[str] = (),
        timeout: Fraction | None = None,
        tries: int | None = None,
    ) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--client {text}: {error}") from None
        if not self._words:
            raise UsageError("--client: no command")
        unknown = [each for each in _ANY_PLACE.findall(text) if each not in PLACES]
        if unknown:
            raise UsageError(
                f"--client {text}: {unknown[0]} is not one of {', '.join(PLACES)}, which stand for "
                "the ClusterIP, its port and the Service's name"
            )
        self._view = view
        self._like, self._timeout, self._tries = tuple(like), timeout, tries
        if any(each in RESOLVERS for each in like) and not resolv_conf(view):
            raise UsageError(
                f"--like {','.join(like)}: the dump shows no kube-dns, or more than one, so that "
                "nothing answers look-ups"
            )

    def client(self, service: ServicePort) -> Client:
        """Return the program as a client of a ServicePort."""

        def arguments(address: str, port: int) -> list[str]:
            filled: Mapping[str, str] = {
                "{vip}": address, "{port}": str(port), "{name}": name_of(service)
            }  # fmt: skip
            return [_ANY_PLACE.sub(lambda found: filled[found[0]], each) for each in self._words]

        text = " ".join(self._words)
        return Client(
            fits=lambda *_: True,
            arguments=arguments,
            succeeded=lambda status, _: status == 0,
            operation=self._operation if self._like else None,
            tells_exits=True,
            by_name="{name}" in text or "{vip}" not in text,
        )

    def _operation(self, service: ServicePort, _: Frontend) -> Operation:
        steps = tuple(self._step(each, service) for each in self._like)
        return steps[0] if len(steps) == 1 else Journey(name=" ".join(self._words), steps=steps)

    def _step(self, name: str, service: ServicePort) -> LookUp | Connection:
        if name in RESOLVERS:
            asked = name_of(service)
            return LookUp(
                resolver=RESOLVERS[name],
                conf=self._conf(),
                name=asked,
                exists=lambda candidate: candidate.rstrip(".") == asked,
            )
        connector = CONNECTORS[name]
        if self._timeout is not None:
            connector = replace(connector, timeout=(self._timeout,))
        if self._tries is not None:
            connector = replace(connector, tries=self._tries)
        return Connection(connector=connector, service=service)

    def _conf(self) -> ResolvConf:
        return resolv_conf_from_bytes(resolv_conf(self._view).encode(), str(RESOLV_CONF))
