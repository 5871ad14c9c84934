"""The log of tables: its port, the JSON of its messages, Kafka behind the port; and a development broker."""
