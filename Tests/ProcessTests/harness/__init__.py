"""Shared by the process tests: brokers, clients, and bounded waits."""
