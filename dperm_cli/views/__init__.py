"""Views: the access to the data that a mechanism gets, by trust model."""
