"""Settings of a run: the schema, presets, YAML files, overrides by name."""

from graphwright.settings.encoders import ENCODERS, EncoderKind
from graphwright.settings.errors import SettingsError
from graphwright.settings.options import Option, Section, options, sections
from graphwright.settings.overrides import BUDGET, Override
from graphwright.settings.presets import Preset, find_preset, presets
from graphwright.settings.schema import (
    CORES,
    Accelerator,
    Clock,
    CostKind,
    Loss,
    Matching,
    MatchingKind,
    Metric,
    Model,
    OptimizerKind,
    PairKind,
    PlanKind,
    Precision,
    Run,
    SlotKind,
    Train,
)
from graphwright.settings.source import CONFIG, is_run_folder, is_table_data, load_run, settings_file
from graphwright.settings.tasks import (
    ColoringTask,
    FingerprintTask,
    PeakTokens,
    SpectrumTask,
    TableTask,
    TaskSettings,
    TrainingUnit,
)
from graphwright.settings.yaml_file import to_yaml

__all__ = [
    "BUDGET",
    "CONFIG",
    "CORES",
    "ENCODERS",
    "Accelerator",
    "Clock",
    "ColoringTask",
    "CostKind",
    "EncoderKind",
    "FingerprintTask",
    "Loss",
    "Matching",
    "MatchingKind",
    "Metric",
    "Model",
    "OptimizerKind",
    "Option",
    "Override",
    "PairKind",
    "PeakTokens",
    "PlanKind",
    "Precision",
    "Preset",
    "Run",
    "Section",
    "SettingsError",
    "SlotKind",
    "SpectrumTask",
    "TableTask",
    "TaskSettings",
    "Train",
    "TrainingUnit",
    "find_preset",
    "is_run_folder",
    "is_table_data",
    "load_run",
    "options",
    "presets",
    "sections",
    "settings_file",
    "to_yaml",
]
