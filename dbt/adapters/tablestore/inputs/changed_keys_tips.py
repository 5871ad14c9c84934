"""What would make a changed_keys model cheaper, by the clause that prevents a cheaper way.

CHANGE     the tips of `dbt compile` for `changed_keys` models
INVARIANT  a tip names a change that the engine honours; a clause without one has none.
"""

from __future__ import annotations

# begin of a clause → tip
TIPS = {
    "a window whose PARTITION BY": "set affected_key to the columns of PARTITION BY",
    "a window function without PARTITION BY": "add PARTITION BY, or rank in a model of its own",
    "GROUP BY or DISTINCT below": "make the inner GROUP BY a model of its own",
    "the result of an aggregate function": "make the inner GROUP BY a model of its own",
    "a join on the result of": "make the side with the aggregate or window function a model of its own",
    "a subquery as a value": "write it as a join with a model of its own",
    "a key without a column of GROUP BY": "add all columns of GROUP BY to unique_key",
    "a key that has more than": "take columns that are not in GROUP BY out of unique_key",
    "a column computed from aggregates": "store the aggregates, and compute the column in a view over the model",
    "a sum of float": "cast the values to DECIMAL",
    "a sum of double": "cast the values to DECIMAL",
    "a change of the EXISTS or IN side": "write an inner join, if the condition compares the key of that table",
    "rows from outside": "load these rows into a table of the warehouse",
    "affected_by": "remove affected_by where the query proves the keys",
    "strategy='affected_keys'": "remove changed_keys={'strategy': 'affected_keys'}",
}
COUNT = "add count(*) to the model, so that a group that loses rows is not evaluated"


def find_tip(clause: str) -> str | None:
    """None: there is none."""
    return next((tip for begin, tip in TIPS.items() if clause.startswith(begin)), None)
