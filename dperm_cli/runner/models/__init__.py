"""Files of released predictors, and the rows that they are asked about."""
