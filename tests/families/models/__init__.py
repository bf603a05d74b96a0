"""Stages of the families that ``ppcgc.hf`` does not cut, in plain torch."""
