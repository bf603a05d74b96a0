"""Generated runners of the specs in ``specs/``; `ppcgc generate specs` writes them."""
