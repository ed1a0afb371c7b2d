"""The ports over SQL, written once: statements, verbs as generators of them, and the protocol of a player that runs them."""
