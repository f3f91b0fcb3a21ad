"""An nft ruleset with new names, as text or as JSON, whichever it was given as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from analyzer.anonymise import nft_names
from analyzer.anonymise.comments import names_in
from analyzer.anonymise.naming import Naming
from analyzer.anonymise.nft_values import (
    UNKNOWN,
    TableOf,
    renamed_elements,
    renamed_expression,
    renamed_statement,
    role_of,
    role_of_types,
)
from analyzer.anonymise.values import NotSaid
from analyzer.anonymise.words import is_nft_word, listed
from analyzer.kubeproxy.names import name_in_chain
from analyzer.model.diagnostics import Location
from analyzer.model.nft.expressions import Constant, Element
from analyzer.model.nft.ruleset import (
    FAMILIES,
    FLAGS,
    HOOKS,
    POLICIES,
    TYPES,
    Chain,
    Flowtable,
    NamedObject,
    NftRuleset,
    Rule,
    Set,
    Table,
)
from analyzer.model.value import replace
from analyzer.parsers.nft.rendering import render
from analyzer.parsers.nft.rendering_json import render_json
from analyzer.parsers.nft.statements import is_of_iptables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Types of data that nft prints of sets.
_TYPES: Final = frozenset(
    listed("""
    ipv4_addr ipv6_addr ether_addr inet_proto inet_service mark ifname iface_index iface_type uid
    gid ct_state ct_status ct_dir ct_label ct_event ct_id nf_proto ether_type pkt_type icmp_type
    icmp_code icmpv6_type icmpv6_code icmpx_code tcp_flag dscp ecn arp_op time hour day realm
    classid cgroupsv2 fib_addrtype verdict boolean integer string bitmask devgroup cpu osf secpath
    ll_addr dccp_pkttype igmp_type mh_type unknown
    """)
)
_SET_FLAGS: Final = frozenset(listed("constant dynamic interval timeout"))
_KINDS: Final = frozenset(
    (
        *("counter", "quota", "limit", "ct helper", "ct timeout", "ct expectation", "secmark"),
        *("synproxy", "tunnel"),
    )
)
#: What is read of objects, by kind.
_PROPERTIES: Final = {
    "counter": {"packets", "bytes"},
    "quota": {"bytes", "used", "over"},
    "limit": {"rate", "per", "burst", "over", "rate_unit", "burst_unit"},
    "ct helper": {"type", "protocol", "l3proto"},
}
_UNITS: Final = frozenset(
    listed("second minute hour day week packets bytes kbytes mbytes ip ip6 inet")
)
_JSON: Final = "nft-json"
#: Too short for an address.
_VERSION: Final = re.compile(r"\d{1,2}(?:\.\d{1,3}){0,2}")
#: In place of a line of a table that is not understood: there may be more in it.
_MARK: Final = "\tremoved\n"


def learn(naming: Naming, ruleset: NftRuleset) -> None:
    """Note the names of ServicePorts in a ruleset."""
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            if table.name == nft_names.KUBE_PROXY:
                name = name_in_chain(chain.name.partition("__")[0])
                if name is not None:
                    naming.chains.learn(name)
            elif is_of_iptables(table.family, table.name):
                for rule in chain.rules:
                    for word in names_in(rule.comment or ""):
                        naming.chains.learn(word)


def renamed(naming: Naming, ruleset: NftRuleset) -> str:
    """Return a ruleset with new names."""
    tables = {}
    for table in ruleset.tables.values():
        made = _table(naming, table)
        tables[made.family, made.name] = made
    as_json = ruleset.input_format == _JSON
    version = ruleset.version if _is_version(ruleset.version) else None
    made_of = replace(ruleset, tables=tables, version=version, diagnostics=())
    if as_json:
        return render_json(made_of)
    is_cut = any(each.code == "cut-off" for each in ruleset.diagnostics)
    pieces = []
    for number, (key, table) in enumerate(tables.items(), 1):
        ends = table.complete or not is_cut or number < len(tables)
        whole = replace(table, complete=ends)
        text = render(replace(made_of, tables={key: whole}))
        if ends and not table.complete:
            head, newline, rest = text.partition("\n")
            text = head + newline + _MARK + rest
        pieces.append(text)
    return "".join(pieces).replace("\n\t\n", "\n\n")  # as nft prints it


def _is_version(text: str | None) -> bool:
    return text is not None and _VERSION.fullmatch(text) is not None


def _table(naming: Naming, table: Table) -> Table:
    place = TableOf(table.family, table.name)
    chains = [_chain(naming, place, each) for each in table.chains.values()]
    sets = [_set(naming, place, each) for each in table.sets.values()]
    objects = [_object(naming, each) for each in table.objects.values()]
    flowtables = [_flowtable(naming, each) for each in table.flowtables.values()]
    base = [each for each in chains if each.type is not None]
    # The order of the old names would reveal something of them.
    own = sorted((each for each in chains if each.type is None), key=lambda each: each.name)
    family = table.family if table.family in FAMILIES else naming.removed
    return replace(
        table,
        family=family,
        name=nft_names.table_name(naming, table.name),
        chains={each.name: each for each in (*base, *own)},
        sets={each.name: each for each in sets},
        objects={(each.kind, each.name): each for each in objects},
        flowtables={each.name: each for each in flowtables},
        flags=tuple(each if each in FLAGS else naming.removed for each in table.flags),
        comment=_comment(naming, table.comment),
    )


def _comment(naming: Naming, given: str | None) -> str | None:
    """Return the anonymised comment, without quotes, which nft cannot write."""
    return None if given is None else naming.comments.renamed(given).replace('"', "")


def _chain(naming: Naming, place: TableOf, chain: Chain) -> Chain:
    name = nft_names.chain_name(naming, place.table, chain.name)
    made = replace(
        chain,
        name=name,
        rules=tuple(_rules(naming, place, chain.rules)),
        devices=tuple(map(naming.device, chain.devices)),
        comment=_comment(naming, chain.comment),
    )
    if chain.is_unplaced:
        # It stays a base chain whose hook is not known.
        return replace(
            made,
            type=chain.type if chain.type in TYPES else naming.removed,
            hook=chain.hook if chain.hook in HOOKS else naming.removed,
            policy=chain.policy if chain.policy in POLICIES else naming.removed,
        )
    if chain.hook is not None and chain.policy not in POLICIES:
        policy = "accept" if chain.policy is None else naming.removed
        return replace(made, policy=policy)
    return made


def _rules(naming: Naming, place: TableOf, rules: Iterable[Rule]) -> Iterator[Rule]:
    for rule in rules:
        statements = tuple(renamed_statement(naming, place, each) for each in rule.statements)
        yield Rule(statements, Location("", 1), "", _comment(naming, rule.comment), "")


def _set(naming: Naming, place: TableOf, given: Set) -> Set:
    name = nft_names.set_name(naming, place.table, given.name)
    typed = None
    statements = tuple(renamed_statement(naming, place, each) for each in given.statements)
    known = (
        _TYPES.issuperset((*given.key, *(given.value or ())))
        and _SET_FLAGS.issuperset(given.flags)
        and given.policy in {None, "memory", "performance"}
        and UNKNOWN not in statements
    )
    if given.typeof is not None:
        try:
            typed = tuple(
                tuple(renamed_expression(naming, place, each) for each in part)
                for part in given.typeof
            )
        except NotSaid:
            known = False
    if not known:
        naming.remove("set", given.name)
        return Set(
            name=name,
            key=("unknown",),
            value=("unknown",) if given.value else None,
            elements=(Element(key=UNKNOWN),),
        )
    key, data = role_of_types(given.key), role_of_types(given.value)
    if given.typeof is not None:
        roles = [tuple(map(role_of, part)) for part in given.typeof]
        key = roles[0][0] if len(roles[0]) == 1 else roles[0]
        data = None if not roles[1] else roles[1][0] if len(roles[1]) == 1 else roles[1]
    elements = renamed_elements(naming, place, tuple(given.elements), key, data)
    return replace(
        given,
        name=name,
        typeof=typed,
        statements=statements,
        comment=_comment(naming, given.comment),
        elements=elements,
    )


def _object(naming: Naming, given: NamedObject) -> NamedObject:
    properties: list[tuple[str, Constant]] = []
    is_known = {name for name, _ in given.properties} == _PROPERTIES.get(given.kind)
    if not is_known:
        naming.remove("object", given.name)
        properties.append(("text", "-removed"))
    for name, held in given.properties if is_known else ():
        if isinstance(held, str) and not is_nft_word(held) and held not in _UNITS:
            properties.append((name, naming.names.name("helper", held)))
        else:
            properties.append((name, held))
    return NamedObject(
        kind=given.kind if given.kind in _KINDS else "counter",
        name=naming.names.name("object", given.name),
        properties=tuple(properties),
        comment=_comment(naming, given.comment),
    )


def _flowtable(naming: Naming, given: Flowtable) -> Flowtable:
    return Flowtable(
        name=naming.names.name("set", given.name),
        hook=given.hook if given.hook in HOOKS else None,
        priority=given.priority,
        devices=tuple(map(naming.device, given.devices)),
    )
