"""The kinds of memory: archive, history, episodes, workspace, facts. Each absorbs, offers and tends."""
