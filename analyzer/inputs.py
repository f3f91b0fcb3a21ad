"""What the options name, read: the only file that opens files to read them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from analyzer.errors import InputError, ParseError, UsageError, suggestion
from analyzer.kubeproxy.endpoint_rows import EndpointRows
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers.formats import read_ruleset
from analyzer.reports.progress import Advance, progress

TYPE_CHECKING = False
if TYPE_CHECKING:  # only what is asked for is loaded
    from types import SimpleNamespace

    from analyzer.kubeproxy.absent import Absent
    from analyzer.kubeproxy.diff.side import Side
    from analyzer.kubeproxy.nftables import NftRecogniser
    from analyzer.model.services import ApiServicePort
    from analyzer.parsers.api_objects import Object
    from analyzer.parsers.rows import Skim
    from analyzer.semantics.base_chains import Rules


@value(kw_only=True)
class Input:
    """What was read for a verb.

    Attributes:
        rulesets: all that the node has, that of the dump first.
        services: what the API says of ServicePorts of the dump's IP version; empty without objects.
        other_services: the same of the other version, where the dump is of one only.
        own: the node's addresses; none: they are not known.
    """

    rulesets: tuple[Rules, ...]
    cluster: Cluster
    recogniser: Recogniser | NftRecogniser
    view: View
    services: Callable[[], tuple[ApiServicePort, ...]]
    other_services: Callable[[], tuple[ApiServicePort, ...]]
    own: tuple[Address, ...]

    @property
    def ruleset(self) -> Rules:
        """The dump that was asked about."""
        return self.rulesets[0]

    @property
    def versions(self) -> tuple[int, ...]:
        """The IP versions of the rules, 4 or 6 or both."""
        return _versions(self.ruleset)

    def absent(self) -> Absent:
        """Return the ServicePorts that the objects list and the dump does not show."""
        from analyzer.kubeproxy.absent import absent

        return absent(self.ruleset, self.view, self.services(), self.other_services())

    def side(self, version: int) -> Side:
        """Return what can be compared with another dump, of one IP version."""
        from analyzer.kubeproxy.diff.side import Side

        return Side(
            self.rulesets,
            self.view,
            self.cluster,
            version=version,
            sources=self.recogniser.source_address,
            own=tuple(address for address in self.own if address.version == version),
            node_port_address=self.recogniser.node_port_address(version),
        )


class ApiObjects:
    """What is known from the API: the files of ``--objects``, decoded once, and ``--node-of``.

    Attributes:
        cluster: nodes, and where addresses live.
    """

    def __init__(self, options: SimpleNamespace) -> None:
        self._items: list[Object] = []
        self._services: dict[int, tuple[ApiServicePort, ...]] = {}
        self.cluster = Cluster()
        if options.objects:
            from analyzer.parsers.api_objects import decode
            from analyzer.parsers.kubernetes import cluster_of

            files = list(_files_of_objects(options.objects, options.max_input))
            self._items = decode(files)
            self.cluster = cluster_of(self._items, ", ".join(name for name, _ in files))
        said = dict(options.node_of)
        for network, node in options.node_of:
            if said[network] != node:
                raise UsageError(f"--node-of {network}: is it {node}'s, or {said[network]}'s?")
        if said:
            self.cluster = self.cluster.with_networks(said.items())

    def services(self, version: int) -> tuple[ApiServicePort, ...]:
        """Return the ServicePorts of an IP version, 4 or 6."""
        if not self._items:
            return ()
        if version not in self._services:
            from analyzer.parsers.services import parse_services

            self._services[version] = parse_services(self._items, version)
        return self._services[version]


def read_two(options: SimpleNamespace) -> tuple[Input, Input]:
    """Read the two dumps that the options name, and recognise the Services of both.

    Raises:
        AnalyzerError: one of them is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    from types import SimpleNamespace

    if options.a == options.b == "-":
        raise UsageError("A and B are both -: only one of them can be standard input")
    given = vars(options)
    of_a = SimpleNamespace(**{**given, "dump": options.a})
    of_b = SimpleNamespace(**{**given, "dump": options.b, "others": options.others_b})
    if options.node_b is not None or options.node_ip_b:
        of_b.node, of_b.node_ip = options.node_b, options.node_ip_b
    objects = ApiObjects(options)
    return read_input(of_a, objects), read_input(of_b, objects)


def read_input(options: SimpleNamespace, objects: ApiObjects | None = None) -> Input:
    """Read what the options name, and recognise the Services; `objects`, if they are read already.

    Raises:
        AnalyzerError: the input is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    with progress("rules") as advance:
        rulesets = _read_all(options, advance, EndpointRows.skim)
        known = ApiObjects(options) if objects is None else objects
        own = node_addresses(options, known.cluster)
        recogniser = _recogniser(options, rulesets, known, own, advance)
        view = recogniser.view()
    versions = _versions(rulesets[0])
    return Input(
        rulesets=rulesets,
        cluster=known.cluster,
        recogniser=recogniser,
        view=view,
        services=lambda: _services(versions, known),
        other_services=lambda: _services([v for v in (4, 6) if v not in versions], known),
        own=own,
    )


def _versions(ruleset: Rules) -> tuple[int, ...]:
    return (4 if ruleset.family == "ip" else 6,) if isinstance(ruleset, Ruleset) else (4, 6)


def _services(versions: Iterable[int], objects: ApiObjects) -> tuple[ApiServicePort, ...]:
    return tuple(each for version in versions for each in objects.services(version))


def _recogniser(
    options: SimpleNamespace,
    rulesets: Sequence[Rules],
    objects: ApiObjects,
    own: tuple[Address, ...],
    advance: Advance | None,
) -> Recogniser | NftRecogniser:
    ruleset, *others = rulesets
    names = None
    if options.objects:
        from analyzer.kubeproxy.object_names import ObjectNames

        names = ObjectNames(lambda: _services(_versions(ruleset), objects))
    if isinstance(ruleset, Ruleset):
        return Recogniser(
            ruleset,
            objects.cluster,
            node=options.node,
            node_addresses=own,
            advance=advance,
            object_names=names,
            others=others,
        )
    from analyzer.kubeproxy.nftables import NftRecogniser

    return NftRecogniser(
        ruleset,
        objects.cluster,
        node=options.node,
        node_addresses=own,
        advance=advance,
        object_names=names,
        others=others,
    )


def outsiders(
    options: SimpleNamespace,
    rulesets: Sequence[Rules],
    objects: ApiObjects,
    own: tuple[Address, ...],
) -> Callable[[Address], bool]:
    """Return what tells whether an address is certainly neither a pod's nor the node's.

    It reads the Services out of the rules when it is asked, and not before.
    """

    def is_outside(address: Address) -> bool:
        try:
            return _recogniser(options, rulesets, objects, own, None).is_outside(address)
        except ParseError:  # of a rule that the packet does not come to: it hides what is a pod's
            return False

    return is_outside


def read_dumps(
    options: SimpleNamespace, advance: Advance | None
) -> tuple[tuple[Rules, ...], ApiObjects]:
    """Read the dumps, of which the first is the one that is asked about, and the objects.

    Raises:
        AnalyzerError: the input is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    return _read_all(options, advance), ApiObjects(options)


def _read_all(
    options: SimpleNamespace, advance: Advance | None, skim: Skim | None = None
) -> tuple[Rules, ...]:
    most = options.max_input
    first = _read(options.dump, options.input_format, options.table, advance, skim, most=most)
    # What else the node has is read for its rules, not for its Services.
    return first, *[_read(name, None, None, advance, None, most=most) for name in options.others]


def _read(
    name: str,
    input_format: str | None,
    table: str | None,
    advance: Advance | None,
    skim: Skim | None,
    *,
    most: int,
) -> Rules:
    given = input_format, table, advance, skim
    if name == "-":
        return read_ruleset(sys.stdin.buffer, "<stdin>", *given, most=most)
    with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
        return read_ruleset(file, name, *given, most=most)


def _files_of_objects(names: Sequence[str], most: int) -> Iterator[tuple[str, bytes]]:
    """Give name and content of each file; of a folder, of all that hold objects by their names.

    Raises:
        InputError: a folder holds none.
    """
    for name in names:
        if not os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
            yield name, read_file(name, most)
            continue
        from analyzer.parsers.api_objects import holds_objects

        with os.scandir(name) as listed:
            inside = sorted(each.path for each in listed if each.name.split(".")[1:2] == ["json"])
        # Beside them other files may stand, of which nobody said that they are objects.
        found = [(file, data) for file in inside if holds_objects(data := read_file(file, most))]
        if not found:
            raise InputError(f"{name}: no file *.json of this folder holds API objects")
        yield from found


def read_file(name: str, most: int) -> bytes:
    """Return what a file holds, unpacked; of ``-``, standard input.

    Raises:
        InputError: that is more than `most` bytes, or damaged.
        OSError: it cannot be read.
    """
    from analyzer.parsers.compression import decompress
    from analyzer.parsers.contents import contents

    try:
        if name == "-":
            return decompress(bytes(contents(sys.stdin.buffer, most)), most)
        with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
            return decompress(bytes(contents(file, most)), most)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def node_addresses(options: SimpleNamespace, cluster: Cluster) -> tuple[Address, ...]:
    """Return the addresses of the node that the options name; none where none is named.

    Raises:
        UsageError: the objects know no node of that name.
    """
    given = tuple(options.node_ip)
    # Objects without nodes name those that have endpoints, and need not name all.
    if options.node is None or not options.objects or not cluster.nodes:
        return given
    if options.node not in cluster.node_names:
        raise UsageError(
            f"--node {options.node}: the objects have no such node"
            + suggestion(options.node, cluster.node_names)
        )
    node = cluster.nodes.get(options.node)
    return given or (() if node is None else node.addresses)
