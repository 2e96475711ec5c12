"""Table: from the columns of a person's own file to the graph of the row."""

from graphwright.tasks.table.form import Form, InputKind
from graphwright.tasks.table.task import Choice, Table, TableInput, choose
from graphwright.tasks.table.understood import TableDataset, TableSample, Understood, understand

__all__ = [
    "Choice",
    "Form",
    "InputKind",
    "Table",
    "TableDataset",
    "TableInput",
    "TableSample",
    "Understood",
    "choose",
    "understand",
]
