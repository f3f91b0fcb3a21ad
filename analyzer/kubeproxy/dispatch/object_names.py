"""Names of Services from the API objects, for rules without comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from analyzer.kubeproxy import names
from analyzer.model.addresses import Address
from analyzer.model.services import ApiServicePort

#: A ServicePort's name and the kind of frontend; None: not in the objects.
NameAndKind = tuple[str | None, str | None]


class ObjectNames:
    """Looks up names; `specs` returns the ServicePorts of the objects, once they are needed."""

    def __init__(self, specs: Callable[[], Sequence[ApiServicePort]] = tuple) -> None:
        self._specs = specs

    @cached_property
    def _by_chain(self) -> dict[str, str]:
        """Names by the hash at the end of the names of a ServicePort's chains."""
        found = {}
        for spec in self._specs():
            # Up to 1.18 the colon was there even if the port has no name.
            for raw in (spec.name, f"{spec.name}:"):
                found[names.chain_hash(raw, spec.protocol)] = spec.name
        return found

    @cached_property
    def _by_frontend(self) -> dict[tuple[Address | None, int, str], tuple[str, str]]:
        return {
            (address, port, spec.protocol): (spec.name, kind)
            for spec in self._specs()
            for kind, address, port in spec.frontends
        }

    def of(
        self, chain: str | None, address: Address | None, port: int, protocol: str
    ) -> NameAndKind:
        """Return the name and kind that the objects give a frontend; `chain`: where it leads."""
        by_chain = None
        for prefix in names.SERVICE_PREFIXES:
            if chain is not None and chain.startswith(prefix):
                by_chain = self._by_chain.get(chain.removeprefix(prefix))
                break
        name, kind = self._by_frontend.get((address, port, protocol), (None, None))
        if by_chain is not None and by_chain != name:
            return by_chain, None  # the chain is another Service's than the address is today
        return by_chain or name, kind
