"""The changelog of tables as a log: its port, the formats of its messages, and Kafka behind the port."""
