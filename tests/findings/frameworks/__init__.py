"""Findings about the four framework integrations and the model clients."""
