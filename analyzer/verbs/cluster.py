"""``cluster`` and its subcommands: the dumps of all nodes, read once and queried together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from analyzer.cluster.from_dumps import FromDumps
from analyzer.cluster.store import NodeRow, Store
from analyzer.errors import InputError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.kubeproxy.absent import Absent, absent_of
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.untold import JudgedInPart, Untold
from analyzer.kubeproxy.view import ServicePort, View
from analyzer.model.addresses import IPV4, IPV6
from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.value import replace
from analyzer.output import finish
from analyzer.questions.evaluating import concerning, selected
from analyzer.questions.predicting import Everywhere
from analyzer.reports.not_judged import not_at
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

#: Most ServicePorts missing at some nodes that are reported one by one.
_MOST_TOLD: Final = 20
#: Why ServicePorts of an IP version are not judged at some nodes.
_NO_VERSION: Final = "Not judged, since no rules of that IP version are known there"


def run_verb(options: SimpleNamespace) -> int:
    """Run a verb of ``cluster`` and return the exit status."""
    return _VERBS[options.verb](options)


def _build(options: SimpleNamespace) -> int:
    from analyzer.node_dumps.build import build

    return build(options)


def _loss(options: SimpleNamespace) -> int:
    from analyzer.verbs.loss_everywhere import loss_of

    objects, found = stored(options)
    return loss_of(options, objects, found)


def _whatif(options: SimpleNamespace) -> int:
    from analyzer.verbs.failures import whatif_of

    objects, found = stored(options)
    return whatif_of(options, objects, found)


def _drift(options: SimpleNamespace) -> int:
    from analyzer.questions.cluster_drift import drift_of

    return drift_of(options)


def _timeline(options: SimpleNamespace) -> int:
    from analyzer.verbs.cluster_timeline import timeline

    return timeline(options)


def _sql(options: SimpleNamespace) -> int:
    from analyzer.reports.cluster_sql_answer import SqlAnswer

    store = Store.open(options.folder)
    columns, rows = store.query(options.sql)
    store.close()
    return finish(options, options.verb, SqlAnswer(tuple(columns), tuple(rows)), (), no=False)


_VERBS: Final[dict[str, Callable[[SimpleNamespace], int]]] = {
    "cluster build": _build,
    "cluster loss": _loss,
    "cluster whatif": _whatif,
    "cluster drift": _drift,
    "cluster timeline": _timeline,
    "cluster sql": _sql,
}


def stored(options: SimpleNamespace) -> tuple[ApiObjects, Everywhere]:
    """Return what the dumps of a store show, and the objects that it was built with.

    Raises:
        AnalyzerError: there is no such store, or no such ServicePort.
        OSError: it cannot be read.
    """
    store = Store.open(options.folder)
    if not options.objects and store.objects:
        options.objects = [store.objects]
    said = [each.partition("=") for each in store.about["asked"]["node_of"]]
    if not options.node_of and said:
        from analyzer.arguments.parser import network_of_node

        options.node_of = [network_of_node("".join(each)) for each in said]
    objects = ApiObjects(options)
    nodes = store.nodes()
    services = store.every_node()
    store.close()
    read = _from_dumps(options.folder, nodes, objects)
    known = [each for each in nodes if each.is_done and not each.unseen]
    if not known:
        raise InputError(f"{options.folder}: the rules of no node are known; {_why(read)}")
    if not services:
        raise InputError(f"{options.folder}: no node's rules have a Service to judge")
    return objects, _Stored(options, objects, read, known, services).but(frozenset())


class _Stored:
    """What the tables of a store say of Services, with some nodes left out of account."""

    def __init__(
        self,
        options: SimpleNamespace,
        objects: ApiObjects,
        read: FromDumps,
        known: Sequence[NodeRow],
        services: Sequence[EveryNode],
    ) -> None:
        self._options = options
        self._objects = objects
        self._read = read
        self._known = known
        self._services = services
        self._lacking = tuple(_lacking(services))
        self._is_stale = _is_stale(objects)
        self._no_version = dict(_no_version(services, known))

    def but(self, gone: Collection[str]) -> Everywhere:
        """Return what is known, where it does not matter what these nodes' rules do or lack.

        Raises:
            AnalyzerError: there is no such ServicePort.
        """
        options, services = self._options, self._services
        known = [each for each in self._known if each.node not in gone]
        read = self._read.but(gone)
        view = View(
            services=tuple(each.service for each in services),
            mode=ProxyMode(Counter(each.mode for each in known).most_common(1)[0][0]),
            node=None,
            cut=tuple(dict.fromkeys(version for each in known for version in each.cut)),
            untold=tuple(dict.fromkeys(_untold(known))),
            left_out=tuple(dict.fromkeys(name for each in known for name in each.left_out)),
            unled=tuple(dict.fromkeys(name for each in known for name in each.unled)),
        )
        absent, asked = selected(options, view, _absent(view, known, self._objects), "these dumps")
        if not asked:
            raise InputError(f"{options.folder}: no node's rules have the Service to judge")
        lacking, no_version = self._lacking_of(asked, gone)
        diagnostics = (
            *_told(read, lacking | no_version, options.folder),
            *_in_part(known, options.folder),
        )
        in_part = (
            *(JudgedInPart(name, not_at(nodes)) for name, nodes in lacking.items()),
            *(JudgedInPart(name, _NO_VERSION) for name in no_version),
        )
        view = replace(view, diagnostics=diagnostics, in_part=in_part)
        of = {id(shown): each for shown, each in zip(view.services, services, strict=True)}
        return Everywhere(
            view=concerning(options, view, absent, asked),
            services=tuple(of[id(each)] for each in asked),
            asked=asked,
            absent=absent,
            file=options.folder,
            # A dead node is one of the cluster, whatever is known of its rules.
            grounds=self._read,
            diagnostics=diagnostics,
            but=self.but,
        )

    def _lacking_of(
        self, asked: Sequence[ServicePort], gone: Collection[str]
    ) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the ServicePorts asked about, and IP versions, that living nodes do not have.

        Each with these nodes. What they lack of other Services does not matter.
        """
        wanted = set(map(id, asked))
        lacking: dict[str, list[str]] = {}
        living = {each.node for each in self._known if each.node not in gone}
        for each, nodes in self._lacking:
            if living.issubset(nodes) and self._is_stale(each):
                continue
            if id(each) in wanted and (at := _others(nodes, gone)):
                # Of both IP versions there may be one of that name.
                of_both = {*lacking.get(each.name.text, ()), *at}
                lacking[each.name.text] = sorted(of_both)
        versions = {each.version for each in asked}
        no_version = {
            f"IPv{version} at {listed(at)}": at
            for version, nodes in self._no_version.items()
            if version in versions and (at := _others(nodes, gone))
        }
        return lacking, no_version


def _is_stale(objects: ApiObjects) -> Callable[[ServicePort], bool]:
    """Return a function that says whether the objects show that there is no such ServicePort."""
    specs = [each for version in (IPV4, IPV6) for each in objects.services(version)]
    names = {(each.name, each.protocol) for each in specs}
    places = {(each.protocol, *at) for each in specs for _, *at in each.frontends}

    def is_stale(service: ServicePort) -> bool:
        if not specs or (service.name.text, service.protocol) in names:
            return False
        own = {(service.protocol, each.address, each.port) for each in service.frontends}
        return places.isdisjoint(own)

    return is_stale


def _others(nodes: Sequence[str], gone: Collection[str]) -> list[str]:
    return [each for each in nodes if each not in gone]


def _from_dumps(folder: str, nodes: Sequence[NodeRow], objects: ApiObjects) -> FromDumps:
    done = [each for each in nodes if each.is_done]
    there = {each.node for each in nodes}
    known = objects.cluster.node_names if objects.items else there
    return FromDumps(
        folder=folder,
        nodes=tuple(each.node for each in done if not each.unseen),
        failed=tuple((each.node, each.reason) for each in nodes if not each.is_done),
        unseen=tuple((each.node, each.unseen) for each in done if each.unseen),
        without=tuple(sorted(name for name in objects.cluster.nodes if name not in there)),
        unknown=tuple(sorted(there.difference(known))),
    )


def _untold(known: Sequence[NodeRow]) -> Iterator[Untold]:
    from analyzer.cluster.facts import from_text

    for each in known:
        facts = from_text(each.facts)
        yield from (Untold(f"{part} of some nodes") for part in facts.untold)
        yield from (Untold(f"{part} at some nodes", part) for part in facts.frames)


def _lacking(
    services: Sequence[EveryNode],
) -> Iterator[tuple[ServicePort, list[str]]]:
    """Yield ServicePorts with the nodes whose dumps do not show them.

    Of an IP version of which a node has no ServicePort at all, it may have no dump.
    """
    of_version = _of_version(services)
    for each in services:
        there = frozenset().union(*(at.nodes for at in each.at))
        without = of_version.get(each.service.version, set()) - there
        if without and not each.service.is_host_port:
            yield each.service, sorted(without)


def _no_version(
    services: Sequence[EveryNode], known: Sequence[NodeRow]
) -> Iterator[tuple[int | None, list[str]]]:
    """Yield IP versions with the nodes that have no ServicePort of them, in which others do."""
    names = {each.node for each in known}
    for version, own in _of_version(services).items():
        if without := sorted(names - own):
            yield version, without


def _of_version(services: Sequence[EveryNode]) -> dict[int | None, set[str]]:
    """Return by IP version the nodes that have a ServicePort of it, besides hostPorts."""
    found: dict[int | None, set[str]] = {}
    for each in services:
        if not each.service.is_host_port:  # each node has its own
            found.setdefault(each.service.version, set()).update(*(at.nodes for at in each.at))
    return found


def _absent(view: View, known: Sequence[NodeRow], objects: ApiObjects) -> Absent:
    """Return the ServicePorts that no node's rules have."""
    own = {each.version for each in view.services}
    specs = {version: objects.services(version) for version in (IPV4, IPV6)}
    return absent_of(
        view,
        [each for version in specs if version in own for each in specs[version]],
        [each for version in specs if version not in own for each in specs[version]],
        tells_refusals=any(map(_tells_refusals, known)),
        lists_endpoints=objects.lists_endpoints,
    )


def _tells_refusals(node: NodeRow) -> bool:
    """Return whether a node's rules show Services without endpoints."""
    from analyzer.cluster.facts import from_text

    facts = from_text(node.facts)
    return not node.cut and not facts.cut and not facts.untold


def _told(read: FromDumps, lacking: dict[str, list[str]], folder: str) -> Iterator[Diagnostic]:
    if read.failed or read.unseen:
        missing = [name for name, _ in (*read.failed, *read.unseen)]
        says = f"not judged, since their rules are not known: {listed(missing)}"
        yield partial_warning("node-failed", says, folder)
    if read.without:
        says = (
            f"not judged, since there is no dump of {count(len(read.without), 'node')} of the "
            f"objects: {listed(read.without)}"
        )
        yield partial_warning("node-without-dump", says, folder)
    if read.unknown:
        says = (
            f"the objects have no node named {listed(read.unknown)}, so it is not known what is "
            "dead or alive there; see --name-from of cluster build"
        )
        yield partial_warning("unknown-node", says, folder)
    for name, nodes in [*lacking.items()][:_MOST_TOLD]:
        says = f"{name}: the rules of {listed(nodes)} do not have it"
        yield partial_warning("missing-service", says, folder)
    if len(lacking) > _MOST_TOLD:
        says = f"{count(len(lacking) - _MOST_TOLD, 'more ServicePort')} are not at every node"
        yield partial_warning("missing-service", says, folder)


def _in_part(known: Sequence[NodeRow], folder: str) -> Iterator[Diagnostic]:
    from analyzer.cluster.facts import from_text

    cut = [each.node for each in known if each.cut]
    if cut:
        says = f"read only in part, since dumps are truncated: {listed(cut)}"
        yield partial_warning("node-truncated", says, folder)
    lacking: dict[str, list[str]] = {}
    for each in known:
        for part in from_text(each.facts).untold:
            lacking.setdefault(part, []).append(each.node)
    for part, nodes in lacking.items():
        says = f"read only in part, since dumps lack {part}: {listed(nodes)}"
        yield partial_warning("node-lacks-table", says, folder)


def _why(read: FromDumps) -> str:
    """Return why no node is known, of the first of them."""
    first = next(iter((*read.failed, *read.unseen)), None)
    return "it contains no node" if first is None else f"{first[0]}: {first[1]}"
