"""Work done elsewhere: in this process, in processes of this machine, or on a Ray cluster."""

from graphwright.parallel.engine import Engine, Lost, Stopped
from graphwright.parallel.local import InProcess, Processes
from graphwright.parallel.ray import RayCluster

__all__ = ["Engine", "InProcess", "Lost", "Processes", "RayCluster", "Stopped"]
