"""Exact and sampled cuts: the experiments of the sampled-cuts paper."""
