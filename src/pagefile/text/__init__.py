"""What Pagefile knows about text, as plain functions: tokens, words, ranking and extracts.

Nothing here is asynchronous, and nothing reads files other than vocabularies.
"""
