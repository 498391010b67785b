"""Training on a budget: the experiments of the BSCA paper."""
