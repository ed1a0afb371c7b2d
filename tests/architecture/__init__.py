"""The rules of the source, executable: what a reviewer would otherwise have to say again and again."""
