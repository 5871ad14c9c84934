"""Every module of the engine, for the server that writers are forked from: else each would load them again."""

from tablestore_engine.spi import load_for_builds

load_for_builds()
