"""Data sets, one file each: each yields a Data object whose bounds are declared, not measured."""
