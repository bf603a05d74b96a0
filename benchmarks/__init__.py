"""Measurements: generated runners beside what else runs a stage, in one process, outputs checked.

Run ``ppcgc bench`` (or ``python -m benchmarks``), ``python -m benchmarks.gpu`` for everything that a
results page needs, ``python -m benchmarks.ci`` for the ratios that hold on any machine.
"""
