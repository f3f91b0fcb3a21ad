"""``python -m analyzer`` is the command ``kubeodds``."""

from analyzer.cli import run

if __name__ == "__main__":
    run()
