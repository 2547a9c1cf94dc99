"""What is being minimised, with no word of privacy in it."""
