"""Conntrack entries compared with the rules: flows to Services, and endpoints that look dead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.arguments.flow import RATE
from analyzer.errors import UsageError
from analyzer.failure.reached import Connectivity
from analyzer.failure.suspects import Suspect, suspects
from analyzer.failure.tracked import FlowServices, Owned
from analyzer.inputs.files import Member, read_file
from analyzer.inputs.recognised import Input
from analyzer.kubeproxy.rows.drawn import ProtocolAndEndpoint, drawn_in_rows, drawn_in_texts
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.value import replace
from analyzer.parsers.conntrack import parse_conntrack
from analyzer.questions.evaluating import evaluated_services
from analyzer.questions.next_command import command, dumps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace

    from analyzer.model.addresses import Address
    from analyzer.model.conntrack import Tracked


def suggested(options: SimpleNamespace, given: Input) -> str:
    """Return the command to run for endpoints that look dead in a bundle's conntrack.

    Empty if there is no conntrack listing, or no suspect endpoint.
    """
    if not options.conntrack:
        return ""
    _, owned, _ = owned_flows(options, given)
    return proposal(suspects(owned, RATE), given, options)


def owned_flows(
    options: SimpleNamespace, given: Input
) -> tuple[Sequence[Tracked], Sequence[Owned], Sequence[Diagnostic]]:
    """Return the conntrack entries, those to Services, and what was not understood.

    Raises:
        AnalyzerError: none are given, or a file is something else.
        OSError: it cannot be read.
    """
    if not options.conntrack:
        raise UsageError(
            "no conntrack entries: pass --conntrack FILE, the output of `conntrack -L` on the "
            "node, or a bundle of `kubeodds collect`"
        )
    told: list[Diagnostic] = []

    def read(names: Sequence[str]) -> list[Tracked]:
        found: list[Tracked] = []
        for name in names:
            here, unread = parse_conntrack(_data(name, options), name)
            found += here
            if unread:
                told.append(_not_understood(unread, name))
        return found

    flows = read(options.conntrack)
    # Files may overlap, and conntrack gives an entry twice if its table is resized meanwhile.
    flows = [*{(e.key, e.reply_source, e.reply_source_port): e for e in flows}.values()]
    # pinned goes by what there is now, suspects by all that came.
    known = {each.key for each in flows}
    later = {each.key: each for each in read(getattr(options, "again", ()))}
    flows += [replace(each, is_new=True) for key, each in later.items() if key not in known]
    _, services = evaluated_services(options, given)
    return flows, tuple(FlowServices(services, given.own).owned(flows)), told


def _not_understood(lines: Sequence[int], file: str) -> Diagnostic:
    more = f" and {len(lines) - 1:,} more" if lines[1:] else ""
    says = f"line {lines[0]}{more} of conntrack not understood: those flows do not count"
    return partial_warning("unread-flow", says, file, lines[0])


def _data(name: str, options: SimpleNamespace) -> bytes:
    return name.data if isinstance(name, Member) else read_file(name, options.max_input)


def reached(options: SimpleNamespace, given: Input) -> Connectivity:
    """Return what neighbours and routes show about reaching endpoints, if they are known."""
    from analyzer.inputs.node_files import routes_of
    from analyzer.parsers.neighbours import parse_neighbours

    lost: frozenset[Address] = frozenset()
    if options.neighbours is not None:
        lost = parse_neighbours(_data(options.neighbours, options), options.neighbours)
    places = [each.address for each in given.view.endpoints]
    return Connectivity(lost, routes_of(options), given.cluster, places)


def drawn_between(options: SimpleNamespace, given: Input) -> Mapping[ProtocolAndEndpoint, int]:
    """Return how many new flows each endpoint's DNAT counted between two dumps.

    None of those whose rules were taken once, or without counters, or in nftables mode, where they
    count nothing; or count less than before, as rules do that were rewritten.
    """
    if not options.rules_again:
        return {}
    before = drawn_in_rows(given.every_ruleset)
    after = drawn_in_texts((_data(name, options), name) for name in options.rules_again)
    known = before.keys() & after.keys()
    return {each: after[each] - before[each] for each in known if after[each] >= before[each]}


def proposal(found: Sequence[Suspect], given: Input, options: SimpleNamespace) -> str:
    """Return the command for the cost of suspect endpoints; empty if there are none."""
    named = [each for each in found if each.is_suspect]
    if not named:
        return ""
    words: list[str] = []
    nodes: dict[str | None, list[Suspect]] = {}
    for each in named:
        node = given.cluster.placement(each.endpoint.address).node
        nodes.setdefault(node, []).append(each)
    gone = [node for node in nodes if node is not None and _all_of(node, found, given)]
    for node in sorted(gone):
        words += ["--dead-node", node]
    rest = sorted(str(e) for n, rows in nodes.items() if n not in gone for e in _endpoints(rows))
    if rest:
        words += ["--dead", ",".join(rest)]
    return command(options, "loss", dumps_of(options), words)


def _endpoints(rows: Sequence[Suspect]) -> Iterator[Endpoint]:
    yield from dict.fromkeys(each.endpoint for each in rows)


def _all_of(node: str, found: Sequence[Suspect], given: Input) -> bool:
    """Return whether several pods of a node are suspect, and none there answers."""
    there = [e for e in found if given.cluster.placement(e.endpoint.address).node == node]
    addresses = {each.endpoint.address for each in there if each.is_suspect}
    return len(addresses) > 1 and not any(each.answered for each in there)


def foreign_endpoints(given: Input) -> Mapping[Endpoint, str]:
    """Return endpoints in the rules whose address now belongs to another pod, and which.

    One that a Service's EndpointSlices list, or that is a pod of its own namespace where none
    are listed, is where it should be.
    """
    owners: dict[str, list[str]] = {}
    for pod, addresses in given.pods().items():
        for address in addresses:
            owners.setdefault(address, []).append(pod)
    # Of both IP versions: a Service that has both is listed for each.
    listed: dict[tuple[str, str], set[Address]] = {}
    for spec in (*given.services(), *given.other_services()):
        key = spec.name, spec.protocol
        listed.setdefault(key, set()).update(each.address for each in spec.endpoints)
    found = {}
    for service in given.view.services:
        own_addresses = listed.get((service.name.text, service.protocol))
        for endpoint in service.endpoints:
            pods = owners.get(str(endpoint.address))
            if not pods or (own_addresses is not None and endpoint.address in own_addresses):
                continue
            own = f"{service.name.namespace}/"
            if own_addresses is not None or not any(each.startswith(own) for each in pods):
                found[endpoint] = pods[0]
    return found
