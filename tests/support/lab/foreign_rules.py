"""Captured rules of kube-proxy with rules of others drawn beside them, for the kernel to walk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from random import Random
from typing import Final

from analyzer.model.addresses import IPV4
from tests.support.foreign.ground import Grounds
from tests.support.foreign.rows import Writer
from tests.support.lab.nodes import SOURCES, Asked
from tests.support.lab.random_rules import ADDRESSES, PORTS

#: A frontend, or whatever else has one address and port.
_PLACES: Final = re.compile(r" -d ([\d.]+)/32 -p (tcp|udp) .*--dport (\d+) ")
#: Objects that the rules count with have to be made first; they hold for any packet.
_COUNTED: Final = re.compile(r" -m nfacct --nfacct-name +\S+")
#: Devices of a node with pods on a bridge, and of the lab's.
_DEVICES: Final = (("-i cni0 ", "-i pod0 "),)
#: Answers of the node itself begin no flow.
_TRACED: Final = "-A {} -p {} -j TRACE\n"
_BASES: Final = ("PREROUTING", "OUTPUT")


class ForeignRules:
    """Dumps as iptables restores them, and packets that come near their rules."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._grounds = Grounds()
        self._places: list[tuple[str, str, int]] = []

    def text(self) -> str:
        """Return a captured dump with one to three rows of others, each packet traced."""
        ground = self._grounds.one(self._random, nft=False, versions=(IPV4,))
        text = _COUNTED.sub("", Writer(ground, self._random).iptables())
        for theirs, ours in _DEVICES:
            text = text.replace(theirs, ours)
        found = {(a, p, int(port)) for a, p, port in _PLACES.findall(text)}
        self._places = sorted(found)
        return _traced(text)

    def questions(self) -> Iterator[Asked]:
        """Give packets to frontends of the last dump, and to others."""
        for _ in range(3):
            device = self._random.choice(("eth0", "pod0", None))
            source = SOURCES[4][device]
            places = [(str(a), "udp", port) for a in ADDRESSES for port in PORTS]
            known = self._places and self._random.random() < 0.8
            address, protocol, port = self._random.choice(self._places if known else places)
            yield Asked(device, source, IPv4Address(address), port, protocol)


def _traced(text: str) -> str:
    rows = "".join(_TRACED.format(base, kind) for base in _BASES for kind in ("udp", "tcp --syn"))
    if "*raw\n" not in text:
        heads = "".join(f":{base} ACCEPT [0:0]\n" for base in _BASES)
        return f"*raw\n{heads}{rows}COMMIT\n{text}"
    start = text.index("*raw\n")
    at = min(text.find(each, start) for each in ("-A ", "COMMIT") if text.find(each, start) >= 0)
    return text[:at] + rows + text[at:]
