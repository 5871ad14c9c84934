"""Servers for development, on loopback: a Kafka broker, Kafka Connect with Debezium, and a Spark cluster."""
