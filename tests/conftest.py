"""How many cases hypothesis tries, and which.

By default the same ones every time; HYPOTHESIS_PROFILE=fresh for as many new ones
(`make fresh` prints their seed), HYPOTHESIS_PROFILE=many for a long run of new ones,
HYPOTHESIS_PROFILE=brief for a third of the same ones, where each takes long;
HYPOTHESIS_PROFILE=unshrunk for those, where it counts only whether one fails.
A test that wants more or fewer takes a share of the profile's number.
"""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "default",
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fresh", settings.get_profile("default"), derandomize=False, print_blob=True
)
settings.register_profile("many", settings.get_profile("fresh"), max_examples=20_000)
settings.register_profile("brief", settings.get_profile("default"), max_examples=100)
settings.register_profile(
    "unshrunk", settings.get_profile("brief"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
