"""Chains of kube-proxy are hashes of their new names."""

from __future__ import annotations

import pytest

from analyzer.anonymise.chains import FIXED
from analyzer.anonymise.naming import Naming
from analyzer.kubeproxy.names import chain_hash
from analyzer.model.programs import program_of_chain
from analyzer.parsers.xt.known import XTABLES_TARGETS

SALT = b"s" * 16


@pytest.mark.parametrize("prefix", ["KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-XLB-", "KUBE-FW-"])
@pytest.mark.parametrize("name", ["shop/web:http", "shop/web", "shop/web:"])
def test_a_chain_of_a_service_is_the_hash_of_its_new_name(prefix: str, name: str) -> None:
    naming = Naming(SALT)
    naming.chains.learn(name.removesuffix(":"))
    new = naming.names.service_port(name)
    assert new is not None
    old = prefix + chain_hash(name, "tcp")
    assert naming.chains.renamed(old) == prefix + chain_hash(new, "tcp")
    assert naming.chains.service_of(old) == (name, "tcp")


@pytest.mark.parametrize("place", ["10.0.0.7:80", "[fd00::7]:80"])
def test_a_chain_of_an_endpoint_is_the_hash_of_its_new_name_and_place(place: str) -> None:
    naming = Naming(SALT)
    old = "KUBE-SEP-" + chain_hash("shop/web", "udp", place)
    naming.chains.learn_endpoint(old, ["other/name", "shop/web"], ["10.9.9.9:1", place])
    name, where = naming.names.service_port("shop/web"), naming.names.endpoint_text(place)
    assert name is not None
    assert where is not None
    assert naming.chains.renamed(old) == "KUBE-SEP-" + chain_hash(name, "udp", where)


def test_a_hash_that_nothing_explains_is_hashed_with_the_salt() -> None:
    found = {Naming(bytes([n]) * 16).chains.renamed("KUBE-SVC-AAAAAAAAAAAAAAAA") for n in range(9)}
    assert len(found) == 9
    assert all(len(each) == len("KUBE-SVC-AAAAAAAAAAAAAAAA") for each in found)


@pytest.mark.parametrize("name", sorted(FIXED | XTABLES_TARGETS))
def test_what_is_called_so_on_every_node_stays(name: str) -> None:
    assert Naming(SALT).chains.renamed(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("cali-fw-cali1234567890a", "cali-FORWARD", "felix-INPUT", "DOCKER-USER", "CNI-DN-abcdef"),
        *(
            "KUBE-POD-FW-ABCDEFGHIJKLMNOP",
            "ufw-before-input",
            "CILIUM_FORWARD",
            "IN_acmezone_allow",
        ),
        *("FWDI_acmezone", "f2b-acme", "ISTIO_OUTPUT", "AWS-SNAT-CHAIN-0", "KUBE-HP-ABCDEFGHIJKL"),
        *("OUTPUT_direct_acme", "CNI-HOSTPORT-DNAT", "FLANNEL-POSTRTG", "ts-forward"),
    ],
)
def test_chains_of_other_programs_tell_the_program_and_nothing_else(name: str) -> None:
    new = Naming(SALT).chains.renamed(name)
    assert new != name
    assert len(new) <= 28
    assert program_of_chain(new) == program_of_chain(name)
    assert "acme" not in new.lower()


def test_anybodys_chain_is_no_name_of_a_target() -> None:
    new = Naming(SALT).chains.renamed("ACME-CUSTOMER")
    assert new.startswith("CHAIN-")
    assert "ACME" not in new
