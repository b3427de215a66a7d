"""A metascheduler: one search and one booking over the pools of several domains.

`Domains` has the operations; `members` keeps the joined pool up to date, which `joined`
builds, and `booking` books windows in several domains, all or none. `RemoteDomains`
searches domains in other processes: `candidates` has the slots of a domain that can
matter, `agent` answers for a domain, and `rounds` asks the agents.
"""

from .booking import DomainBooking
from .metascheduler import Domains
from .remote import RemoteDomain, RemoteDomains, remote_domain

__all__ = [
    "DomainBooking",
    "Domains",
    "RemoteDomain",
    "RemoteDomains",
    "remote_domain",
]
