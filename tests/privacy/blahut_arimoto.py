"""Where tests find the iteration that knows no formula."""

from dperm_cli.privacy.channels.capacity import capacity

__all__ = ["capacity"]
