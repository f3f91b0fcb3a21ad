"""What a node's own commands print besides its rules: its addresses and its routes."""

from __future__ import annotations

from analyzer.errors import InputError, UsageError, suggestion
from analyzer.inputs.files import Member, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.model.addresses import Address
    from analyzer.model.cluster import Cluster
    from analyzer.model.routing import Routes


def node_addresses(options: SimpleNamespace, cluster: Cluster) -> tuple[Address, ...]:
    """Return the addresses of the node that the options name; none where none is named.

    Those of ``--addresses`` are all that it has. Flows to a NodePort go to the first.

    Raises:
        InputError: the file of addresses is something else.
        OSError: it cannot be read.
        UsageError: the objects know no node of that name.
    """
    told = _addresses_of(options)
    given = tuple(options.node_ip)
    # Objects without nodes name those that have endpoints, and need not name all.
    if options.node is None or not options.objects or not cluster.nodes:
        return _with(given, told)
    if options.node not in cluster.nodes and options.node not in cluster.node_names:
        raise UsageError(
            f"--node {options.node}: the objects have no such node"
            + suggestion(options.node, cluster.node_names)
        )
    node = cluster.nodes.get(options.node)
    named = () if node is None else node.addresses
    # An address of the API may be translated to one of the node's on the way to it.
    return _with(given or tuple(each for each in named if each in told or not told), told)


def _with(first: tuple[Address, ...], told: tuple[Address, ...]) -> tuple[Address, ...]:
    rest = [each for each in told if not each.is_loopback]
    # Link-local addresses come last.
    return tuple(dict.fromkeys([*first, *sorted(rest, key=lambda each: each.is_link_local)]))


def _addresses_of(options: SimpleNamespace) -> tuple[Address, ...]:
    if options.addresses is None:
        return ()
    from analyzer.parsers.iproute import parse_addresses

    name = options.addresses
    found = parse_addresses(_read("--addresses", name, options), name)
    if not found and not isinstance(name, Member):  # a bundle may be of a namespace without any
        raise InputError(f"{name}: it contains no address; expected the output of `ip -j address`")
    return found


def routes_of(options: SimpleNamespace) -> Routes:
    """Return the node's routes; none: they are not known.

    Raises:
        InputError: a file is something else.
        OSError: it cannot be read.
    """
    from analyzer.model.routing import Routes

    if not options.routes:
        return Routes()
    from analyzer.parsers.iproute import parse_routes

    files = ((name, _read("--routes", name, options)) for name in options.routes)
    found = tuple(each for name, data in files for each in parse_routes(data, name).routes)
    named = [name for name in options.routes if not isinstance(name, Member)]
    if named and not found:  # a node in a bundle may have none
        raise InputError(f"{named[0]}: it contains no route; expected the output of `ip -j route`")
    return Routes(found)


def _read(option: str, name: str, options: SimpleNamespace) -> bytes:
    if name == "-":
        raise UsageError(f"{option} -: only a dump can be standard input")
    return read_file(name, options.max_input)


def told_by_routes(
    options: SimpleNamespace, cluster: Cluster, own: tuple[Address, ...]
) -> SimpleNamespace:
    """Return the options with the devices of pods that ``--routes`` shows, unless some are given.

    Raises:
        InputError: a file is something else.
        OSError: it cannot be read.
    """
    from analyzer.semantics.assumed import DEFAULTS, POD_INTERFACE

    if not options.routes or options.assumed.get(POD_INTERFACE) != DEFAULTS[POD_INTERFACE]:
        return options
    from analyzer.kubeproxy.matched.routed_devices import devices_of_pods
    from analyzer.kubeproxy.routes.pod_places import pod_places

    # Pods with the node's network have its addresses: where these are not known, any may be one.
    node = options.node if own else None
    places = [pod_places(version, cluster, node, own) for version in (4, 6)]
    found = devices_of_pods(routes_of(options), places, own)
    if not found:
        return options
    assumed = {**options.assumed, POD_INTERFACE: " ".join(found)}
    return type(options)(**{**vars(options), "assumed": assumed})
