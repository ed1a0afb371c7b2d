"""The agents and clients that people already use: how Pagefile is put into their settings, and taken out again."""
