"""The exact solver beside other packages, each in a process of its own."""
