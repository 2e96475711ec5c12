"""Settings of a run: the schema, presets, YAML files, overrides by name."""

from graphwright.settings.base import SettingsError
from graphwright.settings.choices import ENCODERS, MATCHINGS, InputForm, encoders_of
from graphwright.settings.options import Option, Section, options, sections
from graphwright.settings.overrides import BUDGET, DataSettings, Override
from graphwright.settings.schema import (
    CORES,
    Accelerator,
    Clock,
    CostKind,
    Loss,
    Matching,
    Model,
    OptimizerKind,
    PairKind,
    PlanKind,
    Precision,
    Run,
    SlotKind,
    Train,
)
from graphwright.settings.source import (
    CONFIG,
    Preset,
    data_settings,
    find_preset,
    is_run_folder,
    load_run,
    presets,
    settings_file,
)
from graphwright.settings.tasks import TASKS, Capacity, TaskSettings
from graphwright.settings.yaml_file import to_yaml

__all__ = [
    "BUDGET",
    "CONFIG",
    "CORES",
    "ENCODERS",
    "MATCHINGS",
    "TASKS",
    "Accelerator",
    "Capacity",
    "Clock",
    "CostKind",
    "DataSettings",
    "InputForm",
    "Loss",
    "Matching",
    "Model",
    "OptimizerKind",
    "Option",
    "Override",
    "PairKind",
    "PlanKind",
    "Precision",
    "Preset",
    "Run",
    "Section",
    "SettingsError",
    "SlotKind",
    "TaskSettings",
    "Train",
    "data_settings",
    "encoders_of",
    "find_preset",
    "is_run_folder",
    "load_run",
    "options",
    "presets",
    "sections",
    "settings_file",
    "to_yaml",
]
