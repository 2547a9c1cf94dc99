"""The leaderboard: methods of dperm and of others on the same problems, from records alone."""
