"""Chaos: everything that writes and publishes dies again and again while the network is bad; then all is counted."""
