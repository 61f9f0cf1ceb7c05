"""The soak: hours of everyday traffic and attacks, and a look at everybody else."""
