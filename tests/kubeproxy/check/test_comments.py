from __future__ import annotations

from analyzer.kubeproxy.check.comments import comments
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.parsers.iptables_save import parse
from tests.support.dumps import cluster_ip, dump, endpoint


def found(comment: str, *, to: str = "10.0.0.1:80", other: str = "") -> list[Finding]:
    text = dump(
        cluster_ip(),
        f'-A KUBE-SVC-A -m comment --comment "{comment}" -j KUBE-SEP-1',
        endpoint("KUBE-SEP-1", to).replace("-p tcp", f"-p tcp {other}"),
    )
    return list(comments(DumpFacts(parse(text, "dump"), (), None, None)))


def test_a_comment_that_says_what_the_rule_does_is_no_finding() -> None:
    assert found("ns/a:http -> 10.0.0.1:80") == []
    assert found("ns/a:http") == []
    # As 1.14 to 1.23 write it, without the endpoint.
    assert found("") == []


def test_another_endpoint_than_the_rule_leads_to_is_found() -> None:
    (finding,) = found("ns/a:http -> 10.0.0.9:80")
    assert finding.code == "comment-endpoint"
    assert "10.0.0.9:80" in finding.message
    assert "10.0.0.1:80" in finding.message


def test_another_port_of_the_same_endpoint_is_found() -> None:
    assert [each.code for each in found("ns/a:http -> 10.0.0.1:81")] == ["comment-endpoint"]


def test_another_spelling_of_the_same_address_is_no_finding() -> None:
    assert found("ns/a:http -> [fd00:0:0::1]:80", to="[fd00::1]:80") == []


def test_another_service_than_the_chain_is_for_is_found() -> None:
    (finding,) = found("ns/b:http -> 10.0.0.1:80")
    assert finding.code == "comment-service"
    assert "ns/b:http" in finding.message


def test_the_line_of_the_rule_is_told() -> None:
    (finding,) = found("ns/b:http")
    text = dump(cluster_ip(), "-A KUBE-SVC-A -j KUBE-SEP-1", endpoint("KUBE-SEP-1", "10.0.0.1:80"))
    rows = text.split("\n")
    assert finding.line == 1 + next(
        i for i, row in enumerate(rows) if row.startswith("-A KUBE-SVC")
    )


def test_the_rule_of_an_endpoint_names_its_service_too() -> None:
    comment = '-m comment --comment "ns/b:http"'
    assert [each.code for each in found("ns/a:http", other=comment)] == ["comment-service"]
    assert found("ns/a:http", other=comment.replace("ns/b", "ns/a")) == []
