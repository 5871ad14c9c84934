"""Random queries over random tables: a changed_keys model must equal its full query after every random change."""
