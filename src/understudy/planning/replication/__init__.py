"""Which tasks get an active replica when everything can fail at once (seed 003)."""
