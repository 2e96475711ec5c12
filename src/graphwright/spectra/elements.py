"""Monoisotopic masses and valences of the elements that occur in spectra."""

from __future__ import annotations

# Mass in Da of the most abundant isotope (Atomic Mass Evaluation 2020); D is deuterium.
MASS = {
    "H": 1.007825031898,
    "D": 2.014101777844,
    "Li": 7.016003434,
    "B": 11.009305167,
    "C": 12.0,
    "N": 14.003074004251,
    "O": 15.994914619257,
    "F": 18.998403162067,
    "Na": 22.989769281951,
    "Mg": 23.985041689,
    "Al": 26.981538408,
    "Si": 27.976926534424,
    "P": 30.973761997677,
    "S": 31.972071173538,
    "Cl": 34.968852694,
    "K": 38.963706484822,
    "Ca": 39.962590850,
    "Ti": 47.947940932,
    "V": 50.943957664,
    "Cr": 51.940504714,
    "Mn": 54.938043040,
    "Fe": 55.934935537,
    "Co": 58.933193523,
    "Ni": 57.935341650,
    "Cu": 62.929597119,
    "Zn": 63.929141776,
    "Ga": 68.925573531,
    "Ge": 73.921177760,
    "As": 74.921594562,
    "Se": 79.916521761,
    "Br": 78.918337601,
    "Mo": 97.905403609,
    "Pd": 105.903480287,
    "Ag": 106.905091509,
    "Cd": 113.903364998,
    "Sn": 119.902202557,
    "Sb": 120.903811353,
    "Te": 129.906222745,
    "I": 126.904471853,
    "Pt": 194.964791719,
    "Au": 196.966568786,
    "Hg": 201.970643604,
    "Tl": 204.974427801,
    "Pb": 207.976652005,
    "Bi": 208.980398599,
}

ELECTRON_MASS = 0.000548579909065

# Usual number of bonds. The higher valences of S and P need no entry: their extra bonds go to oxygen, which
# takes two and so leaves the count of rings and double bonds as it was.
VALENCE = {
    **dict.fromkeys(["H", "D", "Li", "Na", "K", "F", "Cl", "Br", "I", "Ag", "Au", "Tl"], 1),
    **dict.fromkeys(["O", "S", "Se", "Te", "Mg", "Ca", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Pd", "Cd", "Hg"], 2),
    **dict.fromkeys(["B", "N", "Al", "P", "Cr", "V", "Ga", "As", "Sb", "Bi"], 3),
    **dict.fromkeys(["C", "Si", "Ti", "Ge", "Mo", "Sn", "Pt", "Pb"], 4),
}
