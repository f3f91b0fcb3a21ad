"""Chains that need no further checks, since their rows are consistent with each other.

If only one ServicePort leads to a chain that draws endpoints, each with 1/n when n are left, if
nothing else leads to the chains of these endpoints, and if all names and comments are what
kube-proxy derives from that ServicePort, none of the chains has to be checked by itself. The
invariants find the same as if every chain were checked; a property tests that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.probabilities import is_one_of
from analyzer.kubeproxy.check.usual import Drawing, DrawWords, Usual
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.names import plain_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.grouping import NameAndProtocol
    from analyzer.kubeproxy.matched.chain_rule import FrontendKey

#: In the place of the rows of an endpoint that are not usual.
_NONE: Final = ("", "", "", "", "")


def settled(
    usual: Usual,
    others: Iterable[ChainRule],
    owners: Mapping[str, Collection[NameAndProtocol]],
    sent: Collection[FrontendKey],
) -> dict[str, dict[str, str]]:
    """Return chains that draw, with the chains of their endpoints and where these send flows.

    `others` are the rows other than those of endpoints and draws that are `usual`; `owners` are the
    ServicePorts that lead to a chain, and `sent` the frontends whose flows rules send on.
    """
    led_to = Counter(row.target for row in others if row.is_jump)
    drawn = chain.from_iterable([drawing.draws for drawing in usual.drawing.values()])
    led_to.update([target for _, _, target in drawn])
    found = {}
    for name, drawing in usual.drawing.items():
        theirs = owners.get(name, ())
        if len(theirs) == 1:
            (key,) = theirs
            ends = _ends(drawing.draws, usual, key)
            alone = set(map(led_to.__getitem__, ends)) == {1}
            if ends and alone and _is_even(drawing) and _marks_its_own(drawing, key, sent):
                found[name] = ends
    return found


def _ends(draws: list[DrawWords], usual: Usual, key: NameAndProtocol) -> dict[str, str]:
    """Return the endpoints' chains, if they are exactly those of a ServicePort; otherwise none."""
    name, protocol = key
    plain = plain_name(name)
    says = {"", name, plain}
    found: dict[str, str] = {}
    for comment, _, target in draws:
        _, _, of_endpoint, only, to = usual.endpoints.get(target, _NONE)
        if (
            only != protocol
            or of_endpoint not in says
            or not (comment in says or comment == f"{plain} -> {to}")
            or target != names.ENDPOINT_PREFIX + names.chain_hash(name, protocol, to)
        ):
            return {}
        found[target] = to
    return found if len(set(found.values())) == len(draws) else {}


def _is_even(drawing: Drawing) -> bool:
    return _are_even(tuple([probability for _, probability, _ in drawing.draws]))


@cache
def _are_even(probabilities: tuple[str, ...]) -> bool:
    """Return whether draws give each endpoint the same share; the last takes the rest."""
    *drawn, rest = probabilities
    number = len(probabilities)
    return not rest and all(p and is_one_of(number - at, p) for at, p in enumerate(drawn))


def _marks_its_own(drawing: Drawing, key: NameAndProtocol, sent: Collection[FrontendKey]) -> bool:
    """Return whether all flows that a chain marks are sent on, and are of its ServicePort."""
    for row in drawing.marks:
        name = next((word for word in row.comment.split(" ") if "/" in word), None)
        if row.frontend_key not in sent:
            return False
        if name is not None and plain_name(name) != plain_name(key[0]):
            return False
    return True
