"""What the options name, read: the only file that opens files to read them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from analyzer.errors import InputError, UsageError, suggestion
from analyzer.kubeproxy.endpoint_rows import EndpointRows
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Address
from analyzer.model.rules import Ruleset
from analyzer.model.value import value
from analyzer.parsers.formats import read_ruleset
from analyzer.reports.progress import Advance, progress

TYPE_CHECKING = False
if TYPE_CHECKING:  # only what is asked for is loaded
    from analyzer.model.services import ApiServicePort
    from analyzer.parsers.api_objects import Object
    from analyzer.parsers.rows import Skim


@value(kw_only=True)
class Input:
    """What was read for a verb.

    Attributes:
        services: what the API says of ServicePorts of the dump's IP version; empty without objects.
    """

    ruleset: Ruleset
    cluster: Cluster
    recogniser: Recogniser
    view: View
    services: Callable[[], tuple[ApiServicePort, ...]]


class ApiObjects:
    """What is known from the API: the files of ``--objects``, decoded once, and ``--node-of``.

    Attributes:
        cluster: nodes, and where addresses live.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._items: list[Object] = []
        self._services: dict[int, tuple[ApiServicePort, ...]] = {}
        self.cluster = Cluster()
        if options.objects:
            from analyzer.parsers.api_objects import decode
            from analyzer.parsers.kubernetes import cluster_of

            files = list(_files_of_objects(options.objects))
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
        if version not in self._services:
            from analyzer.parsers.services import parse_services

            self._services[version] = parse_services(self._items, version)
        return self._services[version]


def read_input(options: argparse.Namespace) -> Input:
    """Read what the options name, and recognise the Services.

    Raises:
        AnalyzerError: the input is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    with progress("rules") as advance:
        ruleset, objects = read_dump(options, advance, EndpointRows.skim)
        version = 4 if ruleset.family == "ip" else 6
        names = None
        if options.objects:
            from analyzer.kubeproxy.object_names import ObjectNames

            names = ObjectNames(lambda: objects.services(version))
        recogniser = Recogniser(
            ruleset,
            objects.cluster,
            node=options.node,
            node_addresses=node_addresses(options, objects.cluster),
            advance=advance,
            object_names=names,
        )
        view = recogniser.view()
    return Input(
        ruleset=ruleset,
        cluster=objects.cluster,
        recogniser=recogniser,
        view=view,
        services=lambda: objects.services(version),
    )


def read_dump(
    options: argparse.Namespace, advance: Advance | None, skim: Skim | None = None
) -> tuple[Ruleset, ApiObjects]:
    """Read the dump and the objects that the options name.

    Raises:
        AnalyzerError: the input is none, or does not fit what was asked.
        OSError: a file cannot be read.
    """
    given = options.input_format, options.table, advance, skim
    if options.dump == "-":
        ruleset = read_ruleset(sys.stdin.buffer, "<stdin>", *given)
    else:
        with open(options.dump, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
            ruleset = read_ruleset(file, options.dump, *given)
    return ruleset, ApiObjects(options)


def _files_of_objects(names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Give name and content of each file; of a folder, of all that hold objects by their names.

    Raises:
        InputError: a folder holds none.
    """
    for name in names:
        if not os.path.isdir(name):  # noqa: PTH112  # pathlib is slow to load
            yield name, read_file(name)
            continue
        from analyzer.parsers.api_objects import holds_objects

        with os.scandir(name) as listed:
            inside = sorted(each.path for each in listed if each.name.split(".")[1:2] == ["json"])
        # Beside them other files may stand, of which nobody said that they are objects.
        found = [(file, data) for file in inside if holds_objects(data := read_file(file))]
        if not found:
            raise InputError(f"{name}: no file *.json of this folder holds API objects")
        yield from found


def read_file(name: str) -> bytes:
    """Return what a file holds; of ``-``, standard input.

    Raises:
        OSError: it cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    with open(name, "rb") as file:  # noqa: PTH123  # pathlib is slow to load
        return file.read()


def node_addresses(options: argparse.Namespace, cluster: Cluster) -> tuple[Address, ...]:
    """Return the addresses of the node that the options name; none where none is named.

    Raises:
        UsageError: the objects know no node of that name.
    """
    given = tuple(options.node_ip)
    if options.node is None or not options.objects:
        return given
    node = cluster.nodes.get(options.node)
    if node is None:
        raise UsageError(
            f"--node {options.node}: the objects have no such node"
            + suggestion(options.node, cluster.nodes)
        )
    return given or node.addresses
