"""What config, contract and YAML of a model mean; what is wrong in them is refused here."""
