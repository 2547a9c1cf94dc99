"""The ground floor: errors, input checks, the plug-in registry and the seed tree."""
