"""Tasks for an agent with tools and a real model: does memory help it to finish them?"""
