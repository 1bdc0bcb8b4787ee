"""Engines run the forward and backward passes; methods only say what to change in them."""
