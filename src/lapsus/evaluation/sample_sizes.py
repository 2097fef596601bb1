"""How much is simulated: one table with a full and a quick value for studies of a network, one for the paper's figures,
so that a test can ask for less."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleSizes:
    """Numbers of trials, conditions and repeats of every study of a network, and the updates between two looks."""

    # Against the target, on fresh conditions.
    evaluation_conditions: int = 1024
    evaluation_trials: int = 8
    # Against a subject: trials at most, repeats of each, two-item trials where the subject saw more items.
    match_trials: int = 4096
    match_repeats: int = 8
    match_conditions: int = 2048
    cloud: int = 512
    # The questions: conditions, pasts of each and replays of each past; trials among which donors are found;
    # conditions and trials that are pushed; location pairs and fixed colours of the swap axis; trials for the kind;
    # visited states from which slow points are looked for. `every` step of delay 2 is looked at.
    replay_conditions: int = 48
    groups: int = 64
    replays: int = 4
    donors: int = 128
    push_conditions: int = 48
    push_trials: int = 48
    locations: int = 4
    colours: int = 4
    single_trials: int = 4096
    starts: int = 4096
    every: int = 4
    # Manipulations: conditions and trials of each at each level.
    prediction_conditions: int = 256
    prediction_trials: int = 16
    # Simulated recordings of each size, for what a recording would show.
    recordings: int = 10
    # Planes: probe distances (degrees) and rotations of each, shufflings of colours. Resamplings of the prediction
    # on single trials.
    degrees: tuple[int, ...] = (45, 75, 105, 135, 165)
    rotations: int = 8
    shuffles: int = 60
    repeats: int = 500
    # Colours and trials of the rings that are shown, and how many trials: more would hide each other.
    ring_colours: int = 48
    ring_trials: int = 16
    shown: int = 320
    # Updates of a round of a discovery's training; a look at a network between two rounds, or at one that another may
    # start from; a glimpse of one that is being trained, with responses to one condition.
    round_updates: int = 1500
    look_conditions: int = 512
    look_trials: int = 8
    glimpse_conditions: int = 256
    glimpse_trials: int = 4
    glimpse_cloud: int = 300


FULL = SampleSizes()
QUICK = SampleSizes(
    evaluation_conditions=128,
    match_trials=512,
    match_repeats=2,
    match_conditions=256,
    cloud=64,
    replay_conditions=8,
    groups=8,
    replays=2,
    donors=32,
    push_conditions=4,
    push_trials=8,
    locations=2,
    colours=2,
    single_trials=600,
    starts=64,
    every=10,
    degrees=(45, 165),
    rotations=1,
    shuffles=20,
    repeats=60,
    ring_trials=4,
    shown=60,
    prediction_conditions=16,
    recordings=2,
    prediction_trials=2,
)


@dataclass(frozen=True)
class FigureSizes:
    """Numbers of trials, conditions and repeats behind the figures and claims of the paper."""

    # Figure 2: conditions and trials of each behind a swap function; one-trial conditions to which BNS is fitted (0: no
    # fit); conditions and trials of an ablation.
    swap_conditions: int = 4096
    swap_trials: int = 16
    fitted_trials: int = 2048
    ablated_conditions: int = 128
    ablated_trials: int = 256
    # Conditions and trials of each behind a share of swaps; samples of one condition that are shown.
    share_conditions: int = 2048
    share_trials: int = 8
    shown_samples: int = 512
    # Conditions and trials of each of the network that averages.
    averaged_conditions: int = 512
    averaged_trials: int = 64
    # Figure 3: probe distances (degrees), rotations of each, trials a condition of index-cued networks, resamplings;
    # trials a condition of the points that are shown.
    degrees: tuple[int, ...] = (45, 75, 105, 135, 165)
    rotations: int = 24
    index_trials: int = 8
    alignment_repeats: int = 100
    plane_trials: int = 16
    # Table 1: fits of a sigmoid to resampled rotations.
    sigmoid_repeats: int = 200
    # Figure 4: one-trial conditions for the decoders; fixed colours, rotations and trials a condition of the rings;
    # colours of the rings that are shown.
    decoded_trials: int = 4096
    ring_colours: int = 8
    ring_rotations: int = 4
    ring_trials: int = 16
    shown_colours: int = 48
    # The prediction: rotations of each probe distance and trials a condition; conditions and trials that are pushed.
    prediction_rotations: int = 6
    prediction_trials: int = 2
    push_conditions: int = 48
    push_trials: int = 48
    # When swaps are decided (study.commitment).
    commitment_conditions: int = 32
    commitment_groups: int = 48
    commitment_replays: int = 4
    commitment_every: int = 8
    # Memory at other delays: conditions and trials of each.
    delay_conditions: int = 1024
    delay_trials: int = 8
    # Cue combination: pairs of cues (a square grid of so many a side), of a finer grid for the test of modes (an eighth
    # of whose pairs have two), samples of each, visual cues along a line.
    cue_grid: int = 20
    cue_modes_grid: int = 32
    cue_samples: int = 2000
    cue_points: int = 61
    # Resamplings behind the interval of a claim.
    claim_repeats: int = 500


FULL_FIGURES = FigureSizes()
QUICK_FIGURES = FigureSizes(
    fitted_trials=0,
    ablated_conditions=64,
    degrees=(45, 165),
    rotations=2,
    index_trials=2,
    alignment_repeats=20,
    sigmoid_repeats=10,
    decoded_trials=800,
    ring_colours=4,
    ring_rotations=1,
    prediction_rotations=1,
    commitment_conditions=8,
    commitment_groups=32,
    commitment_every=6,
    delay_conditions=16,
    cue_grid=7,
    cue_modes_grid=14,
    cue_samples=800,
    cue_points=13,
    claim_repeats=60,
)
