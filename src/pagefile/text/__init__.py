"""What Pagefile knows about text, as plain functions: tokens, words, ranking and extracts.

Nothing here waits, and nothing here reads more than a vocabulary.
"""
