"""Measurements: generated runners beside what else runs a stage, outputs checked.

Run ``ppcgc bench`` for the peers side by side, ``python -m benchmarks.gpu`` for everything that a
results page needs, ``python -m benchmarks.ci`` for the ratios that hold on any machine.
"""
