"""What a mechanism may touch of the data, by trust model."""
