from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import UsageError
from analyzer.kubeproxy.names import chain_hash, nft_service_name
from analyzer.kubeproxy.select import names_in, narrow, select
from tests.support.dumps import cluster_ip, dump, endpoint, view_of

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
        # As kubectl and DNS call it, and with the number of a port.
        ("svc/app", ["dev/app:http", "web/app:admin", "web/app:http"]),
        ("service/web/app", ["web/app:admin", "web/app:http"]),
        ("app.web", ["web/app:admin", "web/app:http"]),
        ("app.web.svc.cluster.local", ["web/app:admin", "web/app:http"]),
        ("app.dev.svc:80", ["dev/app:http"]),
        ("web/app:8080", ["web/app:admin"]),
        ("app:80", ["dev/app:http", "web/app:http"]),
        # A star in the first way that names any.
        ("web/*", ["web/app:admin", "web/app:http", "web/bare", "web/node"]),
        ("*/app:http", ["dev/app:http", "web/app:http"]),
        ("b*e", ["web/bare"]),
        (
            "10.96.0.*",
            ["10.96.0.5:80", "dev/app:http", "web/app:admin", "web/app:http", "web/bare"],
        ),
        ("10.96.0.1*", ["web/app:admin", "web/app:http"]),
    ],
)
def test_a_service_is_named_in_full_in_part_or_by_its_address(
    wanted: str, names: list[str]
) -> None:
    assert [service.name.text for service in select(VIEW, wanted)] == names


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("hostPort 8080", ["hostPort 8080"]),
        ("hostPort*", ["hostPort 8080", "hostPort 8443"]),
        ("*8443", ["hostPort 8443"]),
        # A looser way adds nothing to what a Service's name or an address is found by.
        ("h*", ["web/hello"]),
    ],
)
def test_a_host_port_is_named_in_full_or_by_a_pattern(wanted: str, names: list[str]) -> None:
    view = view_of(
        dump(
            cluster_ip("web/hello", "10.96.0.1"),
            *(
                f"-A CNI-DN-1 -p tcp -m tcp --dport {port} -j DNAT --to-destination 10.244.1.5:80"
                for port in (8080, 8443)
            ),
            "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
            "-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-1",
        )
    )
    assert [service.name.text for service in select(view, wanted)] == names


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("name", ["web/app:http", "web/bare"])
def test_the_chains_of_a_service_name_it(name: str, protocol: str) -> None:
    view = view_of(
        dump(
            cluster_ip(name, "10.96.0.1"),
            "-A KUBE-SVC-A -j KUBE-SEP-1",
            endpoint("KUBE-SEP-1", "10.0.0.1:80"),
            cluster_ip("web/other", "10.96.0.2"),
        )
        .replace("-p tcp", f"-p {protocol}")
        .replace("-m tcp", f"-m {protocol}")
    )
    of_1_18 = "" if ":" in name else ":"
    chains = [
        f"KUBE-SVC-{chain_hash(name, protocol)}",
        f"KUBE-SVC-{chain_hash(name + of_1_18, protocol)}",
        f"KUBE-EXT-{chain_hash(name, protocol)}",
        f"KUBE-SEP-{chain_hash(name, protocol, '10.0.0.1:80')}",
        f"service-{nft_service_name(name, protocol)}",
    ]
    for chain in chains:
        assert [service.name.text for service in select(view, chain)] == [name]


def test_a_chain_of_no_service_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(UsageError, match="if rules have no comments, pass --objects"):
        select(VIEW, "KUBE-SVC-AAAAAAAAAAAAAAAA")


def test_several_names_are_shown_in_the_order_of_the_dump() -> None:
    found = [service.name.text for service in narrow(VIEW, ["bare", "dev/app"])]
    assert found == ["dev/app:http", "web/bare"]
    found = [service.name.text for service in narrow(VIEW, ["app"], ["web", "de*"])]
    assert found == ["dev/app:http", "web/app:admin", "web/app:http"]
    with pytest.raises(UsageError, match="no Service zzz"):
        narrow(VIEW, ["bare", "zzz"])
    with pytest.raises(UsageError, match="no Service named bare in namespace dev"):
        narrow(VIEW, ["bare"], ["dev"])
    # Not dropped without a word, as if it had been judged.
    with pytest.raises(UsageError, match="no Service named bare in namespace dev"):
        narrow(VIEW, ["app", "bare"], ["dev"])


def test_each_name_has_to_be_in_one_of_several_dumps() -> None:
    views = VIEW, IPV6
    assert names_in(views, [], []) is None
    assert names_in(views, ["six", "bare"], []) == frozenset({"ns/six", "web/bare"})
    assert names_in(views, [], ["ns", "dev"]) == frozenset({"ns/six", "dev/app:http"})
    with pytest.raises(UsageError, match="no Service zzz"):
        names_in(views, ["six", "zzz"], [])


names = st.text("ab*", max_size=5)


@given(name=st.text("ab", max_size=6), pattern=names)
def test_a_star_stands_for_any_characters(name: str, pattern: str) -> None:
    view = view_of(dump(cluster_ip(f"ns/{name}x", "10.96.0.1")))
    means = re.fullmatch(re.escape(f"ns/{pattern}x").replace(r"\*", ".*"), f"ns/{name}x")
    try:
        found = bool(select(view, f"ns/{pattern}x"))
    except UsageError:
        found = False
    assert found == bool(means)


@pytest.mark.parametrize("wanted", ["fd00::1", "[fd00::1]:80"])
def test_an_ipv6_frontend_names_its_service(wanted: str) -> None:
    assert [service.name.text for service in select(IPV6, wanted)] == ["ns/six"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("web/ap:http", "no Service web/ap:http in this dump; did you mean web/app:http or "),
        ("bar", "no Service bar in this dump; did you mean web/bare?"),
        ("appp", "no Service appp in this dump; did you mean app?"),  # of two namespaces
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
