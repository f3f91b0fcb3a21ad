"""What an address is to the node that the dump is from: which kind of source."""

from __future__ import annotations

from analyzer.errors import ParseError, UsageError
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from analyzer.model.region import holds


def source_kind(given: Input, client: Address) -> Source:
    """Return what a client is to the node; a pod, if nothing says otherwise."""
    if client in given.own or client.is_loopback:
        return Source.NODE
    parts = given.parts or (given,)
    part = next((each for each in parts if client.version in each.versions), parts[0])
    recogniser = part.recogniser
    try:
        is_outside = recogniser.is_outside(client)  # type: ignore[union-attr]  # of one part it is none of several
    except ParseError:
        is_outside = False
    if is_outside:  # so are other nodes, whose addresses are no pod's
        return Source.EXTERNAL
    places = recogniser.places(client.version)  # type: ignore[union-attr]  # as above
    is_elsewhere = holds(places.elsewhere, int(client)) and not holds(places.here, int(client))
    return Source.POD_ELSEWHERE if is_elsewhere else Source.POD


def client_source(
    asked: Source | Address | None, given: Input, *, balanced: bool
) -> tuple[Source, Address | None]:
    """Return where clients are, and the address of one, if it was asked for.

    Raises:
        UsageError: they are not outside the cluster, where a load balancer is.
    """
    if asked is None:
        return Source.EXTERNAL if balanced else Source.POD, None
    address = None if isinstance(asked, Source) else asked
    source = asked if isinstance(asked, Source) else source_kind(given, asked)
    if balanced and source is not Source.EXTERNAL:
        named = source.value if address is None else f"{address} ({source.value})"
        raise UsageError(f"--balancer and --from {named}: a load balancer is outside the cluster")
    return source, address
