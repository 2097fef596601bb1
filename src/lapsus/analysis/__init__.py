"""From activity and a trial table to the mechanism: the same functions for networks and for recordings.

activity     the dataset that every analysis takes, from plain arrays too
swaps        how often, and whether responses have a second mode          (Fig 2)
alignment    planes of the two colours over time; sigmoid against flat    (Fig 3, Table 1)
decoders     misbinding, misselection or misinterpretation                (Fig 4B)
rings        two rings and their normal                                   (Fig 4C, D)
trialwise    does alignment before the cue predict swaps, trial by trial?
synthetic    populations that swap in a known way
claims       the paper's claims and the rule that decides them
"""
