"""Settings that hold for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Same examples in every run, whatever the load of the machine. `make fuzz` and ad-hoc runs may choose another profile with
# --hypothesis-profile.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")
