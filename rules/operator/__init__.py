"""Operator level: the loops of one nest."""
