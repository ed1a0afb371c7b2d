"""Erasures in the middle of everything else: what was erased comes back through nothing and lies nowhere."""
