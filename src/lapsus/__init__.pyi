"""What `import lapsus` offers: type checkers and editors read it here, and so does lapsus/__init__.py, which imports a
name when it is first asked for."""

from lapsus import (
    analysis as analysis,
    behaviour as behaviour,
    circular as circular,
    diffusion as diffusion,
    discovery as discovery,
    engine as engine,
    inference as inference,
    library as library,
    networks as networks,
    paper as paper,
    plots as plots,
    report as report,
    statistics as statistics,
    streams as streams,
    study as study,
    sweep as sweep,
    tasks as tasks,
    training as training,
    trials as trials,
)
from lapsus.behaviour import (
    BNS as BNS,
    AttendedSwap as AttendedSwap,
    CausalInference as CausalInference,
    ConstantSwap as ConstantSwap,
    NoSwap as NoSwap,
    SmoothSwap as SmoothSwap,
    TabulatedSwap as TabulatedSwap,
)
from lapsus.checks import check_behaviour as check_behaviour, check_network as check_network, check_task as check_task
from lapsus.discovery import Discovery as Discovery, discover as discover
from lapsus.discovery.reports import write_report as write_report
from lapsus.engine import rollout as rollout
from lapsus.errors import LapsusError as LapsusError, LapsusWarning as LapsusWarning
from lapsus.inference import Fit as Fit, fit as fit
from lapsus.inference.causal_inference import fit_causal_inference as fit_causal_inference
from lapsus.inference.examine import Examination as Examination, examine as examine
from lapsus.library import Run as Run, load as load, open_network as open_network
from lapsus.networks import DendriticTree as DendriticTree, PointNeurons as PointNeurons, TwoLayer as TwoLayer
from lapsus.protocols import Behaviour as Behaviour, Network as Network, Objective as Objective, Task as Task
from lapsus.study import analyse as analyse, evaluate as evaluate, simulate as simulate
from lapsus.study.verdict import Verdict as Verdict, verdict as verdict
from lapsus.tasks import (
    AttendedIndexCued as AttendedIndexCued,
    CueCombination as CueCombination,
    FeatureCued as FeatureCued,
    IndexCued as IndexCued,
)
from lapsus.training import (
    Diffusion as Diffusion,
    Experiment as Experiment,
    Model as Model,
    SampleMSE as SampleMSE,
    TaskOptimal as TaskOptimal,
    read_experiment as read_experiment,
    train as train,
)
from lapsus.trials import Trials as Trials, read_trials as read_trials

__version__: str
__all__: list[str]
