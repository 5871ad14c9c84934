"""dbt models in Python: their config, the packages that they need, and running their code."""
