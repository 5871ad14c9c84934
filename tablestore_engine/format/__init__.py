"""What the bytes of a table are: pure objects and their encodings; opens no file."""
