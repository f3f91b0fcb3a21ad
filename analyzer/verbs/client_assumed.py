"""What ``client`` assumes where no Service is named, and between which nodes a balancer draws."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from analyzer.clients.losing import LosingMost
from analyzer.errors import UsageError, suggestion
from analyzer.inputs.files import read_file
from analyzer.reports.phrases import count, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace


def of_choice(chosen: LosingMost) -> Iterator[str]:
    """Yield what is assumed of where clients connect to."""
    if chosen.number > 1:
        yield (
            f"each client connects to the one of {chosen.number:,} ServicePorts (TCP) that it "
            "fails most often to reach; --service names others"
        )
    if chosen.beyond:
        names = listed([each.name.text for each in chosen.beyond])
        number = count(len(chosen.beyond), "ServicePort")
        yield (
            f"clients outside do not use ClusterIPs, and {number} with no other address "
            f"{'is' if len(chosen.beyond) == 1 else 'are'} left out ({names}); --service judges "
            f"{'it' if len(chosen.beyond) == 1 else 'them'}"
        )
    if not chosen.walks_all:
        yield (
            "rules that let flows of a Service pass let those pass too that clients send to its "
            "pods themselves; --service evaluates these"
        )


def weights(
    options: SimpleNamespace, given: Collection[str], known: Collection[str]
) -> dict[str, int]:
    """Return how often a balancer draws each node, as parts of the sum.

    `given` are nodes with a dump, `known` those of the objects.

    Raises:
        UsageError: a node that was given is none of the balancer's, or the other way round.
    """
    if options.balancer == "uniform":
        return dict.fromkeys([*given, *sorted(set(known) - set(given))], 1)
    from analyzer.parsers.journeys import weights_from_bytes

    found = weights_from_bytes(read_file(options.balancer, options.max_input), options.balancer)
    for node in found:
        if node not in known and node not in given:
            hint = suggestion(node, {*known, *given})
            raise UsageError(f"{options.balancer}: no node {node!r} is known{hint}")
    return {node: weight for node, weight in found.items() if weight}
