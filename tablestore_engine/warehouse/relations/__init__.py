"""Tables and views as wholes: listed, dropped, renamed, cloned, described."""
