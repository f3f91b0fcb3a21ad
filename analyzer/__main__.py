"""``python -m analyzer``, which is the command ``kubeodds``.

Any Python that is there reads this file before it can be told that it is too old: nothing here
is newer than 3.8, and nothing of ours is loaded before the version is looked at.
"""

from __future__ import annotations

import gc
import sys

_BAD_USAGE = 2
_INTERRUPTED = 130
_NEEDED = (3, 11)


def main() -> None:
    """Run the command line and exit; what the installed command calls."""
    if sys.version_info[:2] < _NEEDED:
        here = ".".join(map(str, sys.version_info[:2]))
        sys.stderr.write(f"kubeodds needs Python 3.11 or newer; this is {here}\n")
        sys.exit(_BAD_USAGE)
    # Nothing here makes cycles worth looking for, and the looking takes a tenth of the time:
    # before all else is loaded too.
    gc.disable()
    try:
        from analyzer.cli import run

        run()
    except KeyboardInterrupt:  # before the command line was there to say so
        sys.stderr.write("kubeodds: interrupted\n")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
