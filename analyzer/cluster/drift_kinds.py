"""The ways in which a node's rules differ from those of its cluster."""

from __future__ import annotations

import enum

from analyzer.model.value import value


@enum.unique
class DriftKind(enum.Enum):
    """A kind of difference; its value is the code in JSON and TSV."""

    # --- of a node
    NO_SERVICES = "no-services"
    OTHER_MODE = "other-mode"
    BOTH_BACKENDS = "both-backends"
    OTHER_BACKEND = "other-backend"
    OTHER_MARK = "other-mark"
    MISSING_JUMP = "missing-jump"
    MISSING_CHAIN = "missing-chain"
    EXTRA_CHAIN = "extra-chain"
    OTHER_POLICY = "other-policy"
    MISSING_FAMILY = "missing-family"
    # --- of a ServicePort at a node
    MISSING_SERVICE = "missing-service"
    EXTRA_SERVICE = "extra-service"
    MISSING_FRONTEND = "missing-frontend"
    EXTRA_FRONTEND = "extra-frontend"
    EMPTY_CHAIN = "empty-chain"
    REFUSED = "refused"
    OTHER_AFFINITY = "other-affinity"
    OTHER_LOCALITY = "other-locality"
    OTHER_SHARES = "other-shares"
    OTHER_MASQUERADE = "other-masquerade"
    LOST_TO_RULES = "lost-to-rules"
    # --- of an endpoint of a ServicePort at a node
    STALE_ENDPOINT = "stale-endpoint"
    FOREIGN_ENDPOINT = "foreign-endpoint"
    UNREADY_ENDPOINT = "unready-endpoint"
    MISSING_ENDPOINT = "missing-endpoint"
    EXTRA_ENDPOINT = "extra-endpoint"
    OTHER_PORT = "other-port"


#: Those that the presence of a rule shows. All others may come from rules that a dump has lost.
SHOWN_BY_RULES = frozenset(
    {
        DriftKind.EXTRA_SERVICE,
        DriftKind.EXTRA_FRONTEND,
        DriftKind.STALE_ENDPOINT,
        DriftKind.FOREIGN_ENDPOINT,
        DriftKind.UNREADY_ENDPOINT,
        DriftKind.EXTRA_ENDPOINT,
        DriftKind.OTHER_PORT,
    }
)

#: What each means, in few words.
WORDS = {
    DriftKind.NO_SERVICES: "its dump shows no Services",
    DriftKind.OTHER_MODE: "kube-proxy runs in a different mode from that on most nodes",
    DriftKind.BOTH_BACKENDS: "kube-proxy's rules are in more than one backend",
    DriftKind.OTHER_BACKEND: "the rules are in another backend than on most nodes",
    DriftKind.OTHER_MARK: "the masquerade mark is not that of most nodes",
    DriftKind.MISSING_JUMP: "a base chain does not jump to a chain of kube-proxy, as on most nodes",
    DriftKind.MISSING_CHAIN: "a chain is missing that kube-proxy has on most nodes",
    DriftKind.EXTRA_CHAIN: "kube-proxy has a chain that few nodes have",
    DriftKind.OTHER_POLICY: "a base chain has another policy than on most nodes",
    DriftKind.MISSING_FAMILY: "it has no Services of an IP version that most nodes have",
    DriftKind.MISSING_SERVICE: "the rules do not have this ServicePort",
    DriftKind.EXTRA_SERVICE: "the rules have a ServicePort that no longer exists",
    DriftKind.MISSING_FRONTEND: "one of its addresses is not in the rules",
    DriftKind.EXTRA_FRONTEND: "the rules have an address that it no longer has",
    DriftKind.EMPTY_CHAIN: "its chain exists and is empty",
    DriftKind.REFUSED: "its flows are refused here, or are not although they should be",
    DriftKind.OTHER_AFFINITY: "session affinity has another timeout, or is missing",
    DriftKind.OTHER_LOCALITY: "endpoints of the wrong nodes get its flows",
    DriftKind.OTHER_SHARES: "the same endpoints have other shares",
    DriftKind.OTHER_MASQUERADE: "flows are masqueraded differently from most nodes",
    DriftKind.LOST_TO_RULES: (
        "other programs' rules take flows that they do not take on most nodes"
    ),
    DriftKind.STALE_ENDPOINT: "the endpoint is gone, and the rules still send flows there",
    DriftKind.FOREIGN_ENDPOINT: (
        "the endpoint's address now belongs to a pod that is not the Service's"
    ),
    DriftKind.UNREADY_ENDPOINT: "the endpoint is not ready, and others are",
    DriftKind.MISSING_ENDPOINT: "the endpoint is ready, and the rules send no flows there",
    DriftKind.EXTRA_ENDPOINT: "most nodes send no flows to the endpoint",
    DriftKind.OTHER_PORT: "flows to the endpoint go to another port",
}


@value(kw_only=True)
class DriftFinding:
    """One difference, at one node.

    Attributes:
        service: the ServicePort, as ``namespace/name:port``; empty if it concerns the node.
        protocol: of the ServicePort; `version`: the IP version, 4 or 6.
        what: an endpoint, an address, a chain, or what there is in place of what.
    """

    drift: DriftKind
    node: str
    service: str = ""
    protocol: str = ""
    what: str = ""
    version: int | None = None
