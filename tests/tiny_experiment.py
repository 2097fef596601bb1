"""A training of a second: two stages, every part of the loop."""

TINY = {
    "name": "tiny",
    "task": {"kind": "index-cued", "prestimulus": 1, "stimulus": 2, "delay": 1, "cue": 2, "denoise": 4},
    "network": {"kind": "dendritic", "units": 6, "branching": [3, 3]},
    "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.2}},
    "stage": [
        {"updates": 15, "objective": {"kind": "task-optimal"}, "conditions": 8, "trials": 4, "task": {"denoise": 2}},
        {
            "updates": 25,
            "objective": {"kind": "diffusion"},
            "conditions": 8,
            "trials": 4,
            "average": 0.9,
            "principal_axes": 0.9,
            "hard_example_fraction": 0.25,
        },
    ],
}
