"""A metascheduler: one search and one booking over the pools of several domains.

`Domains` has the operations; `joined` builds the pool that it searches, and `booking`
books a window in several domains, all or none.
"""

from .booking import DomainBooking
from .metascheduler import Domains

__all__ = ["DomainBooking", "Domains"]
