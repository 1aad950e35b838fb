"""Measurements that print a table. Not tests: nothing here fails because a machine is slow."""
