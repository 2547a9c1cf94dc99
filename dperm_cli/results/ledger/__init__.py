"""The privacy statement of a folder of records."""
