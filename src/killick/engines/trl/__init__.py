"""The TRL engine: `KillickTrainer` and `KillickConfig` on the seams of `GRPOTrainer`, without a copy of its loss."""
