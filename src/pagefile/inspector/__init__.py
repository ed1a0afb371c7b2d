"""The inspector: see what the model saw."""
