"""The mathematical level: strategies that rewrite the arithmetic inside one equation.

`sites` says where they work and puts results back; each family of strategies has a file of its own.
"""

from rules.mathematics.sites import put_back, scalar_sites

__all__ = ["put_back", "scalar_sites"]
