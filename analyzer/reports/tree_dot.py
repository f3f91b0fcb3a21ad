"""``tree`` for Graphviz: ``kubeodds tree ... --format dot | dot -Tsvg``.

Source: graphviz.org, The DOT Language: quoted strings, ``escString`` of labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.model.text import printable
from analyzer.reports.answers import TreeAnswer
from analyzer.reports.numbers import bounds_percent, fraction
from analyzer.reports.outcomes import describe
from analyzer.reports.phrases import SOURCES
from analyzer.reports.route_networks import networks
from analyzer.reports.rules import says, signed_place
from analyzer.semantics.onward import chain_of
from analyzer.semantics.tree import AnyRule, Chance, Either, Leaf, Tree

_HEAD: Final = """\
digraph kubeodds {
  rankdir=LR;
  node [shape=box, fontname="monospace", fontsize=10];
  edge [fontname="sans-serif", fontsize=10];
"""
_ALIVE: Final = 'style="filled,rounded", fillcolor="#d8f0d8"'
_DEAD: Final = 'style="filled,rounded", fillcolor="#f4c7c3"'
_OTHER: Final = 'style="filled,rounded", fillcolor="#fbe8c0"'


def render(answer: TreeAnswer) -> str:
    """Return one graph with the tree of each route; shared subtrees are one node."""
    lines = [_HEAD]
    for number, (service, route, tree) in enumerate(answer.trees):
        frontend = f"{route.frontend.kind.value} {route.frontend}"
        head = [
            f"{service.name.text} {service.protocol}",
            f"a new flow from {SOURCES[route.source]}"
            + ("" if route.network is None else f" ({networks(route)})"),
            f"to {frontend}",
        ]
        root = f"t{number}"
        lines.append(f"  {root} [label={_label(head)}, shape=ellipse];\n")
        lines += _Writer(answer, root).lines(tree)
    told = [f"Assumed: {each.message}." for each in answer.diagnostics if each.code == ASSUMED]
    if told:
        lines.append(f"  label={_label(told)};\n")
    return "".join([*lines, "}\n"])


class _Writer:
    """Writes the nodes and edges of one tree, without recursion: trees may be deep."""

    def __init__(self, answer: TreeAnswer, root: str) -> None:
        self._answer = answer
        self._root = root

    def lines(self, tree: Tree) -> Iterator[str]:
        names: dict[int, str] = {}
        rest: list[tuple[str, str, Tree]] = [(self._root, "", tree)]
        while rest:
            parent, label, each = rest.pop()
            known = id(each) in names
            name = names.setdefault(id(each), f"{self._root}_{len(names)}")
            yield f"  {parent} -> {name}{label};\n"
            if known:
                continue
            yield f"  {name} [{self._node(each)}];\n"
            children: list[tuple[str, str, Tree]] = []
            match each:
                case Chance(branches):
                    children = [(name, f" [label={_label([_chance(w)])}]", c) for w, c in branches]
                case Either(_, branches):
                    children = [
                        (name, f' [label="case {number}", style=dashed]', child)
                        for number, child in enumerate(branches, 1)
                    ]
                case _:
                    pass
            rest += reversed(children)

    def _node(self, tree: Tree) -> str:
        texts = [_rule(rule) for rule in tree.rules]
        match tree:
            case Leaf():
                told = describe(tree)
                if told.endpoint is None:
                    return f"label={_label([*texts, told.text])}, {_OTHER}"
                node = self._answer.cluster.placement(told.endpoint.address).node
                dead = told.endpoint in self._answer.dead.endpoints
                pod = self._answer.cluster.pods.of(told.endpoint.address, told.endpoint.port)
                says = told.text + (f" on {node}" if node else "") + (f" ({pod})" if pod else "")
                says += " DEAD" if dead else ""
                return f"label={_label([*texts, says])}, {_DEAD if dead else _ALIVE}"
            case Either(because, _):
                return f"label={_label([*texts, f'not known: {because}'])}, {_OTHER}"
            case _:
                return f"label={_label(texts or ['drawn by chance'])}"


def _chance(weight: Dyadic) -> str:
    if weight == ALWAYS:
        return "always"
    return f"{fraction(weight)} {bounds_percent(Bounds(weight, weight))}".strip()


def _rule(rule: AnyRule) -> str:
    return f"{chain_of(rule)} {says(rule)}  {signed_place(rule)}"


def _label(texts: list[str]) -> str:
    r"""Return texts as one quoted label, each on a line of its own, flush left (``\l``)."""
    escaped = (printable(t).replace("\\", "\\\\").replace('"', '\\"') for t in texts)
    return '"' + "".join(f"{text}\\l" for text in escaped) + '"'
