"""The taste of the house, executable: what a reviewer would otherwise have to say again and again."""
