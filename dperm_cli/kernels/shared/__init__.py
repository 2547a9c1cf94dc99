"""Feature maps, and the problem in a kernel's space with its solver."""
