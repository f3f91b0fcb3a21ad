"""python-iptables finds its libraries without compilers, and leaves the environment as it was."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Final

import pytest

from tests.support.lab.running import in_lab

pytestmark = pytest.mark.lab

#: It opens a socket when it is loaded: as in a run of the lab, in a namespace.
PROGRAM: Final = """
import json, os, sys
from pathlib import Path
from netns_lab.namespace import leave_host
from netns_lab.python_iptables import quickly_loaded
leave_host()
before, finders, started = {**os.environ}, [*sys.meta_path], []
sys.addaudithook(
    lambda event, of: started.append(Path(str(of[0])).name) if event == "subprocess.Popen" else None
)
with quickly_loaded():
    try:
        import iptc
    except ImportError:
        iptc = None
is_as_before = os.environ == before and sys.meta_path == finders
print(json.dumps([iptc is not None, is_as_before, started]))
"""


@pytest.mark.skipif(find_spec("iptc") is None, reason="python-iptables is not installed")
def test_no_compiler_is_asked_and_the_environment_is_as_before() -> None:
    is_loaded, is_as_before, started = json.loads(in_lab(PROGRAM))
    assert (is_loaded, is_as_before) == (True, True)
    assert {*started}.isdisjoint({"gcc", "cc", "ld"})


def test_folders_that_a_user_names_are_kept() -> None:
    program = (
        "import os\nfrom netns_lab.python_iptables import quickly_loaded\n"
        "os.environ['IPTABLES_LIBDIR'] = '/opt/lib'\n"
        "with quickly_loaded():\n    print(os.environ['IPTABLES_LIBDIR'])\n"
        "print(os.environ['IPTABLES_LIBDIR'])\n"
    )
    assert in_lab(program).split() == ["/opt/lib", "/opt/lib"]
