"""Calls in worker processes with a hard bound on time and memory; nothing starts before the first call."""

from killick.verifiers.service.pool import Outcome, Service, shared

__all__ = ["Outcome", "Service", "shared"]
