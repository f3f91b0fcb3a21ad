"""The command that deletes conntrack entries of flows at an endpoint.

The reply's source is the endpoint, whatever address the client sent to: so one command is for flows
through each frontend. A protocol is always named, since one command does not match the ports of
several.
"""

from __future__ import annotations

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import IPV4


def delete_command(protocol: str, endpoint: Endpoint, destination: Endpoint | None = None) -> str:
    """Return ``conntrack -D ...`` for a protocol's flows at `endpoint`.

    `destination`: the address and port that clients sent to, for flows to these alone.

    Source: conntrack(8).
    """
    words = ["conntrack -D"]
    if endpoint.address.version != IPV4:
        words.append("-f ipv6")
    words.append(f"-p {protocol}")
    if destination is not None:
        words += _words("orig-dst", "orig-port-dst", destination)
    return " ".join([*words, *_words("reply-src", "reply-port-src", endpoint)])


def _words(address: str, port: str, of: Endpoint) -> list[str]:
    return [f"--{address} {of.address}", *([] if of.port is None else [f"--{port} {of.port}"])]
