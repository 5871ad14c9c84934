"""`tablestore demo`: the flights of New York as the change feed an airline would have."""
