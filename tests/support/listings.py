"""A listing of rules as ``iptables -nvL`` prints it, written by ourselves.

Written from what iptables 1.8.9 was seen to print, not from the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from analyzer.model.iptables import matches as m
from analyzer.model.iptables import targets as t
from analyzer.model.iptables.rules import Chain, Rule, Table

_NUMBERS: Final = {"tcp": "6", "udp": "17", "sctp": "132", "icmp": "1", "ipv6-icmp": "58"}
_HEAD: Final = (
    " pkts bytes target     prot opt in     out     source               destination         "
)
_ACTIONS: Final = {"set": "SET", "rcheck": "CHECK", "update": "UPDATE", "remove": "REMOVE"}


def listing_of(table: Table) -> str:
    """Return a table as it is listed, base chains first."""
    chains = sorted(table.chains.values(), key=lambda chain: chain.policy is None)
    targets = [rule.target for each in table.chains.values() for rule in each.rules]
    leads = Counter(each.chain for each in targets if isinstance(each, t.Jump | t.Goto))
    return "\n".join(_chain(chain, table, leads[chain.name]) for chain in chains)


def _chain(chain: Chain, table: Table, references: int) -> str:
    if chain.policy is None:
        head = f"Chain {chain.name} ({references} references)"
    else:
        head = f"Chain {chain.name} (policy {chain.policy} 0 packets, 0 bytes)"
    rows = [row(rule, 6 if table.family == "ip6" else 4) for rule in chain.rules]
    return "\n".join([head, _HEAD, *rows, ""])


def row(rule: Rule, version: int) -> str:
    """Return one row."""
    columns = {"in": "*", "out": "*", "source": "", "destination": "", "protocol": "0"}
    details = []
    for match in rule.matches:
        inner = match.match if isinstance(match, m.MatchNot) else match
        bang = "!" if isinstance(match, m.MatchNot) else ""
        match inner:
            case m.MatchSource(network):
                columns["source"] = bang + _network(network)
            case m.MatchDestination(network):
                columns["destination"] = bang + _network(network)
            case m.MatchInInterface(name):
                columns["in"] = bang + name
            case m.MatchOutInterface(name):
                columns["out"] = bang + name
            case m.MatchProtocol(name):
                columns["protocol"] = bang + _NUMBERS.get(name, name)
            case _:
                details.append(_match(inner, bang))
    anywhere = "::/0" if version == 6 else "0.0.0.0/0"
    target, said = _target(rule.target)
    if isinstance(rule.target, t.Goto):
        details.insert(0, "[goto]")
    protocol = columns["protocol"]
    return (
        f"{'0':>5} {'0':>5} {target:<9} {'!' if protocol[0] == '!' else ' '}"
        f"{protocol.removeprefix('!'):<5}--  {columns['in']:<6} {columns['out']:<6} "
        f"{_signed(columns['source'] or anywhere)} {_signed(columns['destination'] or anywhere)} "
        + " ".join(each for each in (*details, said) if each)
    )


def _signed(address: str) -> str:
    return f"{'!' if address[0] == '!' else ' '}{address.removeprefix('!'):<19}"


def _network(network: Any) -> str:
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _ports(name: str, match: Any) -> str:
    said = [name]
    for short, option in (("spt", match.source_port), ("dpt", match.destination_port)):
        if option is not None:
            first, last = option.value.first, option.value.last
            bang = "!" if option.negated else ""
            said.append(
                f"{short}:{bang}{first}" if first == last else f"{short}s:{bang}{first}:{last}"
            )
    return " ".join(said)


def _option(name: str, option: Any) -> str:
    return (
        "" if option is None else f"{'! ' if option.negated else ''}{name} {','.join(option.value)}"
    )


def _masked(mark: Any) -> str:
    return f"{mark.value:#x}" + ("" if mark.mask == 0xFFFFFFFF else f"/{mark.mask:#x}")


def _match(match: Any, bang: str) -> str:
    spaced = "! " if bang else ""
    match match:
        case m.MatchComment(text):
            return f"/* {text} */"
        case m.MatchTcp() | m.MatchUdp() | m.MatchSctp():
            return _ports(type(match).__name__.removeprefix("Match").lower(), match)
        case m.MatchRandom(threshold):
            return f"statistic mode random {spaced}probability {threshold / (1 << 31):.11f}"
        case m.MatchMark(mark):
            return f"mark match {spaced}{_masked(mark)}"
        case m.MatchAddrtype():
            said = ["ADDRTYPE match"]
            for name, option in (("src", match.source_type), ("dst", match.destination_type)):
                if option is not None:
                    said.append(
                        f"{name}-type {'!' if option.negated else ''}{','.join(option.value)}"
                    )
            return " ".join(said)
        case m.MatchConntrack():
            return _option("ctstate", match.state)
        case m.MatchRecent():
            seconds = "" if match.seconds is None else f"seconds: {match.seconds} "
            mask = "" if match.mask is None else f" mask: {match.mask}"
            return (
                f"{'! ' if match.action.negated else ''}recent: {_ACTIONS[match.action.value]} "
                f"{seconds}{'reap ' if match.reap else ''}name: {match.name} side: "
                f"{'source' if match.side == 'rsource' else 'dest'}{mask}"
            )
        case m.MatchNfacct(name):
            return f"nfacct-name  {name}"
        case m.MatchPhysdev(is_in=option) if option is not None:
            return f"PHYSDEV match {'! ' if option.negated else ''}--physdev-is-in"
        case m.MatchUnknown():
            return "u32 0x0&0x1=0x1"
        case _:
            raise AssertionError(match)


def _to(to: Any) -> str:
    address = "" if to.first_address is None else str(to.first_address)
    address = f"[{address}]" if ":" in address and to.first_port is not None else address
    return f"to:{address}" + ("" if to.first_port is None else f":{to.first_port}")


def _target(target: Any) -> tuple[str, str]:
    """Return what stands in the column of the target, and what it prints behind the matches."""
    match target:
        case None:
            return "", ""
        case t.Jump(chain) | t.Goto(chain):
            return chain, ""
        case t.Dnat(to):
            return "DNAT", _to(to)
        case t.Masquerade():
            return "MASQUERADE", "random-fully" if target.random_fully else ""
        case t.SetMark(value, mask):
            return "MARK", f"MARK {_mark(value, mask)}"
        case t.Reject(reject_with):
            return "REJECT", f"reject-with {reject_with}"
        case t.TargetUnknown():
            return "TEE", "TEE gw:10.0.0.1"
        case _:
            return type(target).__name__.upper(), ""


def _mark(value: int, mask: int) -> str:
    """As libxt_MARK.c has it: the shortest of the ways to say it."""
    if mask == 0:
        return f"xor {value:#x}"
    if value == mask:
        return f"or {value:#x}"
    if value == 0:
        return f"and {~mask & 0xFFFFFFFF:#x}"
    return f"set {value:#x}" if mask == 0xFFFFFFFF else f"xset {value:#x}/{mask:#x}"


def rules_of(chains: Iterable[Chain]) -> dict[str, list[tuple[Any, Any]]]:
    """Return by chain what its rules match and do."""
    return {chain.name: [(rule.matches, rule.target) for rule in chain.rules] for chain in chains}
