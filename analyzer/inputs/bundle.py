"""A bundle in place of a dump: an archive or folder of ``collect`` or another collector.

Theory of operation: a bundle is replaced by the dumps in it, which `dumps` distinguishes as if they
had been named one by one; by the API's objects, if no others are named; and for ``trace`` by the
node's addresses. Files are recognised by their beginnings (`parsers.bundled`), and belong to the
node that their place in the bundle shows (`bundle_nodes`). Later copies (``again/``) are of the
same rules, and are ignored. If rules may be missing, the bundle is refused: they would otherwise
count as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from analyzer.errors import InputError, UsageError, suggestion
from analyzer.inputs.files import Member, may_be_bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.inputs.bundle_files import BundleFile
    from analyzer.inputs.bundle_nodes import NodeFiles

#: Most files of a kind that are named in a message.
_FEW: Final = 4
#: By option, the kind of file that it could name.
_OPTIONS: Final = {"addresses": "addresses", "ipsets": "ipsets", "neighbours": "neighbours"}
#: The same of options that may name several, and whether of what was taken again later.
_SEVERAL: Final = {
    "conntrack": ("conntrack", False),
    "again": ("conntrack", True),
    "routes": ("routes", False),
    "rules_again": ("iptables-save", True),
}


def opened(options: SimpleNamespace, tell: Callable[[str], None]) -> SimpleNamespace:
    """Return the options with bundles replaced by their files; `tell` is called with a summary.

    Raises:
        InputError: a bundle contains no dump, or an incomplete one, or is damaged.
        OSError: it cannot be read.
        UsageError: it contains dumps of several nodes, and the verb takes those of one.
    """
    given = vars(options)
    if "a" in given:  # two dumps; objects are of both, and of two bundles each has its own
        for place, node in (("a", options.node), ("b", options.node_b or options.node)):
            bundle = _read(given[place], options)
            if bundle is not None:
                chosen, _ = bundle.chosen(node, several=False)
                given = {**given, place: bundle.dumps(chosen)}
                tell(bundle.used(given[place]))
        return options if given == vars(options) else _with(options, given)
    dumps: list[str] = []
    objects: list[Member] = []
    for name in options.dumps:
        bundle = _read(name, options)
        if bundle is None:
            dumps.append(name)
            continue
        chosen, is_name = bundle.chosen(given["node"], several=_takes_several(options))
        used = bundle.dumps(chosen)
        dumps += used
        if is_name is not None:  # of the bundle, and not of the API
            given = {**given, "node": is_name or None}
        if "objects" in given and not options.objects:
            objects += bundle.objects
            used = [*used, *bundle.objects]
        for option, found in bundle.others(chosen).items():
            if option == "addresses" and given["node_ip"]:  # the user knows better
                continue
            if option in given and not given[option]:
                given = {**given, option: found}
                used.append(found)
        for option, files in bundle.several(chosen).items():
            if given.get(option) == []:  # else a verb takes none, or one file of that name
                given = {**given, option: files}
                used += files
        tell(bundle.used(used))
    if options.dumps and not dumps:
        raise InputError(f"{options.dumps[0]}: it contains no rules; collect as root, on a node")
    if objects:
        given = {**given, "objects": objects}
    return _with(options, {**given, "dumps": dumps})


def _takes_several(options: SimpleNamespace) -> bool:
    """Return whether a verb judges several nodes."""
    return options.verb == "loss" or bool(getattr(options, "balancer", None))


def _with(options: SimpleNamespace, given: Mapping[str, object]) -> SimpleNamespace:
    return type(options)(**given)


class _Bundle:
    """Files of one bundle, by node."""

    def __init__(self, name: str, files: Sequence[BundleFile]) -> None:
        from analyzer.inputs.bundle_nodes import nodes_of

        self._name = name
        self._nodes = nodes_of(name, files)
        root = self._nodes[0].root if len(self._nodes) == 1 else ""
        self.objects = [
            Member.of(name, each.path.removeprefix(root), each.data, "")
            for each in files
            if each.kind == "objects"
        ]
        self._seen = [each.path for each in files if each.kind == "list-without-devices"]

    def chosen(self, node: str | None, *, several: bool) -> tuple[list[NodeFiles], str | None]:
        """Return the nodes to analyse, and the value of ``--node`` for them, if that changes.

        Raises:
            UsageError: they are several, and the verb takes one.
        """
        from analyzer.inputs.bundle_nodes import parted

        nodes = self._nodes
        if not several:
            nodes = [part for each in nodes for part in parted(each)]
        if len(nodes) <= 1:
            return nodes, None
        named = [each for each in nodes if each.label == node]
        if named:
            return named, named[0].node
        if several:
            return nodes, None
        labels = [each.label for each in nodes]
        raise UsageError(
            f"{self._name}: it contains dumps of {len(labels)} nodes; choose one with --node "
            f"NAME{suggestion(node or '', labels)}"
        )

    def dumps(self, nodes: Sequence[NodeFiles]) -> list[str]:
        """Return the files that hold rules.

        Raises:
            InputError: there are none.
        """
        found: list[str] = [file for each in nodes for file in each.rules]
        if not found and not self.objects:
            raise InputError(
                f"{self._name}: it contains no rules{self._unknown(nodes)}; {self._why}"
            )
        return found

    @property
    def _why(self) -> str:
        if not self._seen:
            return "collect as root, on a node"
        return (
            f"{self._seen[0]} is a listing of `iptables -L` without -v, which leaves out the "
            "devices that rules match on; run `iptables-save` on the node"
        )

    def others(self, nodes: Sequence[NodeFiles]) -> dict[str, Member]:
        """Return for each option the only file that it could name."""
        if len(nodes) != 1:
            return {}
        by_kind = {option: nodes[0].others.get(kind, []) for option, kind in _OPTIONS.items()}
        return {option: found[0] for option, found in by_kind.items() if len(found) == 1}

    @staticmethod
    def several(nodes: Sequence[NodeFiles]) -> dict[str, list[Member]]:
        """Return for each option the files that it could name; none if there are several nodes."""
        if len(nodes) != 1:
            return {}
        return {
            option: found
            for option, (kind, later) in _SEVERAL.items()
            if (found := [e for e in nodes[0].others.get(kind, []) if _is_later(e) is later])
        }

    def used(self, files: Sequence[str]) -> str:
        """Return a note of the files that are used, and of the rules that are not known."""
        inside = [
            file.removeprefix(f"{self._name}:").removeprefix(f"{self._name}/") for file in files
        ]
        objects = [each for each in inside if f"{self._name}:{each}" in self.objects]
        names = [each for each in inside if each not in objects]
        if len(objects) > _FEW:
            shown = ", ".join(objects[: _FEW - 1])
            names.append(f"{shown} and {len(objects) - _FEW + 1} more files with API objects")
        else:
            names += objects
        return f"{self._name}: using {', '.join(names)}{self._unknown(self._nodes)}"

    def has_unknown(self) -> bool:
        """Return whether a program is there without any rules."""
        return any(each.failed for each in self._nodes)

    @staticmethod
    def _unknown(nodes: Sequence[NodeFiles]) -> str:
        failed = ", ".join(file for each in nodes for file in each.failed)
        return f"; could not be collected: {failed}" if failed else ""


def _is_later(file: str) -> bool:
    return "/again/" in file.replace(":", "/")


def _read(name: str, options: SimpleNamespace) -> _Bundle | None:
    if not may_be_bundle(name):
        return None
    from analyzer.inputs.bundle_files import kept_files

    files = kept_files(name, options.max_input)
    if files is None:
        return None
    bundle = _Bundle(name, files)
    if options.strict and bundle.has_unknown():
        nodes, _ = bundle.chosen(options.node, several=True)
        raise InputError(f"--strict: {bundle.used(bundle.dumps(nodes))}")
    return bundle
