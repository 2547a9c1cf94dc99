"""The instances of lower bounds, one file each."""
