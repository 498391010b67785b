"""Editing of training sets: the experiments of the cross-training paper."""
