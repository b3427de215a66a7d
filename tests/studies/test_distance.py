"""The study of distances from the best schedule: columns, claims, wrong keys."""

from dataclasses import replace

import numpy as np
import pytest

import slotkern as sk
from slotkern import studies
from slotkern.studies.batches import draw_cycle
from slotkern.studies.claims import verdicts
from slotkern.studies.distance import DISTANCE
from slotkern.studies.experiment import compute

pytest.importorskip("highspy")


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    study = studies.load_study("distance")
    small = [replace(s, job={**s.job, "max_work": 300}) for s in study.settings]
    study = replace(study, chunk=10, settings=tuple(small))
    out = tmp_path_factory.mktemp("distance")
    return studies.Summary(studies.run(study, 10, out=out))


def test_distances_are_those_of_the_schedules():
    study = studies.load_study("distance")
    setting = study.sweeps["time"][0]
    setting = replace(setting, job={**setting.job, "max_work": 300})
    found = compute(setting, 1, 2)
    drawn = draw_cycle(setting, 1)
    best, css = (
        sk.schedule_batch(drawn.slots, drawn.batch, policy, minimize="processor_time")
        for policy in (sk.Optimal(0.01, 300), sk.CSS)
    )
    names = [algorithm.name for algorithm in setting.algorithms]
    distance = dict(zip(names, found["distance"][0].tolist(), strict=True))
    assert best.scheduled.all()
    assert distance["optimal"] == pytest.approx(100 * (best.value / best.bound - 1))
    assert distance["css"] == pytest.approx(100 * (css.value / best.bound - 1))
    assert found["proven"][0].tolist() == [100.0 * best.slices["proven"][0]] * 5


def test_no_policy_is_nearer_than_its_bound_and_failures_are_not_compared(summary):
    for setting in summary.study.settings:
        (chunk,) = summary.campaign.chunks(setting)
        got = summary.campaign.read(chunk)
        distance, failed = got["distance"], got["failed_jobs"]
        some = got["compared"] == 100
        assert (distance[some] >= 0).all()
        assert np.isnan(distance[~some]).all()
        assert ((failed > 0).any(axis=1) <= ~some[:, 0]).all()
        assert some.any()


def test_the_claims_hold_in_a_few_cycles(summary):
    answers = {each.text: each.holds for each in verdicts(summary)}
    assert len(answers) == 5
    held = [text for text, holds in answers.items() if holds]
    assert "the batch-slicer leaves less processor time than backfilling" in held
    assert not [text for text, holds in answers.items() if holds is False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "optimal", "k": 3}, r"algorithms\.css\.k: unknown key"),
        ({"policy": "slicer", "domains": "near"}, r"css\.domains"),
        ({"policy": "none"}, r"css\.policy"),
    ],
)
def test_wrong_algorithms_are_named(options, message):
    setting = studies.load_study("distance").sweeps["time"][0]
    wrong = replace(setting.algorithms[1], options=options)
    with pytest.raises(ValueError, match=message):
        DISTANCE.check(replace(setting, algorithms=(wrong,)))


@pytest.mark.parametrize(("key", "value"), [("gap", -1), ("max_work", 0.5)])
def test_wrong_options_of_the_bound_are_named(key, value):
    setting = studies.load_study("distance").sweeps["time"][0]
    with pytest.raises(ValueError, match=rf"job\.{key}"):
        DISTANCE.check(replace(setting, job={**setting.job, key: value}))
