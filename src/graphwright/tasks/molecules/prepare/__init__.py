"""Files of SMILES, however large, to shards of graphs: `graphwright data prepare molecules`."""

from graphwright.parallel import Engine, InProcess, Processes, RayCluster
from graphwright.tasks.molecules.prepare.batch import (
    PreparedBatch,
    PrepareSettings,
    RowBatch,
    SourceRow,
    prepare_batch,
)
from graphwright.tasks.molecules.prepare.folder import Manifest, ManifestError, read_manifest
from graphwright.tasks.molecules.prepare.run import PreparationProgress, Prepared, prepare
from graphwright.tasks.molecules.prepare.sources import Source, SourceError

__all__ = [
    "Engine",
    "InProcess",
    "Manifest",
    "ManifestError",
    "PreparationProgress",
    "PrepareSettings",
    "Prepared",
    "PreparedBatch",
    "Processes",
    "RayCluster",
    "RowBatch",
    "Source",
    "SourceError",
    "SourceRow",
    "prepare",
    "prepare_batch",
    "read_manifest",
]
