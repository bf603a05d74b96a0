"""Programs that use ppcgc. Run them from the root: ``python -m examples.smollm2``."""
