"""All experiments of the papers and the peers as one run, and the page made of it."""
