"""Real programs that look names up or connect, each beside the plan that it is held to have."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from analyzer.clients.connectors import CONNECTORS, Connector
from analyzer.clients.operations import Connection, LookUp, Operation
from analyzer.clients.resolvers import RESOLVERS
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.resolv_conf import ResolvConf
from analyzer.model.value import replace

#: Where the name that is looked up is: behind the second of the search domains.
NAME: Final = "shop.default"
FULL_NAME: Final = "shop.default.svc.cluster.local"
SEARCH: Final = ("default.svc.cluster.local", "svc.cluster.local", "cluster.local")

_GAI: Final = """
#include <netdb.h>
#include <stdio.h>
int main(int n, char **words) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(words[1], 0, &hints, &found);
    printf("%d\\n", error);
    return error != 0;
}
"""
_GO: Final = """
package main
import ("context"; "fmt"; "net"; "os")
func main() {
    found, err := (&net.Resolver{PreferGo: true}).LookupHost(context.Background(), os.Args[1])
    fmt.Println(found, err)
    if err != nil { os.Exit(1) }
}
"""
_NODE: Final = 'require("dns").{call}(process.argv[1],e=>process.exit(e?1:0))'
_PYTHON: Final = "import socket,sys; socket.{call}"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program.

    Attributes:
        needs: what has to be installed.
        words: how it is run, of a name or an address and a port, and a folder for what is built.
        operation: its plan.
        conf: options of resolv.conf that make it give up sooner; none: its usual ones.
        servers: how many name servers it has.
        searches: whether it is given a name that needs the search domains.
        statuses: with which it exits where it was answered.
    """

    needs: str
    words: Callable[[str, int, Path], list[str]]
    operation: Callable[[ResolvConf, str, ServicePort], Operation]
    searches: bool = False
    options: str = ""
    servers: int = 1
    statuses: tuple[int, ...] = (0,)
    at_once: int = 16
    deadline: float = 60


def conf_of(options: str, servers: tuple[IPv4Address, ...]) -> ResolvConf:
    given = dict(each.split(":") for each in options.split())
    numbers = {name: int(text) for name, text in given.items()}
    return ResolvConf(
        nameservers=servers,
        search=SEARCH,
        ndots=numbers.get("ndots"),
        timeout=numbers.get("timeout"),
        attempts=numbers.get("attempts"),
    )


def _looks_up(resolver: str) -> Callable[[ResolvConf, str, ServicePort], Operation]:
    return lambda conf, name, _: LookUp(
        resolver=RESOLVERS[resolver], conf=conf, name=name, exists=lambda each: each == FULL_NAME
    )


def _connects(connector: Connector) -> Callable[[ResolvConf, str, ServicePort], Operation]:
    return lambda _, __, service: Connection(connector=connector, service=service)


def _musl(name: str, _: int, folder: Path) -> list[str]:
    source, program = folder / "gai.c", folder / "gai-musl"
    if not program.exists():
        source.write_text(_GAI, encoding="ascii")
        subprocess.run(["musl-gcc", "-static", "-o", program, source], check=True)
    return [str(program), name]


def _go(name: str, _: int, folder: Path) -> list[str]:
    source, program = folder / "look_up.go", folder / "look-up-go"
    if not program.exists():
        source.write_text(_GO, encoding="ascii")
        told = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
            "GOCACHE": str(folder / "cache"),
            "HOME": str(folder),
        }
        subprocess.run(["go", "build", "-o", program, source], check=True, env=told, cwd=folder)
    return [str(program), name]


_IN_3_S: Final = replace(CONNECTORS["tcp"], timeout=(Fraction(3),))

PROGRAMS: Final = {
    "getent": Program(
        needs="getent",
        words=lambda name, _, __: ["getent", "ahosts", name],
        operation=_looks_up("glibc"),
    ),
    "getent, 1 s": Program(
        needs="getent",
        words=lambda name, _, __: ["getent", "ahosts", name],
        operation=_looks_up("glibc"),
        options="timeout:1 attempts:5",
    ),
    "getent, search": Program(
        needs="getent",
        words=lambda name, _, __: ["getent", "ahosts", name],
        operation=_looks_up("glibc"),
        options="ndots:5 timeout:1",
        searches=True,
    ),
    "getent, two servers": Program(
        needs="getent",
        words=lambda name, _, __: ["getent", "ahosts", name],
        operation=_looks_up("glibc"),
        options="timeout:2",
        servers=2,
    ),
    "musl, two servers": Program(
        needs="musl-gcc",
        words=_musl,
        operation=_looks_up("musl"),
        options="timeout:2",
        servers=2,
    ),
    "go, two servers": Program(
        needs="go",
        words=_go,
        operation=_looks_up("go"),
        options="timeout:2 attempts:1",
        servers=2,
    ),
    "dig, two servers": Program(
        needs="dig",
        words=lambda name, _, __: ["dig", name, "A"],
        operation=_looks_up("dig"),
        servers=2,
    ),
    "node resolve4, two servers": Program(
        needs="node",
        words=lambda name, _, __: ["node", "-e", _NODE.format(call="resolve4"), name],
        operation=_looks_up("c-ares"),
        servers=2,
        at_once=8,
    ),
    "python, search": Program(
        needs="python3",
        words=lambda name, _, __: [
            "/usr/bin/python3", "-c", _PYTHON.format(call="getaddrinfo(sys.argv[1],0)"), name
        ],
        operation=_looks_up("glibc"),
        options="ndots:5 timeout:2",
        searches=True,
        at_once=8,
    ),
    "node lookup": Program(
        needs="node",
        words=lambda name, _, __: ["node", "-e", _NODE.format(call="lookup"), name],
        operation=_looks_up("glibc"),
        at_once=8,
    ),
    "node resolve4": Program(
        needs="node",
        words=lambda name, _, __: ["node", "-e", _NODE.format(call="resolve4"), name],
        operation=_looks_up("c-ares"),
        at_once=8,
    ),
    "musl": Program(needs="musl-gcc", words=_musl, operation=_looks_up("musl")),
    "musl, search": Program(
        needs="musl-gcc",
        words=_musl,
        operation=_looks_up("musl"),
        options="ndots:5 timeout:2",
        searches=True,
    ),
    "go": Program(needs="go", words=_go, operation=_looks_up("go"), options="timeout:2"),
    "go, search": Program(
        needs="go",
        words=_go,
        operation=_looks_up("go"),
        options="ndots:5 timeout:2",
        searches=True,
    ),
    "dig": Program(
        needs="dig",
        words=lambda name, _, __: ["dig", name, "A"],
        operation=_looks_up("dig"),
        statuses=(0,),
    ),
    "nc": Program(
        needs="nc",
        words=lambda address, port, _: ["nc", "-zv", "-w", "3", address, str(port)],
        operation=_connects(_IN_3_S),
    ),
    "nc, kernel's time": Program(
        needs="nc",
        words=lambda address, port, _: ["nc", "-zv", address, str(port)],
        operation=_connects(CONNECTORS["tcp"]),
        at_once=32,
        deadline=200,
    ),
    "python connect": Program(
        needs="python3",
        words=lambda address, port, _: [
            "/usr/bin/python3", "-c",
            _PYTHON.format(call="create_connection((sys.argv[1],int(sys.argv[2])),3)"),
            address, str(port),
        ],
        operation=_connects(_IN_3_S),
        at_once=8,
    ),
    "curl": Program(
        needs="curl",
        words=lambda address, port, _: [
            "curl", "-s", "--connect-timeout", "3", "--retry", "3", "-o", "/dev/null",
            f"http://{address}:{port}/",
        ],
        operation=_connects(CONNECTORS["http-retry"]),
        # An empty answer, or a reset behind it: it was connected.
        statuses=(0, 52, 56),
    ),
}  # fmt: skip


def is_installed(program: Program) -> bool:
    return shutil.which(program.needs) is not None
