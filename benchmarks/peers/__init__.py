"""What users would take instead: fronts of error and cost, and how time grows with the rows."""
