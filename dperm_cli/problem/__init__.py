"""The problem to minimise: data, loss, set and regulariser. Nothing here is about privacy."""
