"""Dumps read as rules of the one kind that a test expects, and who recognises Services in them."""

from __future__ import annotations

from typing import Any, BinaryIO

from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.nftables import NftRecogniser
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.nft.ruleset import NftRuleset
from analyzer.parsers import formats
from analyzer.semantics.base_chains import Rules


def read_ruleset(data: bytes | BinaryIO, file: str, *given: Any, **named: Any) -> Ruleset:
    """Return the rules of a dump that is one of iptables."""
    found = formats.read_ruleset(data, file, *given, **named)
    assert isinstance(found, Ruleset)
    return found


def nft_ruleset(text: str) -> NftRuleset:
    """Return the rules of a listing of nft."""
    found = formats.read_ruleset(text.encode(), "dump")
    assert isinstance(found, NftRuleset)
    return found


def recogniser(
    ruleset: Rules, cluster: Cluster | None = None, **named: Any
) -> Recogniser | NftRecogniser:
    """Return the recogniser of a ruleset's mode."""
    known = cluster or Cluster()
    if isinstance(ruleset, Ruleset):
        return Recogniser(ruleset, known, **named)
    return NftRecogniser(ruleset, known, **named)
