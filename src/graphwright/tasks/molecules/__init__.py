"""Molecules: from a fingerprint back to the molecule."""

from graphwright.tasks.molecules.dataset import MoleculeDataset, MoleculeSample, NoUsableMoleculeError
from graphwright.tasks.molecules.fingerprint import BITS, PADDING, START, active_bits, tokens
from graphwright.tasks.molecules.source import SmilesTable, elements_of, find_data, read_smiles, shipped_data
from graphwright.tasks.molecules.task import Fingerprint2Molecule, FingerprintTask

__all__ = [
    "BITS",
    "PADDING",
    "START",
    "Fingerprint2Molecule",
    "FingerprintTask",
    "MoleculeDataset",
    "MoleculeSample",
    "NoUsableMoleculeError",
    "SmilesTable",
    "active_bits",
    "elements_of",
    "find_data",
    "read_smiles",
    "shipped_data",
    "tokens",
]
