"""Name the packages of a wheel: cotlab, and the folders beside it that are shipped inside it."""

from setuptools import find_packages, setup

setup(
    script_name="setup.py",  # so that this file is no module of cotlab.dashboard
    packages=[
        *find_packages(include=["cotlab", "cotlab.*"]),
        "cotlab.data",
        "cotlab.dashboard",
        "cotlab.dashboard.pages",
    ],
)
