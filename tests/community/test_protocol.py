"""The protocol core against its Python reference, and in unreliable networks."""

from __future__ import annotations

from typing import Any

import pytest
from community_world import JOBS, World
from hypothesis import given
from hypothesis import strategies as st

from slotkern._kernels.community import KINDS, Agent, Message
from slotkern.published.casa import Node

SCRIPTS = st.lists(st.integers(0, 16 * 40 - 1), max_size=120)
RULES = st.fixed_dictionaries(
    {
        "omega": st.sampled_from([1.0, 0.5, 0.0]),
        "varpi": st.sampled_from([1.0, 0.0, 2.0]),
        "mu": st.sampled_from([1.0, 0.0, 0.5]),
        "whole_node": st.booleans(),
        "most_informed": st.sampled_from([2**32 - 1, 1]),
        "promise_life": st.sampled_from([float("inf"), 3.0]),
    }
)


@given(script=SCRIPTS, rules=RULES)
def test_the_core_agrees_with_the_reference(
    script: list[int], rules: dict[str, Any]
) -> None:
    core, twin = World(Agent, rules), World(Node, rules)
    for step in script:
        core.play([step])
        twin.play([step])
        assert core.log == twin.log
        for one, other in zip(core.nodes, twin.nodes, strict=True):
            assert one.waiting == other.waiting
            assert one.queue_load == other.queue_load
            assert one.shadow_load == other.shadow_load
            assert one.negotiations == other.negotiations


@given(script=SCRIPTS, rules=RULES)
def test_no_job_is_lost_or_run_twice(script: list[int], rules: dict[str, Any]) -> None:
    world = World(Agent, rules)
    world.play(script)
    world.deliver_all()
    for node in world.nodes:
        node.expire(float("inf"))
        if rules["promise_life"] < float("inf"):
            assert node.promises == 0
            assert node.shadow_load == 0.0


@given(script=SCRIPTS)
def test_offers_are_revoked_without_losses(script: list[int]) -> None:
    world = World(Agent, {})
    world.play([step for step in script if step % 16 != 8])
    world.deliver_all()
    suspended = sum(world.suspended.values())
    assert sum(node.negotiations for node in world.nodes) == suspended
    assert all(node.promises == 0 and node.shadow_load == 0 for node in world.nodes)


def two() -> tuple[Agent, Agent]:
    pair = Agent(0, 1), Agent(1, 4)
    for agent in pair:
        agent.describe(0, 1, 8.0)
    return pair


def sent(asked: list[Any]) -> list[Any]:
    return [each[1] for each in asked if each[0] == "send"]


def handed_over() -> tuple[Agent, Agent, Any]:
    """Return two nodes and the ASSIGN that hands a job from node 0 to node 1."""
    one, other = two()
    [(_, ticket)] = one.submit(0)
    own, asked = sent(one.contact(ticket, [1]))
    assert own.receiver == 0  # never delivered in this test
    [accept] = sent(other.receive(asked, 1.0))
    assert accept.times == (2.0, 0.0, 0.0)
    one.receive(accept, 2.0)
    [assign] = sent(one.decide(ticket))
    return one, other, assign


def test_a_repeated_assign_is_only_acknowledged() -> None:
    one, other, assign = handed_over()
    first = other.receive(assign, 3.0)
    assert [each[0] for each in first] == ["came", "send"]
    assert other.start(0)
    again = other.receive(assign, 4.0)
    assert [each[0] for each in again] == ["send"]
    assert again[0][1].kind == "receipt"
    assert other.waiting == []
    assert one.receive(again[0][1], 5.0) == [("given", 0, 1)]
    assert one.receive(again[0][1], 6.0) == []


def test_an_assign_is_sent_until_it_is_acknowledged() -> None:
    one, _, assign = handed_over()
    ticket = assign.negotiation
    for _ in range(3):
        again = one.resend(ticket)
        assert again == [("send", assign), ("resend", ticket)]
    receipt = Message("receipt", 1, 0, 0, 0, 0, 0, ticket, ticket, (0, 0, 0))
    one.receive(receipt, 9.0)
    assert one.resend(ticket) == []


def test_a_restarted_node_continues() -> None:
    one, other, assign = handed_over()
    other.receive(assign, 3.0)
    back = Agent(1, 4, first_serial=1000)  # restarted from its journal
    back.describe(0, 1, 8.0)
    assert back.hold(0, 1, 3.0) == [("came", 0, 1, 3.0)]
    assert back.waiting == [(0, 1, 3.0)]
    assert [each[0] for each in back.receive(assign, 4.0)] == ["send"]
    again = Agent(0, 1, first_serial=1000)  # the requester restarts too
    again.describe(0, 1, 8.0)
    [assign_again, (_, ticket)] = again.hand_over(0, 1, 1)
    assert assign_again[1].hop == assign.hop
    assert ticket != assign.negotiation
    [receipt] = sent(back.receive(assign_again[1], 5.0))
    assert again.receive(receipt, 6.0) == [("given", 0, 1)]
    assert one.negotiations == 1  # of the instance before the restart


def test_a_job_may_return_but_old_copies_are_ignored() -> None:
    _, other, assign = handed_over()
    other.receive(assign, 3.0)
    assert other.start(0)  # as if the job had been moved since
    back = assign._replace(hop=3, negotiation=(9, 9))
    assert other.receive(back, 4.0)[0] == ("came", 0, 3, 4.0)
    for hop in (1, 2, 3):
        old = other.receive(assign._replace(hop=hop), 5.0)
        assert [each[0] for each in old] == ["send"]
    assert other.waiting == [(0, 3, 4.0)]


def test_a_late_offer_wakes_a_suspended_job() -> None:
    one, other = two()
    [(_, ticket)] = one.submit(0)
    _, asked = sent(one.contact(ticket, [1]))
    assert one.decide(ticket) == [("suspended", 0, ticket)]
    [accept] = sent(other.receive(asked, 1.0))
    woken = one.receive(accept, 2.0)
    assert [each[0] for each in woken] == ["resumed", "send", "resend"]
    assert woken[1][1].kind == "assign_request"


def test_messages_of_an_earlier_round_change_nothing() -> None:
    one, other = two()
    [(_, ticket)] = one.submit(0)
    _, asked = sent(one.contact(ticket, [1]))
    one.decide(ticket)
    resumed, (_, second) = one.retry(ticket)
    assert resumed == ("resumed", 0)
    assert one.decide(ticket) == one.retry(ticket) == one.contact(ticket, [1]) == []
    [accept] = sent(other.receive(asked, 1.0))
    [revoke] = sent(one.receive(accept, 2.0))
    assert revoke.kind == "revoke"
    assert other.shadow_load == 8.0
    other.receive(revoke, 3.0)
    assert other.shadow_load == 0.0
    assert second != ticket


@pytest.mark.parametrize("kind", KINDS)
def test_messages_with_unknown_handles_have_no_effect(kind: str) -> None:
    one, _ = two()
    place, nowhere = 2**31, (2**32 - 1, 5)
    message = Message(kind, 1, 0, 0, 0, place, 0, nowhere, nowhere, (1.0, 1.0, 1.0))
    asked = one.receive(message, 1.0)
    answer = {
        "request": "accept_request",
        "inform": None,
        "accept_request": "revoke",
        "accept_inform": "revoke",
        "assign_request": "receipt",
        "assign_inform": "receipt",
    }.get(kind)
    assert [each.kind for each in sent(asked)] == ([answer] if answer else [])


def test_unknown_jobs_are_refused() -> None:
    agent = Agent(0, 1)
    with pytest.raises(ValueError, match="job 3 has not been described"):
        agent.submit(3)
    with pytest.raises(ValueError, match="job 3 needs processors and an estimate"):
        agent.describe(3, 0, 1.0)
    with pytest.raises(ValueError, match="a node needs processors and a speed"):
        Agent(0, 0)
    assert len(JOBS) < 16
