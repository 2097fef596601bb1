"""Many trainings from one small file, on this machine's cores or on a cluster, that lose nothing when anything dies.

read_sweep, plan_sweep   a sweep file and its members
Sweep                    a sweep's folder, which is all of its state
Pool                     members on this machine; lapsus.sweep.slurm and lapsus.sweep.dask_cluster: elsewhere

lapsus.sweep.collected, of which a worker needs nothing: one table and one page of all members
"""

from lapsus.sweep.folder import Sweep
from lapsus.sweep.plan import Plan, plan_networks, plan_sweep
from lapsus.sweep.pool import Pool
from lapsus.sweep.sweep_file import SweepFile, read_sweep

__all__ = ["Plan", "Pool", "Sweep", "SweepFile", "plan_networks", "plan_sweep", "read_sweep"]
