"""The resident session of a folder: its process keeps a JVM, and is forked for commands of a program."""
