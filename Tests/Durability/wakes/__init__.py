"""Wakes under kills: who is away and has a message is told, whatever dies between."""
