"""Murcko scaffolds, as the MassBank data has them."""

import pytest

from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.tasks.spectra.prepared import murcko_scaffold, structure_of


@pytest.mark.parametrize(
    ("smiles", "scaffold"),
    [
        ("CCc1ccccc1", "c1ccccc1"),
        ("CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1"),
        ("O=C1CCCCC1CC", "O=C1CCCCC1"),  # what is double-bonded to a ring stays
        ("C[C@H]1CC[C@@H](c2ccccc2)O1", "c1ccc(C2CCCO2)cc1"),
        ("[O-][n+]1ccccc1C", "c1ccncc1"),  # the N-oxide's proton goes
        ("Cn1cnc2c1c(=O)n(C)c(=O)n2C", "O=c1[nH]c(=O)c2[nH]cnc2[nH]1"),
    ],
)
def test_scaffolds(smiles, scaffold):
    found = murcko_scaffold(parse_smiles(smiles))
    assert found.smiles == scaffold
    assert len(found.bonds) % 3 == 0
    assert max(found.bonds[0::3] + found.bonds[1::3]) < len(found.atoms)


def test_a_molecule_without_a_ring_has_none():
    with pytest.raises(MoleculeError, match="CCO has no ring"):
        structure_of("CCO")


def test_a_structure_says_what_it_is():
    found = structure_of("Cn1cnc2c1c(=O)n(C)c(=O)n2C")
    assert (found.connectivity, found.formula) == ("RYYVLZVUVIJVGH", "C8H10N4O2")
