"""The dbt package of the adapter: macros and materializations."""

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)
