"""One data file: its bytes, its rows, what its metadata says of them; the files of one bucket."""
