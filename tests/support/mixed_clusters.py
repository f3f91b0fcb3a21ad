"""A dump of a cluster with Services of all kinds, and its objects, as files for commands."""

from __future__ import annotations

import json
from functools import cache

from analyzer.kubeproxy.generate import (
    FLAGS,
    RulesLayout,
    mixed,
    node_name,
    proxy_config,
    render_rules,
    service_ports,
)
from tests.support.commands import Command

NODE = node_name(0)


@cache
def _texts(services: int, nodes: int) -> tuple[str, str]:
    items = mixed(services, nodes)
    proxy = proxy_config(items, FLAGS, node=NODE, layout=RulesLayout.V1_36, family=4)
    dump = render_rules(service_ports(items, RulesLayout.V1_36, 4), proxy)
    return dump, json.dumps({"kind": "List", "items": items})


def files(command: Command, services: int = 50, nodes: int = 10) -> tuple[str, ...]:
    """Write dump and objects where commands are run; return the words that name them."""
    dump, objects = _texts(services, nodes)
    given = command.file("dump.txt", dump), "--objects", command.file("objects.json", objects)
    return *given, "--node", NODE
