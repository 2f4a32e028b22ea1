"""What users run today, with their own files: the set-ups A, C, D and E, in Connect mode."""
