"""Tables of mixed columns as features: any container, what each column is taken for, and how it is encoded."""

from slimsvm.tables.containers import Table, table_of
from slimsvm.tables.encoders import TableEncoding

__all__ = ["Table", "TableEncoding", "table_of"]
