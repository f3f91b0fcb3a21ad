"""The same name has the same pseudonym, and what every cluster has stays, unless it is to go."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from analyzer.anonymise.pseudonyms import Pseudonyms

SALT = b"s" * 16


def test_a_service_port_is_its_parts() -> None:
    names = Pseudonyms(SALT)
    new = names.service_port("shop/web:http")
    assert new == (
        f"{names.namespace('shop')}/{names.service('shop', 'web')}:"
        f"{names.port('shop', 'web', 'http')}"
    )
    assert names.service_port("shop/web") == new.partition(":")[0]
    assert names.service_port("shop/web:") == f"{new.partition(':')[0]}:"
    assert names.service_port("no service") is None


@pytest.mark.parametrize(
    "name", ["default/kubernetes:https", "kube-system/kube-dns:dns", "kube-system/kube-dns"]
)
def test_what_every_cluster_has_stays_unless_it_is_to_go(name: str) -> None:
    assert Pseudonyms(SALT).service_port(name) == name
    gone = Pseudonyms(SALT, well_known=False).service_port(name)
    assert gone is not None
    assert not set(name.replace(":", "/").split("/")) & set(gone.replace(":", "/").split("/"))


def test_the_name_of_a_well_known_service_is_another_elsewhere() -> None:
    names = Pseudonyms(SALT)
    assert names.service("shop", "kube-dns") != "kube-dns"
    assert names.port("shop", "web", "https") != "https"


def test_names_are_as_long_as_the_api_allows() -> None:
    names = Pseudonyms(SALT)
    assert len(names.port("a", "b", "c")) <= 15
    assert len(names.service("a", "b" * 63)) <= 63


def test_another_salt_gives_other_names() -> None:
    assert Pseudonyms(SALT).namespace("shop") != Pseudonyms(b"t" * 16).namespace("shop")


@pytest.mark.parametrize("text", ["10.0.0.7:80", "[fd00::7]:80"])
def test_an_endpoint_keeps_its_port(text: str) -> None:
    new = Pseudonyms(SALT).endpoint_text(text)
    assert new is not None
    assert new != text
    assert new.endswith(":80")
    assert new.startswith("[") == text.startswith("[")


@pytest.mark.parametrize("text", ["10.0.0.7", "10.0.0.7/33", "web:80", ""])
def test_what_is_no_endpoint_is_none(text: str) -> None:
    assert Pseudonyms(SALT).endpoint_text(text) is None


def test_ethernet_addresses_are_made_up_and_groups_stay_groups() -> None:
    names = Pseudonyms(SALT)
    new = names.hardware("00:1B:44:11:3a:b7")
    assert new is not None
    assert int(new[:2], 16) & 3 == 2
    assert "44:11" not in new
    group = names.hardware("01:00:5e:00:00:01")
    assert group is not None
    assert int(group[:2], 16) & 1 == 1
    assert names.hardware("ff:ff:ff:ff:ff:ff") == "ff:ff:ff:ff:ff:ff"
    assert names.hardware("not:an:address") is None


def test_the_map_has_each_name_once() -> None:
    names = Pseudonyms(SALT)
    names.service_port("shop/web:http")
    names.address(ip_address("10.0.0.7"))
    assert names.address_text("10.0.0.7/32") is not None
    rows = [(row.kind, row.old) for row in names.rows()]
    assert len(rows) == len(set(rows))
    assert {"namespace", "service", "port", "ServicePort", "address"} == {k for k, _ in rows}
