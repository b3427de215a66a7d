"""The papers' studies, and your own: environments, campaigns, tables and pictures."""

from slotkern.studies.campaign import Campaign, run
from slotkern.studies.study import PAPERS, Study, load_study

__all__ = ["PAPERS", "Campaign", "Study", "load_study", "run"]
