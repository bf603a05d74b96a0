"""Expressions of the spec language: parsed, named, typed, evaluated and printed by ppcgc alone."""
