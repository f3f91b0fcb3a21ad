"""Which mark bits any nft rule matches on."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.nft.expressions import Binary, Ct, Expression, Meta
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Chain, NftRuleset
from analyzer.model.nft.ruleset import Rule as NftRule
from analyzer.model.nft.statements import CtSet, Match, MetaSet, Statement
from analyzer.model.packet import ALL_BITS


def asked_bits(ruleset: NftRuleset) -> int:
    """Return the bits of packets' and flows' marks that rules match on."""
    bits = 0
    for chain in saying(ruleset, "mark"):
        for rule in chain.rules:
            bits |= bits_of_rule(rule)
    return bits


def saying(ruleset: NftRuleset, *words: str) -> Iterator[Chain]:
    """Yield the chains that may contain one of the words: parsing all others would take long."""
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            rules = chain.rules
            # As `text_of` does, most often without calling it: there are ten thousand chains.
            if type(rules) is Lazy and type(source := rules.source) is tuple:
                text = source[0]
            elif (text := text_of(chain)) is None:
                yield chain
                continue
            for word in words:
                if word in text:
                    yield chain
                    break


def text_of(chain: Chain) -> str | None:
    """Return all that the rules of a chain say; None: they are not as nft printed them."""
    return chain.rules.said if isinstance(chain.rules, Lazy) else None


def bits_of_rule(rule: NftRule) -> int:
    """Return the bits of marks that a rule of nft matches on."""
    bits = 0
    for statement in rule.statements if "mark" in rule.raw else ():
        bits |= _of_statement(statement)
    return bits


def _of_statement(statement: Statement) -> int:
    match statement:
        case Match(_, Binary("&", Meta("mark") | Ct("mark"), int() as mask), int()):
            return mask
        case MetaSet("mark", operand) | CtSet("mark", operand) if _is_of_marks(operand):
            return 0
        case _:
            return ALL_BITS if "mark" in repr(statement) else 0


def _is_of_marks(given: Expression) -> bool:
    """Return whether an operand is a constant, or a mark with bits changed in place."""
    match given:
        case int() | Meta("mark") | Ct("mark"):
            return True
        case Binary("&" | "|" | "^", left, int()):
            return _is_of_marks(left)
        case _:
            return False
