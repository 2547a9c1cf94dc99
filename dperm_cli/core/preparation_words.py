"""Words of ``preprocessing`` that loaders write and tables look for."""

from __future__ import annotations

# behind the rule of rows, where columns may have any units
RAW_COLUMNS = ", on raw columns"
