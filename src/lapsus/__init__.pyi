"""What `import lapsus` offers: type checkers and editors read it here, and so does lapsus/__init__.py, which imports a
name when it is first asked for."""

from lapsus import (
    analysis as analysis,
    behaviour as behaviour,
    circular as circular,
    diffusion as diffusion,
    engine as engine,
    evaluation as evaluation,
    fitting as fitting,
    networks as networks,
    pipeline as pipeline,
    plots as plots,
    report as report,
    rng as rng,
    statistics as statistics,
    study as study,
    sweep as sweep,
    tasks as tasks,
    training as training,
    trials as trials,
    zoo as zoo,
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
from lapsus.engine import rollout as rollout
from lapsus.errors import LapsusError as LapsusError, LapsusWarning as LapsusWarning
from lapsus.evaluation import evaluate as evaluate, simulate as simulate
from lapsus.evaluation.verdict import Verdict as Verdict, verdict as verdict
from lapsus.fitting import Fit as Fit, fit as fit
from lapsus.fitting.causal_inference import fit_causal_inference as fit_causal_inference
from lapsus.fitting.examine import Examination as Examination, examine as examine
from lapsus.networks import DendriticTree as DendriticTree, PointNeurons as PointNeurons, TwoLayer as TwoLayer
from lapsus.pipeline import Discovery as Discovery, discover as discover
from lapsus.pipeline.reports import write_report as write_report
from lapsus.protocols import Behaviour as Behaviour, Network as Network, Objective as Objective, Task as Task
from lapsus.study import analyse as analyse
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
from lapsus.zoo import Run as Run, load as load, open_network as open_network

__version__: str
__all__: list[str]
