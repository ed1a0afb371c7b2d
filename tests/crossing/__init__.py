"""The crossing test: random calls of several users and tenants, over every verb and every route, with ids that collide on purpose.

Every text and every id carries a name of its owner. After each call the whole answer is searched for names of others.
"""
