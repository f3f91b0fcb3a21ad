"""Options for predictions without a dump, and the kube-proxies to predict for."""

from __future__ import annotations

from argparse import ArgumentTypeError

from analyzer.arguments.parser import several
from analyzer.model.addresses import network_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, _ActionsContainer
    from types import SimpleNamespace
    from typing import Final

    from analyzer.model.addresses import Network

#: The verbs that take them.
VERBS: Final = frozenset({"services", "loss", "whatif", "advise"})
_MOST_SEED: Final = 1 << 32
#: Where rules are predicted, by verb.
_WHERE: Final = {"services": "at --node", "advise": "at every node"}


def add_prediction_options(parser: ArgumentParser, verb: str) -> None:
    """Add options for predicted rules: their objects, and the kube-proxy."""
    group = parser.add_argument_group("without a dump")
    where = _WHERE.get(verb, "at every node, or at --node")
    group.add_argument(
        "--from-objects",
        metavar="FILE",
        **several(),
        help=f"predict what kube-proxy writes {where}, from kubectl get "
        "services,endpointslices,nodes,pods -A -o json",
    )
    add_proxy_options(group)


def add_proxy_options(group: _ActionsContainer) -> None:
    """Add options for the kube-proxies to predict."""
    group.add_argument(
        "--kube-proxy",
        metavar="VERSION",
        help="its version, for example 1.30 (default: that of the nodes' kubelets)",
    )
    group.add_argument(
        "--mode", choices=["iptables", "nftables"], help="--proxy-mode (default: iptables)"
    )
    group.add_argument(
        "--cluster-cidr",
        metavar="CIDR",
        **several(_network),
        help="kube-proxy's --cluster-cidr (default: the smallest network that covers all podCIDRs)",
    )
    group.add_argument(
        "--detect-local-mode",
        choices=["ClusterCIDR", "NodeCIDR"],
        help="kube-proxy's --detect-local-mode (default: ClusterCIDR)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=_seed,
        help="selects the nodes and Services that are checked by their rules (default: random)",
    )


def check_prediction_options(options: SimpleNamespace) -> str:
    """Return what is wrong with the combination of options; empty if nothing is.

    The objects of the prediction also give the nodes of endpoints: they are added to --objects.
    """
    if not getattr(options, "from_objects", None):
        for name in ("kube_proxy", "mode", "cluster_cidr", "detect_local_mode", "seed"):
            if getattr(options, name, None) not in (None, []):
                option = name.replace("_", "-")
                return f"--{option}: only with --from-objects"
        if options.verb == "advise":
            return "the following arguments are required: --from-objects"
        return "" if options.dumps else "the following arguments are required: DUMP"
    if options.verb == "services" and options.dumps:
        return "--from-objects: services takes a DUMP or objects to predict from, not both"
    options.objects = [*dict.fromkeys([*options.from_objects, *options.objects])]
    return ""


def _network(text: str) -> Network:
    network = network_from_text(text)
    if network is None:
        raise ArgumentTypeError(f"{text!r} is not a network (for example 10.244.0.0/16)")
    return network


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(_MOST_SEED)):
        raise ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)
