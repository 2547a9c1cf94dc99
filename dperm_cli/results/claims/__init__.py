"""The claims of experiments, and their verdicts."""
