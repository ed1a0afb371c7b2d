"""Whose data a test writes and reads."""

from pagefile.records import Scope

#: A tenant and two of its users.
TENANT, ADA, BOB = Scope("tenant"), Scope("tenant", "ada"), Scope("tenant", "bob")
#: Ada's conversations, Bob's own, and conversations that belong to no user.
CHAT, ELSE = Scope("tenant", "ada", "chat"), Scope("tenant", "ada", "else")
HIS, ANYBODY = Scope("tenant", "bob", "his"), Scope("tenant", None, "chat")
#: Bob, naming Ada's conversation.
STRANGER = Scope("tenant", "bob", "chat")
#: Another tenant, with a user and a conversation of the same names.
FIRM, FIRM_ADA, FIRM_CHAT = Scope("firm"), Scope("firm", "ada"), Scope("firm", "ada", "chat")
