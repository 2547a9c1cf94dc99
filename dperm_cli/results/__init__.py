"""Rows, their store, and the tables and figures made from them: pure functions of records."""
