"""Clients of services that several connectors, logs and stores share. They import nothing of ours but errors, and
`object_address` the form of addresses."""
