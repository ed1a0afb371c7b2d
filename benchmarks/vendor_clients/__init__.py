"""The vendors' clients as `bench vendors` runs them, each in an environment of its own."""
