"""From command-line words to typed cells."""
