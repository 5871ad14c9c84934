"""The logs of tables: checked before a commit, sent behind it."""
