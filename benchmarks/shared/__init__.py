"""What the benchmarks share: trials, the methods that are compared, tables of their records."""
