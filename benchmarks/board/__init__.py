"""Tables as they are, beside what users would take instead."""
