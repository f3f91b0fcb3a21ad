"""Sentences of programs stay, and of all others no word does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise.naming import Naming

SALT = b"s" * 16


@pytest.mark.parametrize(
    "text",
    [
        "kubernetes service portals",
        "kubernetes service nodeports; NOTE: this must be the last rule in this chain",
        "Active ClusterIPs",
        "flanneld masq",
        "kube-system/kube-dns:dns cluster IP",
        "masquerade traffic for default/kubernetes:https external destinations",
        "",
    ],
)
def test_sentences_without_names_of_a_cluster_stay(text: str) -> None:
    assert Naming(SALT).comments.renamed(text) == text


def test_names_endpoints_and_chains_in_sentences_are_renamed() -> None:
    naming = Naming(SALT)
    service = naming.names.service_port("shop/web:http")
    place = naming.names.endpoint_text("10.0.0.7:80")
    renamed = naming.comments.renamed
    assert renamed("shop/web:http") == service
    assert renamed("shop/web:http -> 10.0.0.7:80") == f"{service} -> {place}"
    assert renamed("shop/web:http has no endpoints") == f"{service} has no endpoints"
    assert renamed("Balancing rule 3 for shop/web:http") == f"Balancing rule 3 for {service}"
    chain = naming.chains.renamed("KUBE-FW-MXUMSYAUCOQFQHWF")
    assert renamed("shop/web:http traffic not accepted by KUBE-FW-MXUMSYAUCOQFQHWF") == (
        f"{service} traffic not accepted by {chain}"
    )


def test_what_tells_the_program_stays() -> None:
    renamed = Naming(SALT).comments.renamed("cali:tVnHkvAo15HuiPy0")
    assert renamed.startswith("cali:")
    assert "tVnHkvAo15HuiPy0" not in renamed


def test_a_service_port_in_an_unknown_sentence_is_gone_by_as_before() -> None:
    naming = Naming(SALT)
    found = naming.comments.renamed("Acme's rule for shop/web:http").split(" ")
    assert naming.names.service_port("shop/web:http") in found
    assert len(found) == 2


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=4, max_size=40))
def test_no_word_of_an_unknown_sentence_is_left(text: str) -> None:
    found = Naming(SALT).comments.renamed(f"Acme {text} Acme").split(" ")
    assert not {word for word in text.split(" ") if len(word) > 3} & set(found)
    assert "Acme" not in found
