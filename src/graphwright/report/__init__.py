"""What a run achieved, as pictures and a page."""

from graphwright.report.page import write_report
from graphwright.report.plots import learning_curves, plan_heat_map
from graphwright.report.sheet import comparison_sheet, pick_examples, write_samples

__all__ = [
    "comparison_sheet",
    "learning_curves",
    "pick_examples",
    "plan_heat_map",
    "write_report",
    "write_samples",
]
