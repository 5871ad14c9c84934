"""What a run of a model does to its table, decided before anything is written. Pure."""
