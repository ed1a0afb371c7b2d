"""The memory APIs of other vendors over Pagefile's verbs: each a translation, so that their own clients work against it."""
