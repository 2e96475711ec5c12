"""Table: from the columns of a person's own file to the graph of the row."""

from graphwright.tasks.table.form import Form, InputKind
from graphwright.tasks.table.task import Table, TableInput, choose
from graphwright.tasks.table.understood import Owners, TableDataset, TableSample, TableTask, Understood, understand

__all__ = [
    "Form",
    "InputKind",
    "Owners",
    "Table",
    "TableDataset",
    "TableInput",
    "TableSample",
    "TableTask",
    "Understood",
    "choose",
    "understand",
]
