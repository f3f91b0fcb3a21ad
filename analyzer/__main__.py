"""``python -m analyzer``, which is the command ``kubeodds``."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line and exit; what the installed command calls."""
    # Nothing here makes cycles worth looking for, and the looking takes a tenth of the time:
    # before all else is loaded too.
    gc.disable()
    from analyzer.cli import run

    run()


if __name__ == "__main__":
    main()
