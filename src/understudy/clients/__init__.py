"""Clients of services that several connectors share. They import nothing of ours but errors."""
