"""Commands of a folder in processes that are forked from one that has loaded the program already."""
