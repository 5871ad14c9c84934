"""The licence lies in the repository word for word, the package carries it, and README leads to it."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_licence_file_is_the_apache_licence_unchanged() -> None:
    """LICENSE has the checksum of the text that the Apache Software Foundation publishes."""
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_licence_is_named_by_package_and_readme() -> None:
    """setup.py puts the file into sdist and wheel; README links it."""
    setup = (ROOT / "setup.py").read_text()
    assert 'license_expression="Apache-2.0"' in setup
    assert 'license_files=["LICENSE"]' in setup
    assert "[Apache-2.0](LICENSE)" in (ROOT / "README.md").read_text()
