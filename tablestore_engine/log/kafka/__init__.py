"""Kafka behind the port: topics, markers, transactions, publishing and reading back."""
