"""What `import lapsus` offers: type checkers and editors read it here, and so does lapsus/__init__.py, which imports a
name when it is first asked for."""

from . import (
    behaviour as behaviour,
    circular as circular,
    diffusion as diffusion,
    energy as energy,
    engine as engine,
    evaluation as evaluation,
    fitting as fitting,
    mechanism as mechanism,
    networks as networks,
    pipeline as pipeline,
    plots as plots,
    recordings as recordings,
    report as report,
    rng as rng,
    statistics as statistics,
    sweep as sweep,
    tasks as tasks,
    training as training,
    trials as trials,
    zoo as zoo,
)
from .behaviour import (
    BNS as BNS,
    AttendedSwap as AttendedSwap,
    BySetSize as BySetSize,
    CausalInference as CausalInference,
    ConstantSwap as ConstantSwap,
    NoSwap as NoSwap,
    SmoothSwap as SmoothSwap,
    TabulatedSwap as TabulatedSwap,
)
from .checks import check_behaviour as check_behaviour, check_network as check_network, check_task as check_task
from .designs import Design as Design, read_design as read_design
from .engine import rollout as rollout
from .errors import LapsusError as LapsusError, LapsusWarning as LapsusWarning
from .evaluation import evaluate as evaluate, simulate as simulate
from .evaluation.manipulations import predict as predict
from .evaluation.verdict import Verdict as Verdict, verdict as verdict
from .fitting import Fit as Fit, fit as fit
from .fitting.causal_inference import fit_causal_inference as fit_causal_inference
from .fitting.examine import Examination as Examination, examine as examine
from .mechanism import analyse as analyse
from .networks import DendriticTree as DendriticTree, PointNeurons as PointNeurons, TwoLayer as TwoLayer
from .pipeline import Discovery as Discovery, discover as discover
from .pipeline.reports import write_report as write_report
from .protocols import Behaviour as Behaviour, Network as Network, Objective as Objective, Task as Task
from .tasks import (
    AttendedIndexCued as AttendedIndexCued,
    CueCombination as CueCombination,
    FeatureCued as FeatureCued,
    IndexCued as IndexCued,
)
from .training import (
    Diffusion as Diffusion,
    Energy as Energy,
    Experiment as Experiment,
    Model as Model,
    SampleMSE as SampleMSE,
    TaskOptimal as TaskOptimal,
    read_experiment as read_experiment,
    train as train,
)
from .trials import Trials as Trials, read_trials as read_trials
from .zoo import Run as Run, load as load, open_network as open_network

__version__: str
__all__: list[str]
