"""A metascheduler: one search and one booking over the pools of several domains.

`Domains` has the operations; `members` keeps the joined pool up to date, which `joined`
builds, and `booking` books windows in several domains, all or none.
"""

from .booking import DomainBooking
from .metascheduler import Domains

__all__ = ["DomainBooking", "Domains"]
