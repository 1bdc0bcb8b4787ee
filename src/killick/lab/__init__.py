"""The lab: each objective against its closed form, on problems small enough to enumerate."""
