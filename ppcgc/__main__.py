"""``python -m ppcgc``."""

from ppcgc.cli import entry

if __name__ == "__main__":
    entry()
