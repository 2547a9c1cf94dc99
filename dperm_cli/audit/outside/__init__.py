"""The audit of a mechanism that dperm did not write: records, pairs, statistics and bounds."""
