"""Names of iptables chains: kube-proxy's are hashed again, from the new names.

Theory of operation: the name of a kube-proxy chain ends in a hash of what it is for. Candidates are
taken from the comments beside it and from the API's objects; if the hash of one of these is the
chain's, it is replaced by the hash of the new name, so that chains and rules agree as before. A
hash that nothing explains, as in a dump without comments, becomes a keyed hash of itself. Chains
that every node has keep their names; those of other programs keep the part that identifies the
program, since verbs report whose rules decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from analyzer.anonymise.pseudonyms import Pseudonyms
from analyzer.anonymise.words import listed
from analyzer.kubeproxy.names import ENDPOINT_PREFIX, SERVICE_PREFIXES, chain_hash
from analyzer.model.addresses import (
    Address,
    address_and_port_from_text,
    address_from_text,
    address_to_text,
)
from analyzer.model.hooks import POLICIES
from analyzer.parsers.xt.known import XTABLES_TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Chains of the kernel, kube-proxy and the kubelet that are called so on every node.
FIXED: Final = frozenset(
    listed("""
    PREROUTING INPUT FORWARD OUTPUT POSTROUTING BROUTING
    KUBE-SERVICES KUBE-NODEPORTS KUBE-EXTERNAL-SERVICES KUBE-FORWARD KUBE-POSTROUTING
    KUBE-MARK-MASQ KUBE-MARK-DROP KUBE-FIREWALL KUBE-PROXY-FIREWALL KUBE-PROXY-CANARY
    KUBE-KUBELET-CANARY KUBE-IPTABLES-HINT KUBE-HOSTPORTS KUBE-NODE-PORT KUBE-LOAD-BALANCER
    KUBE-SOURCE-RANGES-FIREWALL KUBE-IPVS-FILTER KUBE-IPVS-OUT-FILTER KUBE-PROXY-FIREWALL
    KUBE-PORTALS-HOST KUBE-PORTALS-CONTAINER KUBE-NODEPORT-HOST KUBE-NODEPORT-CONTAINER
    KUBE-NODEPORT-NON-LOCAL
    """)
)
#: What stands before the rest of a name, and is a program's own; the longest first.
_PROGRAMS: Final = tuple(
    sorted(
        listed("""
        KUBE-SVC- KUBE-SVL- KUBE-SEP- KUBE-EXT- KUBE-FW- KUBE-XLB- KUBE-HP- KUBE-NWPLCY-
        KUBE-POD-FW- KUBE-ROUTER- KUBE-NETWORK-POLICY- KUBE-SRC- KUBE-DST- KUBE-SOURCE-RANGES-
        KUBE-LOAD-BALANCER- KUBE-NODE-PORT- KUBE-KUBELET- KUBE-PROXY-
        cali-fw- cali-tw- cali-pi- cali-po- cali-pri- cali-pro- cali-fh- cali-th- cali-fhfw-
        cali-thfw- cali-sm- cali- felix- CILIUM_ OLD_CILIUM_ DOCKER- DOCKER ufw- ufw6- CNI-HOSTPORT-
        CNI-DN- CNI-SN- CNI- FLANNEL- AWS-SNAT-CHAIN- AWS-CONNMARK-CHAIN- ISTIO_ PROXY_INIT_
        WEAVE- WEAVE ANTREA- OVN-KUBE- AZURE-NPM- AZURE-NPM IP-MASQ- IP-MASQ LIBVIRT_ NETAVARK-
        NETAVARK_ ts- f2b- fail2ban- CROWDSEC MINIUPNPD KUBE-
        """),
        key=lambda each: (-len(each), each),
    )
)
#: Chains of firewalld, in which zones' names stand.
_ZONED: Final = re.compile(
    r"((?:IN|OUT|FWD[IO]?|PRE|POST)_)[a-z]+((?:_(?:log|deny|allow|pre|post))?)"
    r"|((?:INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING)_(?:direct|ZONES|POLICIES|IN_|OUT_)).*"
)
_HASHED: Final = re.compile(
    rf"({'|'.join(map(re.escape, (*SERVICE_PREFIXES, ENDPOINT_PREFIX)))})([A-Z2-7]{{16}})"
)
_HASH: Final = 16
_PROTOCOLS: Final = ("tcp", "udp", "sctp")
#: A chain's name has 28 letters at most.
_LONGEST: Final = 28
_NO_CHAINS: Final = frozenset(XTABLES_TARGETS) | frozenset(POLICIES)


class ChainNames:
    """New names of chains.

    Hints come first, from everywhere: `learn`, `learn_endpoint`.
    """

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names
        self._learnt: set[str] = set()
        #: What each hash is made of, as (ServicePort, protocol).
        self._services: dict[str, tuple[str, str]] = {}
        self._hashes: dict[str, str] = {}
        self._done: dict[str, str] = {}
        #: Of IPv6 addresses, as objects spell them: that is what kube-proxy hashes.
        self._spellings: dict[Address, set[str]] = {}

    def learn_spelling(self, text: str) -> None:
        """Note how an object writes the address of an endpoint."""
        address = address_from_text(text)
        if address is not None and text != address_to_text(address):
            self._spellings.setdefault(address, set()).add(text)

    def learn(self, name: str, protocols: Iterable[str] = _PROTOCOLS) -> None:
        """Note the name of a ServicePort that chain names may be hashes of."""
        if name in self._learnt:
            return
        self._learnt.add(name)
        # Up to 1.18 a port without a name has a colon.
        for spelt in {name, f"{name}:"} if ":" not in name else {name}:
            new = self._names.service_port(spelt)
            if new is None:
                return
            for protocol in protocols:
                old = chain_hash(spelt, protocol)
                self._services[old] = spelt, protocol
                self._hashes[old] = chain_hash(new, protocol)

    def service_of(self, chain: str) -> tuple[str, str] | None:
        """Return the ServicePort, and its protocol, whose hash a chain's name contains."""
        found = _HASHED.fullmatch(chain)
        return None if found is None else self._services.get(found[2])

    def learn_endpoint(self, chain: str, names: Iterable[str], texts: Iterable[str]) -> None:
        """Note what an endpoint chain's name may be a hash of: ServicePorts, and its address."""
        found = _HASHED.fullmatch(chain)
        if found is None or found[2] in self._hashes:
            return
        texts = tuple(each for text in texts for each in self._spelt(text))
        for name in names:
            for spelt in {name, f"{name}:"} if ":" not in name else {name}:
                for protocol in _PROTOCOLS:
                    for text in texts:
                        if chain_hash(spelt, protocol, text) == found[2]:
                            self._take(found[2], spelt, protocol, text)
                            return

    def _spelt(self, text: str) -> Iterator[str]:
        """Yield the spellings of an endpoint."""
        yield text
        place = address_and_port_from_text(text)
        if place is not None:
            for other in self._spellings.get(place[0], ()):
                yield f"[{other}]:{place[1]}"

    def _take(self, old: str, name: str, protocol: str, text: str) -> None:
        new, place = self._names.service_port(name), self._names.endpoint_text(text)
        if new is not None and place is not None:
            self._hashes[old] = chain_hash(new, protocol, place)

    def hashed(self, chain: str) -> str | None:
        """Return the new name of a chain that ends in kube-proxy's hash; None if it does not."""
        found = _HASHED.fullmatch(chain)
        if found is None:
            return chain if chain in FIXED else None
        return self.renamed(chain)

    def renamed(self, chain: str) -> str:
        """Return the new name of any chain."""
        found = self._done.get(chain)
        if found is None:
            found = self._done[chain] = self._of(chain)
            if found != chain:
                self._names.note("chain", chain, found)
        return found

    def _of(self, chain: str) -> str:
        if chain in FIXED or chain in _NO_CHAINS:
            return chain
        hashed = _HASHED.fullmatch(chain)
        if hashed is not None:
            new = self._hashes.get(hashed[2]) or self._names.hashed("hash", hashed[2], _HASH)
            return hashed[1] + new
        zoned = _ZONED.fullmatch(chain)
        if zoned is not None:
            letters = self._names.hashed("chain", chain)
            if zoned[3]:
                return zoned[3] + letters[: _LONGEST - len(zoned[3])]
            return zoned[1] + re.sub(r"\d", "q", letters.lower()) + zoned[2]
        begins = next((each for each in _PROGRAMS if chain.startswith(each)), "CHAIN-")
        if chain == begins:
            return chain
        letters = self._names.hashed("chain", chain, min(_HASH, _LONGEST - len(begins)))
        return begins + letters


def place_in(text: str) -> str:
    """Return an endpoint as written in a comment or a rule; empty if it is none."""
    place = address_and_port_from_text(text)
    return text if place is not None and place[1] is not None else ""
