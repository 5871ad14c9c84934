"""System tables of one table: `orders$files`, `orders$snapshots` and the others, with Paimon's names and columns."""
