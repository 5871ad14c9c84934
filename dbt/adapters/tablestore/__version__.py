"""The one version number of the package; its minor follows dbt-core's."""

version = "1.11.0a1"
