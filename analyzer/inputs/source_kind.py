"""What an address is to the node that the dump is from: which kind of source."""

from __future__ import annotations

from analyzer.errors import ParseError, UsageError
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.view import FrontendKind, Source
from analyzer.model.addresses import Address
from analyzer.model.intervals import holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.kubeproxy.iptables import Recogniser
    from analyzer.kubeproxy.nftables import NftRecogniser

_PODS: Final = frozenset({Source.POD, Source.POD_ELSEWHERE})


def source_kind(given: Input, client: Address) -> Source:
    """Return what a client is to the node; a pod, if nothing says otherwise."""
    return _kind(given, client)[0]


def _recogniser(given: Input, client: Address) -> Recogniser | NftRecogniser:
    """Return that of the rules for an address' IP version."""
    parts = given.parts or (given,)
    part = next((each for each in parts if client.version in each.versions), parts[0])
    return part.recogniser  # type: ignore[return-value]  # of one part it is none of several


def client_source(
    asked: Source | Address | None, given: Input, *, balanced: bool
) -> tuple[Source, Address | None]:
    """Return where clients are, and the address of one, if it was asked for.

    Raises:
        UsageError: they are not outside the cluster, where a load balancer is; or the address is
            no client's; or nothing says where it is, so that rules on it were not evaluated.
    """
    if asked is None:
        return Source.EXTERNAL if balanced else Source.POD, None
    address = None if isinstance(asked, Source) else asked
    source = asked if isinstance(asked, Source) else _kind_of_client(asked, given)
    if balanced and source is not Source.EXTERNAL:
        named = source.value if address is None else f"{address} ({source.value})"
        raise UsageError(f"--balancer and --from {named}: a load balancer is outside the cluster")
    if (
        address is not None
        and source in _PODS
        and not _recogniser(given, address).covers(source, address)
    ):
        raise UsageError(
            f"--from {address}: not known where it is, since it is in no network of pods; "
            "--node-of NETWORK=NODE says it"
        )
    return source, address


def _kind_of_client(client: Address, given: Input) -> Source:
    versions = {each for part in given.parts or (given,) for each in part.versions}
    if client.version not in versions:
        of = " and ".join(f"IPv{each}" for each in sorted(versions))
        raise UsageError(f"--from {client}: the rules are for {of}")
    source, is_known = _kind(given, client)
    if source in {Source.NODE, Source.EXTERNAL} or is_known:
        return source
    if client.is_link_local:
        raise UsageError(
            f"--from {client}: a link-local address does not say where a client is; pass --from "
            "node, external or pod"
        )
    if any(each.code == "no-comment" for each in given.view.diagnostics):
        return source  # the kinds of frontends are guesses
    for service in given.view.services:
        kinds = {each.kind for each in service.frontends if each.address == client}
        if FrontendKind.CLUSTER_IP in kinds:
            raise UsageError(
                f"--from {client}: that is the ClusterIP of {service.name.text}, and no client has "
                "it; pass the address of a pod, or --from pod"
            )
    return source


def _kind(given: Input, client: Address) -> tuple[Source, bool]:
    """Return what a client is, and whether a network of pods is known that has its address."""
    if client in given.own or client.is_loopback:
        return Source.NODE, False
    recogniser = _recogniser(given, client)
    try:
        is_outside = recogniser.is_outside(client)
    except ParseError:
        is_outside = False
    if is_outside:  # so are other nodes, whose addresses are no pod's
        return Source.EXTERNAL, False
    places = recogniser.places(client.version)
    here, elsewhere = (holds(each, int(client)) for each in (places.here, places.elsewhere))
    if here or elsewhere:
        return Source.POD if here else Source.POD_ELSEWHERE, True
    # One of no node that the objects have is not on this node.
    is_others = recogniser.covers(Source.POD_ELSEWHERE, client)
    is_others = is_others and not recogniser.covers(Source.POD, client)
    return Source.POD_ELSEWHERE if is_others else Source.POD, False
