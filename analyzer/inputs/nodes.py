"""Dumps of several nodes in one command: the node of each, and the results for each node.

Theory of operation: `dumps` assigns all dumps to one node as long as possible. It is not if two of
them were printed by the same program and both contain kube-proxy's rules of one IP version. Then,
and if several bundles or several names of nodes are given, they are split: by ``--node``, which
names the nodes in the order of the dumps; by bundles, each of which is of one node; or by the names
of files, without the words for programs and formats (``worker1-ip6tables-save.txt``). If that
leaves a doubt, nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from analyzer.errors import UsageError
from analyzer.inputs.api_objects import ApiObjects
from analyzer.inputs.dumps import goes_with, has_services, once
from analyzer.inputs.files import Member
from analyzer.inputs.reading import read_all
from analyzer.inputs.recognised import Input, input_of
from analyzer.kubeproxy.rows.endpoints import EndpointRows
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.value import value
from analyzer.reports.progress import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.semantics.base_chains import Rules

#: Words in names of files for the program that printed a dump, and for its format.
_PROGRAMS: Final = (
    "ip6|ip6?tables|nft|nftables|legacy|save|list|ruleset|(?:ip)?v[46]|rules|dump|"
    "txt|out|log|json|gz|xz|bz2|zst|tar|tgz"
)
# As text: to compile them takes longer than to read a small dump, and most calls have one.
_PROGRAM: Final = rf"(?i)(?:(?<=[-_./])|^)(?:{_PROGRAMS})(?=[-_.]|$)"
_SUFFIXES: Final = r"(?i)(?:\.(?:txt|out|log|json|nft|gz|xz|bz2|zst|tar|tgz))+$"
_HOW: Final = "say which node each is from: --node NAME,NAME,..., in the order of the dumps"


@value
class OfNode:
    """The dumps of one node.

    Attributes:
        name: the node's name in reports: its own, or one from its files.
        node: its name, if known.
        files: the dumps.
    """

    name: str
    node: str | None
    files: tuple[str, ...]


#: Options that are of one node, and their names.
_OF_ONE_NODE: Final = {
    "--with": "others",
    "--node-ip": "node_ip",
    "--ipsets": "ipsets",
    "--addresses": "addresses",
    "--routes": "routes",
}


@value
class NodeInput:
    """The input from one of several nodes, with the options for its dumps only."""

    of: OfNode
    given: Input
    options: SimpleNamespace


def read_nodes(options: SimpleNamespace) -> tuple[NodeInput, ...]:
    """Read the dumps that the options name; one entry if they are all from one node.

    Raises:
        AnalyzerError: the input is none, or does not fit the options.
        OSError: a file cannot be read.
    """
    with progress("rules") as advance:
        dumps, others = read_all(options, advance, EndpointRows.skim)
        known = ApiObjects(options)
        parted = parted_by_node(dumps, options.dumps, options.node, known.cluster.node_names)
        if len(parted) > 1:
            for option, name in _OF_ONE_NODE.items():
                if getattr(options, name):
                    raise UsageError(
                        f"{option}: of which node? There are dumps of {len(parted)} nodes"
                    )
        of_name = dict(zip(options.dumps, dumps, strict=True))
        found = []
        for each in parted:
            narrowed = {**vars(options), "node": each.node, "dumps": [*each.files]}
            own = type(options)(**narrowed)
            rules = [of_name[file] for file in each.files]
            found.append(NodeInput(each, input_of(own, rules, others, known, advance), own))
    return tuple(found)


def parted_by_node(
    dumps: Sequence[Rules], files: Sequence[str], named: str | None, known: Collection[str]
) -> tuple[OfNode, ...]:
    """Return the dumps by node; `named` is from ``--node``, `known` the nodes of the objects.

    Raises:
        UsageError: it is not clear which dump is of which node.
    """
    units = _units(files)
    names = named.split(",") if named else []
    if len(names) > 1:
        if len(names) != len(units):
            raise UsageError(f"--node names {len(names)} nodes for {len(units)} dumps; {_HOW}")
        return tuple(_by_name(names, units))
    bundles = [unit for unit in units if isinstance(unit[0], Member)]
    clash = _clash(dumps)
    if clash is not None and not names and bundles == units[:1] == units and _is_folder(units[0]):
        bundles = []  # not a bundle of one node: a folder of dumps
    if len(bundles) <= 1 and clash is None:
        return (OfNode(named or "", named, tuple(files)),)
    if names or (bundles and len(bundles) < len(units)):
        raise UsageError(f"these are dumps of several nodes; {_HOW}")
    groups = bundles or [*_by_files(dumps, files, clash)]
    return tuple(_labelled(groups, known))


def _is_folder(unit: Sequence[str]) -> bool:
    """Return whether a bundle may be no more than a folder of dumps: it names no node."""
    return not any(isinstance(file, Member) and file.node for file in unit)


def _units(files: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the files of each dump or bundle that was named.

    Raises:
        UsageError: one was named twice.
    """
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(file.bundle if isinstance(file, Member) else file, []).append(file)
    twice = next((each for each, of in found.items() if len({*of}) < len(of)), None)
    if twice is not None:
        raise UsageError(f"{twice}: it is named twice")
    return [tuple(each) for each in found.values()]


def _by_name(names: Sequence[str], units: Sequence[tuple[str, ...]]) -> Iterator[OfNode]:
    found: dict[str, list[str]] = {}
    for name, unit in zip(names, units, strict=True):
        if not name:
            raise UsageError(f"--node: a name is empty; {_HOW}")
        found.setdefault(name, []).extend(unit)
    for name, each in found.items():
        yield OfNode(name, name, tuple(each))


def _clash(dumps: Sequence[Rules]) -> tuple[Rules, Rules] | None:
    """Return two dumps with kube-proxy's rules of one IP version, which one node has once."""
    found = [each for each in once(dumps) if has_services(each)]
    pairs = ((b, a) for at, a in enumerate(found) for b in found[:at] if goes_with(a, b))
    return next(pairs, None)


def _by_files(
    dumps: Sequence[Rules], files: Sequence[str], clash: tuple[Rules, Rules] | None
) -> Iterator[tuple[str, ...]]:
    """Yield the files of each node: one file each, or those with similar names together.

    Raises:
        UsageError: two that conflict may be of one node, or names do not decide.
    """
    assert clash is not None
    groups: dict[str, list[int]] = {}
    for at, file in enumerate(files):
        alone = all(map(has_services, dumps)) and len({_versions(each) for each in dumps}) == 1
        groups.setdefault(str(at) if alone else without_program(file), []).append(at)
    of_each = [[dumps[at] for at in group] for group in groups.values()]
    programs = {_program(each) for each in dumps if has_services(each)}
    shown = [_shown(each) for each in of_each]
    alike = all(shown[0] == each for each in shown)
    if len(programs) > 1 or not alike or any(_clash(each) for each in of_each):
        before, after = (each.file for each in clash)
        raise UsageError(
            f"{after}: both this and {before} have rules of kube-proxy. If both are of one node, "
            f"pass one as DUMP, and the other with --with; if not, {_HOW}"
        )
    for group in groups.values():
        yield tuple(files[at] for at in group)


def _shown(dumps: Sequence[Rules]) -> set[str]:
    """Return the IP versions of which some dump has kube-proxy's rules."""
    return {_versions(each) for each in dumps if has_services(each)}


def _program(dump: Rules) -> str | None:
    """Return what keeps the rules of a dump; None if it does not say."""
    return dump.backend if isinstance(dump, Ruleset) else "ruleset"


def _versions(dump: Rules) -> str:
    return dump.family if isinstance(dump, Ruleset) else ""


def _labelled(groups: Sequence[tuple[str, ...]], known: Collection[str]) -> Iterator[OfNode]:
    """Yield the nodes with the first of their possible names that no other has."""
    bundles = {file.bundle for group in groups for file in group if isinstance(file, Member)}
    # The files of one folder distinguish nodes; otherwise the bundles do.
    is_whole = len(bundles) == len(groups)
    possible = [[*_names(group[0], known, is_whole=is_whole)] for group in groups]
    counted = Counter(name for each in possible for name in {*each})
    for names, group in zip(possible, groups, strict=True):
        own = [name for name in names if counted[name] == 1]
        name = own[0] if own else group[0]
        of_bundle = isinstance(group[0], Member) and name == group[0].node
        # A file may have any name: only names that the objects know are nodes.
        is_node = name in known or (of_bundle and not known)
        yield OfNode(name, name if is_node else None, group)


def _names(file: str, known: Collection[str], *, is_whole: bool) -> Iterator[str]:
    """Yield what the node of a file may be called, the best first; `is_whole`: of its bundle."""
    if isinstance(file, Member):
        if file.node:
            yield file.node
        inside = file.removeprefix(f"{file.bundle}:")
        file = file.bundle.rstrip("/") if is_whole else f"{file.bundle.rstrip('/')}/{inside}"
    folder, _, last = file.rpartition("/")
    bare = re.sub(_SUFFIXES, "", last)
    folder = folder.rpartition("/")[2]
    core = without_program(bare)
    said = [bare, core, folder]
    yield from (each for each in said if each in known)
    yield from (each for each in (core, folder, bare) if each)


def without_program(file: str) -> str:
    """Return the name of a file without the part that names its program."""
    return re.sub(r"[-_.]{2,}", "-", re.sub(_PROGRAM, "", file)).strip("-_.")
