from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InputError
from analyzer.parsers.objects.text import object_text

NODE = '{"kind": "Node", "metadata": {"name": "knöchel"}}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_each_shell_and_editor_writes_the_same_text(encoding: str) -> None:
    assert object_text(NODE.encode(encoding)) == NODE
    assert object_text(gzip.compress(NODE.encode(encoding))) == NODE


def test_utf_16_with_its_mark_in_the_other_order() -> None:
    assert object_text(b"\xfe\xff" + NODE.encode("utf-16-be")) == NODE


@pytest.mark.parametrize(
    "data", [b"", b"\n \r\n", b"\xff\xfe", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)]
)
def test_of_an_empty_file_the_way_on_is_told(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^kubectl printed nothing: is the API down.*--node-of"):
        object_text(data)


@pytest.mark.parametrize("data", [NODE.encode("utf-16")[:-1], b"\xff\xfe\x00\xd8{\x00"])
def test_damaged_utf_16_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="not UTF-16 from byte"):
        object_text(data)


def test_a_binary_file_is_refused() -> None:
    with pytest.raises(InputError, match="a binary file"):
        object_text(b"\x7fELF\0\0")


BEFORE = [
    "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    'I1122 18:15:28.123456   12345 request.go:700] Waited for 1.1s, request: "GET:https://10.0.0.1"',
    "E0131 08:15:28.1   7 memcache.go:265] couldn't get current server API group list",
    "$ kubectl get nodes -o json",
    "[root@master ~]# kubectl get pods -A",
    "root@master:~# sudo k get pods",
    "PS C:\\Users\\ops> kubectl get pods",
]


@pytest.mark.parametrize("line", BEFORE)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_stands_before_the_objects_is_blank_and_lines_stay_where_they_are(
    line: str, end: str
) -> None:
    found = object_text(f"{end}{line}{end}{BEFORE[0]}{end}{NODE}{end}".encode())
    assert found.strip() == NODE
    assert found.split("\n").index(NODE + end[:-1]) == 3


@given(st.sampled_from(["{", "[", '{"a": 1, "b": "$ kubectl get"}', "kind: Node\n# kubectl\n"]))
def test_objects_are_never_taken_for_what_stands_before_them(text: str) -> None:
    assert object_text(text.encode()) == text


@pytest.mark.parametrize(
    "line",
    [
        "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host?",
        "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
        "Error from server (Forbidden): nodes is forbidden",
        'error: the server doesn\'t have a resource type "endpointslices"',
        "No resources found in default namespace.",
    ],
)
def test_what_kubectl_said_instead_is_repeated(line: str) -> None:
    with pytest.raises(InputError) as caught:
        object_text(f"{BEFORE[0]}\n{line}\n".encode())
    assert str(caught.value).startswith(
        f"kubectl printed no objects, but this: {line}; is the API down?"
    )


def test_a_long_first_line_is_searched_in_no_time_that_matters() -> None:
    for text in (
        "$" * 1_000_000,
        "Warning: x\n" * 100_000 + "{}",
        " \n" * 500_000 + "{}",
        "#" * 99,
    ):
        assert object_text(text.encode()).strip() in {text.strip(), "{}"}
