"""Pushes to many clients, while the broker is killed."""
