"""Packages of the wheel; everything else is in pyproject.toml.

``schemas/`` lies at the top of the repository and goes into the wheel as ``ppcgc/schemas``.
setuptools can say so in pyproject.toml only beside a hand-kept list of all packages.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["ppcgc", "ppcgc.*"]), "ppcgc.schemas"],
    package_dir={"ppcgc.schemas": "schemas"},
    package_data={
        "ppcgc": ["py.typed", "starter.yaml"],
        "ppcgc.emit": ["templates/*.j2"],
        "ppcgc.schemas": ["*.json"],
    },
)
