"""Table: from the columns of a person's own file to the graph of the row."""

from graphwright.tasks.table.choice import Choice, choose
from graphwright.tasks.table.dataset import TableDataset
from graphwright.tasks.table.form import Form, InputKind
from graphwright.tasks.table.task import Table, TableInput
from graphwright.tasks.table.understood import TableSample, Understood, understand

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
