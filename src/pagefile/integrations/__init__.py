"""Integrations with other frameworks: one module each; importing this package loads none of them."""
