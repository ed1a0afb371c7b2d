"""A long talk, twenty questions about it, and what a small model on this machine answered with and without the gateway."""
