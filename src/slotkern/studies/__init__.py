"""Studies: reproducible experiments of the papers and of users.

Environments, campaigns over thousands of cycles, tables and figures.
"""

from slotkern.studies.campaign import Campaign, run
from slotkern.studies.experiment import Experiment
from slotkern.studies.load import load_study
from slotkern.studies.papers import PAPERS
from slotkern.studies.study import Study
from slotkern.studies.summary import Summary

__all__ = ["PAPERS", "Campaign", "Experiment", "Study", "Summary", "load_study", "run"]
