"""`pagefile bench answers`: does the same small model answer better, in the same budget, with Pagefile's window than without?"""
