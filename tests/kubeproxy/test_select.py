from __future__ import annotations

import re

import pytest

from analyzer.errors import UsageError
from analyzer.kubeproxy.select import select
from tests.support.dumps import cluster_ip, dump, view_of

VIEW = view_of(
    dump(
        cluster_ip("web/app:http", "10.96.0.1"),
        cluster_ip("web/app:admin", "10.96.0.1", 8080),
        cluster_ip("dev/app:http", "10.96.0.2"),
        cluster_ip("web/bare", "10.96.0.3"),
        '-A KUBE-NODEPORTS -p tcp -m comment --comment "web/node:" -m tcp --dport 30080 '
        "-j KUBE-SVC-A",
        "-A KUBE-SERVICES -d 10.96.0.5/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A",
    )
)
IPV6 = view_of(
    dump(
        "-A KUBE-SERVICES -d fd00::1/128 -p tcp -m comment "
        '--comment "ns/six cluster IP" -m tcp --dport 80 -j KUBE-SVC-A'
    )
)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("web/app:http", ["web/app:http"]),
        ("web/app", ["web/app:admin", "web/app:http"]),
        ("app:http", ["dev/app:http", "web/app:http"]),
        ("app", ["dev/app:http", "web/app:admin", "web/app:http"]),
        ("web/bare", ["web/bare"]),
        ("bare", ["web/bare"]),
        ("10.96.0.1", ["web/app:admin", "web/app:http"]),
        ("10.96.0.1:8080", ["web/app:admin"]),
        ("*:30080", ["web/node"]),
        ("10.96.0.5:80", ["10.96.0.5:80"]),
    ],
)
def test_a_service_is_named_in_full_in_part_or_by_its_address(
    wanted: str, names: list[str]
) -> None:
    assert [service.name.text for service in select(VIEW, wanted)] == names


@pytest.mark.parametrize("wanted", ["fd00::1", "[fd00::1]:80"])
def test_an_ipv6_frontend_names_its_service(wanted: str) -> None:
    assert [service.name.text for service in select(IPV6, wanted)] == ["ns/six"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("web/ap:http", "no Service web/ap:http in this dump; did you mean web/app:http or "),
        (
            "zzz",
            "no Service zzz in this dump; there are 10.96.0.5:80, dev/app:http, web/app:admin, "
            "web/app:http, web/bare, ...",
        ),
    ],
)
def test_an_unknown_service_is_refused_with_what_is_similar(wanted: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        select(VIEW, wanted)


def test_without_any_service_there_is_nothing_to_suggest() -> None:
    with pytest.raises(UsageError, match=r"^no Service app in this dump$"):
        select(view_of(dump()), "app")


@pytest.mark.parametrize("wanted", ["None", "bare:None", "None/None"])
def test_the_word_none_names_no_service(wanted: str) -> None:
    with pytest.raises(UsageError, match="no Service"):
        select(VIEW, wanted)
