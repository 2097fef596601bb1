"""A real SLURM of one node on this machine, from Debian's packages: no systemd, no database, own keys, own ports."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
_CONF = """
ClusterName=lapsus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
MpiDefault=none
ReturnToService=2
JobRequeue=1
MaxArraySize={largest}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
KillWait=5
SchedulerParameters=sched_interval=2,batch_sched_delay=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=short Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Why no SLURM can be started here; None where it can."""
    missing = [name for name in NEEDED if shutil.which(name, path=_path()) is None]
    if missing:
        return f"no {', '.join(missing)}: apt-get install munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins"
    return None if os.getuid() == 0 else "SLURM's daemons start as root only"


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """Daemons in the foreground, ended by their process ids. `environment` makes SLURM's commands find them."""

    def __init__(self, folder: Path, cpus: int = 2, largest: int = 1001):
        self.folder, self.host = folder, socket.gethostname()
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        conf = _CONF.format(
            host=self.host, folder=folder, ctld_port=_free_port(), slurmd_port=_free_port(), cpus=cpus, largest=largest
        )
        (folder / "slurm.conf").write_text(conf)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> "Cluster":
        munge = [f"--{what}-file={self.folder}/munged.{end}" for what, end in (("pid", "pid"), ("log", "log"))]
        munge += [f"--key-file={self.folder}/munge.key", f"--socket={self.folder}/munge.socket"]
        munge += [f"--seed-file={self.folder}/munged.seed"]
        # --force: the temporary folders of tests are open to others, which munged would not have.
        self._start("munged", "--foreground", "--force", *munge)
        self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._start("slurmctld", "-D")
        self._start("slurmd", "-D", "-N", self.host)
        self._wait(
            lambda: "idle" in self.call("sinfo", "--noheader", "--format=%T", check=False), "a node that is idle"
        )
        return self

    def _start(self, *command: str) -> None:
        log = open(self.folder / f"{command[0]}.out", "ab")  # noqa: SIM115
        self.processes.append(
            subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        )
        log.close()

    def _wait(self, ready, what: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.log"))
                self.__exit__()
                raise RuntimeError(f"no {what} after {seconds} s:\n{logs}")
            time.sleep(0.2)

    def call(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def __exit__(self, *_) -> None:
        self.call("scancel", "--user=root", check=False)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()
