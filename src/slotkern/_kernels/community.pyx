"""Binding of communities: simulations, and the protocol core for other drivers."""

from collections import namedtuple

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from slotkern._kernels.base cimport Status, InterruptScope, attempt, status_error

cnp.import_array()

cdef extern from "slotkern/base/backfill.hpp" namespace "slotkern" nogil:
    cdef enum class Backfill(int):
        none
        easy
        first_fit
        conservative

cdef extern from "slotkern/community/simulation.hpp" namespace "slotkern::community" nogil:
    cdef cppclass Handle:
        uint32_t index, generation

    cdef enum class MessageKind(uint8_t):
        pass

    cdef cppclass CMessage "slotkern::community::Message":
        MessageKind kind
        uint32_t from_ "from"
        uint32_t to, job, hop, place, contacted
        Handle negotiation, promise
        double times[3]

    cdef cppclass CommunityJobs:
        const double* submit
        const double* run
        const double* estimate
        const int32_t* width
        const int32_t* home
        const int32_t* label
        size_t size

    cdef cppclass NodeSpec:
        int32_t processors
        double speed
        int32_t label

    cdef cppclass QueuedJob:
        uint32_t job, hop
        double entered

    cdef cppclass LocalQueue:
        size_t size()
        QueuedJob& operator[](size_t)
        double load()
        void record_wait(double)
        double mean_wait(double)

    cdef cppclass MembershipChange:
        double time
        uint32_t node
        cbool joins

    cdef cppclass Grid:
        vector[NodeSpec] nodes
        vector[MembershipChange] changes
        vector[uint8_t] present

    cdef cppclass Neighbours:
        uint32_t drawn
        vector[uint64_t] first
        vector[uint32_t] to

    cdef cppclass Rules:
        double omega, varpi, mu
        cbool whole_node
        uint32_t most_informed
        double promise_life

    cdef cppclass Preferences:
        const uint8_t* table
        int64_t (*function)(double, int64_t, int64_t)
        const int64_t* row
        size_t nodes

    cdef cppclass Settings:
        double cycle, window, interval, discovery, discovery_each, latency
        cbool latency_varies
        double loss, resend, retry
        uint32_t retries
        uint64_t seed

    cdef enum class Scenario(int):
        direct
        community

    cdef enum class PlacementPolicy(int):
        home
        most_free
        least_load
        central_fcfs
        central_scan

    cdef cppclass LocalPolicy:
        Backfill backfill
        cbool shortest_first

    cdef cppclass SimulationConfig:
        CommunityJobs jobs
        Grid grid
        LocalPolicy local
        Scenario scenario
        PlacementPolicy placement
        double decision
        Neighbours neighbours
        Rules rules
        Settings settings

    cdef cppclass Outcome:
        vector[double] queued, start, end
        vector[int32_t] node
        vector[uint32_t] moves
        vector[uint8_t] fate

    cdef cppclass Tally:
        uint64_t lost, suspensions

    cdef cppclass Simulation:
        Status run() noexcept
        const Outcome& outcome()
        Tally tally()
        size_t events()
        double shadow_load()
        size_t promises()

    unique_ptr[Simulation] make_simulation(const SimulationConfig&) except +

cdef extern from "slotkern/community/recorder.hpp" namespace "slotkern::community" nogil:
    cdef enum class ActionKind(int):
        pass

    cdef cppclass Action:
        ActionKind what
        uint32_t job, hop
        double entered
        Handle handle
        CMessage message

    cdef cppclass CoreAgent "slotkern::community::Agent":
        LocalQueue& queue()
        cbool present()
        double shadow_load()
        size_t promises()
        size_t negotiations()
        void record_hop(uint32_t, uint32_t) except +
        void expire(double)

    cdef cppclass RecordedAgent:
        RecordedAgent(uint32_t, const NodeSpec&, const Rules&, uint64_t, uint32_t) except +
        void describe(uint32_t, int32_t, double, int32_t) except +
        cbool is_described(uint32_t)
        CoreAgent& agent()
        const vector[Action]& actions()
        void clear()
        void submit(uint32_t) except +
        void contact(Handle, const vector[uint32_t]&) except +
        void receive(const CMessage&, double) except +
        void decide(Handle) except +
        void reschedule(double) except +
        void resend(Handle) except +
        void retry(Handle) except +
        void leave() except +
        void join() except +
        void hold(const QueuedJob&) except +
        void hand_over(uint32_t, uint32_t, uint32_t) except +
        cbool start(uint32_t)

cdef extern from *:
    """
    #include "slotkern/community/simulation.hpp"
    namespace slotkern::community {
    // Cython has neither std::array nor vectors of an enum class.
    inline const std::uint64_t* counts(const Tally& tally, bool own) {
      return own ? tally.own.data() : tally.sent.data();
    }
    inline const void* fates(const Outcome& outcome) { return outcome.fate.data(); }
    inline void set_preferences(Rules& rules, Preferences& preferences, std::size_t function) {
      preferences.function = reinterpret_cast<decltype(preferences.function)>(function);
      rules.willing = Preferences::is_willing;
      rules.data = &preferences;
    }
    }
    """
    const uint64_t* counts "slotkern::community::counts"(const Tally&, cbool) nogil
    const void* fates "slotkern::community::fates"(const Outcome&) nogil
    void set_preferences "slotkern::community::set_preferences"(Rules&, Preferences&, size_t) nogil

#: The kinds of messages, by number.
KINDS = ("request", "accept_request", "assign_request", "inform", "accept_inform",
         "assign_inform", "receipt", "revoke")

#: The actions that an agent requests from its driver, by number.
ACTIONS = ("send", "discover", "decide", "resend", "came", "left", "given", "suspended", "resumed")

#: The final states of a job, by number.
FATES = ("pending", "done", "no node", "no offer", "stranded")

PLACEMENTS = {"home": <int>PlacementPolicy.home, "most-free": <int>PlacementPolicy.most_free,
           "least-load": <int>PlacementPolicy.least_load,
           "central-fcfs": <int>PlacementPolicy.central_fcfs,
           "central-scan": <int>PlacementPolicy.central_scan}

#: The backfilling of the local schedulers, by name.
BACKFILLING = {"none": <int>Backfill.none, "easy": <int>Backfill.easy,
               "first-fit": <int>Backfill.first_fit,
               "conservative": <int>Backfill.conservative}

#: A message. `negotiation` and `promise` are tickets: pairs (index, generation) of integers.
Message = namedtuple("Message", ("kind", "sender", "receiver", "job", "hop", "place",
                                 "contacted", "negotiation", "promise", "times"))


cdef int fill(cnp.ndarray to, const void* source) except -1:
    """Fill the array from `source`; memcpy requires valid addresses even for 0 bytes."""
    if to.size:
        memcpy(cnp.PyArray_DATA(to), source, to.nbytes)
    return 0


cdef Rules rules_of(dict given) except *:
    cdef Rules rules
    rules.omega, rules.varpi, rules.mu = given["omega"], given["varpi"], given["mu"]
    rules.whole_node = given["whole_node"]
    rules.most_informed, rules.promise_life = given["most_informed"], given["promise_life"]
    return rules


cdef Settings settings_of(dict given) except *:
    cdef Settings to
    to.cycle, to.window, to.interval = given["cycle"], given["window"], given["interval"]
    to.discovery, to.discovery_each = given["discovery"], given["discovery_each"]
    to.latency, to.latency_varies = given["latency"], given["latency_varies"]
    to.loss, to.resend = given["loss"], given["resend"]
    to.retry, to.retries = given["retry"], given["retries"]
    to.seed = given["seed"]
    return to


def simulate(const double[::1] submit not None, const double[::1] run not None,
             const double[::1] estimate not None, const int32_t[::1] width not None,
             const int32_t[::1] home not None, const int32_t[::1] label not None,
             const int32_t[::1] processors not None, const double[::1] speed not None,
             const int32_t[::1] node_label not None, const uint8_t[::1] present not None,
             const double[::1] change_time not None, const int32_t[::1] change_node not None,
             const uint8_t[::1] change_joins not None, *,
             str backfill="none", bint shortest_first=False,
             str placement=None, double decision=0.0, uint32_t drawn=0,
             const uint64_t[::1] first=None,
             const uint32_t[::1] to=None, dict rules=None, dict settings=None,
             const int64_t[::1] row=None, const uint8_t[:, ::1] willing=None,
             size_t function=0):
    """Simulate jobs that are sorted by submission; all arguments must be valid.

    Parameters
    ----------
    submit, run, estimate, width, home, label : ndarray
        One entry for each job: times at speed 1; label that its node must have, or -1.
    processors, speed, node_label, present : ndarray
        One entry for each node.
    change_time, change_node, change_joins : ndarray
        Nodes that join or leave, by time.
    backfill, shortest_first : str, bool
        The local schedulers: a key of BACKFILLING, and the order of their queues.
    placement : str, optional
        A key of PLACEMENTS: a simulation without a protocol. None: a community.
    decision : float
        Without a protocol: seconds for each decision of the central scheduler.
    drawn : int
        Size of the random sample of neighbours; 0: all nodes, or the graph if given.
    first, to : ndarray, optional
        Graph: node i has the neighbours ``to[first[i]:first[i + 1]]``.
    rules, settings : dict
        All fields of the C++ structs ``Rules`` and ``Settings``.
    row : ndarray of int64, optional
        The caller's row of each job; needed for preferences.
    willing : ndarray of uint8, shape (jobs, nodes), optional
        Preferences: nonzero if the node is willing to run the job, by the caller's rows.
    function : int
        Preferences: address of an ``int64 (double now, int64 row, int64 node)``; 0: none.

    Returns
    -------
    queued, start, end : ndarray of float64
    node, moves, fate : ndarray
    sent, own : ndarray of uint64, shape (8,)
        Messages to others and to oneself by kind.
    rest : dict
        Further counts, and what is left of promises.
    """
    cdef SimulationConfig config
    cdef Preferences preferences
    cdef Py_ssize_t i
    config.jobs.size = submit.shape[0]
    if config.jobs.size:
        config.jobs.submit, config.jobs.run = &submit[0], &run[0]
        config.jobs.estimate = &estimate[0]
        config.jobs.width, config.jobs.home, config.jobs.label = &width[0], &home[0], &label[0]
    cdef NodeSpec profile
    for i in range(processors.shape[0]):
        profile.processors, profile.speed = processors[i], speed[i]
        profile.label = node_label[i]
        config.grid.nodes.push_back(profile)
        config.grid.present.push_back(present[i])
    cdef MembershipChange change
    for i in range(change_time.shape[0]):
        change.time, change.node = change_time[i], change_node[i]
        change.joins = change_joins[i]
        config.grid.changes.push_back(change)
    config.local.backfill = <Backfill><int>BACKFILLING[backfill]
    config.local.shortest_first = shortest_first
    if placement is not None:
        config.scenario = Scenario.direct
        config.placement = <PlacementPolicy><int>PLACEMENTS[placement]
        config.decision = decision
    else:
        config.scenario = Scenario.community
        config.neighbours.drawn = drawn
        if first is not None:
            config.neighbours.first.assign(&first[0], &first[0] + first.shape[0])
            if to.shape[0]:
                config.neighbours.to.assign(&to[0], &to[0] + to.shape[0])
        config.rules = rules_of(rules)
        config.settings = settings_of(settings)
        if row is not None and row.shape[0]:
            preferences.row, preferences.nodes = &row[0], config.grid.nodes.size()
            if willing is not None:
                preferences.table = &willing[0, 0]
            set_preferences(config.rules, preferences, function)

    cdef unique_ptr[Simulation] machinery = make_simulation(config)
    cdef Simulation* it = machinery.get()
    cdef InterruptScope interrupts
    cdef Status status = Status.ok
    while attempt(interrupts, status):
        with nogil:
            status = it.run()
    if status != Status.ok:
        raise status_error(status, "simulate the community")

    cdef const Outcome* outcome = &it.outcome()
    cdef size_t count = config.jobs.size
    queued, start, end = np.empty(count), np.empty(count), np.empty(count)
    node, moves = np.empty(count, np.int32), np.empty(count, np.uint32)
    fate = np.empty(count, np.uint8)
    fill(queued, outcome.queued.data())
    fill(start, outcome.start.data())
    fill(end, outcome.end.data())
    fill(node, outcome.node.data())
    fill(moves, outcome.moves.data())
    fill(fate, fates(outcome[0]))
    sent, own = np.empty(len(KINDS), np.uint64), np.empty(len(KINDS), np.uint64)
    cdef Tally tally = it.tally()
    fill(sent, counts(tally, False))
    fill(own, counts(tally, True))
    rest = {"lost": tally.lost, "suspensions": tally.suspensions, "events": it.events(),
            "shadow_load": it.shadow_load(), "promises": it.promises()}
    return queued, start, end, node, moves, fate, sent, own, rest


cdef Handle handle_from_ticket(given) except *:
    cdef Handle ticket
    ticket.index, ticket.generation = given
    return ticket


cdef object as_message(const CMessage& message):
    cdef Py_ssize_t kind = <Py_ssize_t>message.kind
    return Message(KINDS[kind], message.from_, message.to, message.job,
                   message.hop, message.place, message.contacted,
                   (message.negotiation.index, message.negotiation.generation),
                   (message.promise.index, message.promise.generation),
                   (message.times[0], message.times[1], message.times[2]))


cdef class Agent:
    """The agent of one node: the protocol core, without a clock or a network of its own.

    Every method returns the actions to carry out, in order: tuples that begin with a word of
    `ACTIONS`:

    - ``("send", message)``: a `Message`; delivery may fail, be late, or be repeated;
    - ``("discover", ticket)``: call `contact` with neighbours of this node;
    - ``("decide", ticket)``: call `decide` when answers can have arrived;
    - ``("resend", ticket)``: call `resend` after a while;
    - ``("came", job, hop, entered)``: the job was appended to the queue;
    - ``("left", job)``: the job was removed from the queue, to be handed over;
    - ``("given", job, hop)``: the receiver has confirmed the job;
    - ``("suspended", job, ticket)``: no node offers to run it; `retry` starts a new round;
    - ``("resumed", job)``: a suspended job is retried, or was offered a node late.

    Parameters
    ----------
    node : int
        The number of the node.
    processors, speed, label : int, float, int
    seed : int
        Seed of its random choices.
    first_serial : int
        Greater than every serial that this node used before a restart.
    omega, varpi, mu, whole_node, most_informed, promise_life
        As in `slotkern.Community`.
    """

    cdef unique_ptr[RecordedAgent] it

    def __init__(self, uint32_t node, int32_t processors, *, double speed=1, int32_t label=0,
                 uint64_t seed=0, uint32_t first_serial=0, double omega=1, double varpi=1,
                 double mu=1, bint whole_node=True, uint32_t most_informed=0xFFFFFFFF,
                 double promise_life=INFINITY):
        cdef NodeSpec profile
        profile.processors, profile.speed, profile.label = processors, speed, label
        if processors < 1 or not 0 < speed < INFINITY:
            raise ValueError(f"a node needs processors and a speed, got {processors}, {speed}")
        cdef Rules rules = rules_of({
            "omega": omega, "varpi": varpi, "mu": mu, "whole_node": whole_node,
            "most_informed": most_informed, "promise_life": promise_life})
        self.it.reset(new RecordedAgent(node, profile, rules, seed, first_serial))

    cdef list take_actions(self):
        cdef const Action* action
        cdef size_t i
        asked = []
        for i in range(self.it.get().actions().size()):
            action = &self.it.get().actions()[i]
            word = <Py_ssize_t>action.what
            what = ACTIONS[word]
            ticket = action.handle.index, action.handle.generation
            if what == "send":
                asked.append((what, as_message(action.message)))
            elif what == "came":
                asked.append((what, action.job, action.hop, action.entered))
            elif what == "suspended":
                asked.append((what, action.job, ticket))
            elif what == "given":
                asked.append((what, action.job, action.hop))
            elif what in ("left", "resumed"):
                asked.append((what, action.job))
            else:
                asked.append((what, ticket))
        self.it.get().clear()
        return asked

    cdef int require_described(self, uint32_t job) except -1:
        if not self.it.get().is_described(job):
            raise ValueError(f"job {job} has not been described")
        return 0

    def describe(self, uint32_t job, int32_t processors, double estimate, int32_t label=-1):
        """Describe a job, before its first use; job numbers should be dense."""
        if processors < 1 or not 0 < estimate < INFINITY:
            raise ValueError(f"job {job} needs processors and an estimate, "
                             f"got {processors}, {estimate}")
        self.it.get().describe(job, processors, estimate, label)

    def submit(self, uint32_t job):
        """Accept a new job from a user of this node (Algorithm 1)."""
        self.require_described(job)
        self.it.get().submit(job)
        return self.take_actions()

    def contact(self, ticket, neighbours):
        """Contact the neighbours that a discovery has found."""
        cdef vector[uint32_t] nodes = neighbours
        self.it.get().contact(handle_from_ticket(ticket), nodes)
        return self.take_actions()

    def receive(self, message, double now):
        """Process a message (Algorithms 2 and 5, RECEIPT, REVOKE)."""
        cdef CMessage incoming
        incoming.kind = <MessageKind><int>KINDS.index(message.kind)
        incoming.from_, incoming.to, incoming.job = message.sender, message.receiver, message.job
        incoming.hop, incoming.place = message.hop, message.place
        incoming.contacted = message.contacted
        incoming.negotiation = handle_from_ticket(message.negotiation)
        incoming.promise = handle_from_ticket(message.promise)
        incoming.times[0], incoming.times[1], incoming.times[2] = message.times
        self.require_described(message.job)
        self.it.get().receive(incoming, now)
        return self.take_actions()

    def decide(self, ticket):
        """Choose among the offers (Algorithm 3)."""
        self.it.get().decide(handle_from_ticket(ticket))
        return self.take_actions()

    def reschedule(self, double now):
        """Offer the jobs that have waited longest to other nodes (Algorithm 4)."""
        self.it.get().reschedule(now)
        return self.take_actions()

    def resend(self, ticket):
        """Resend an ASSIGN that was not answered."""
        self.it.get().resend(handle_from_ticket(ticket))
        return self.take_actions()

    def retry(self, ticket):
        """Retry a suspended job in a new round."""
        self.it.get().retry(handle_from_ticket(ticket))
        return self.take_actions()

    def leave(self):
        """Leave: accept no jobs, and offer the waiting jobs to other nodes."""
        self.it.get().leave()
        return self.take_actions()

    def join(self):
        """Return: accept jobs again."""
        self.it.get().join()
        return self.take_actions()

    def record_hop(self, uint32_t job, uint32_t hop):
        """Restore, after a restart, the last hop of a job that was ever here."""
        self.it.get().agent().record_hop(job, hop)

    def hold(self, uint32_t job, uint32_t hop, double entered):
        """Restore a job that waited here before a restart."""
        cdef QueuedJob waiting
        waiting.job, waiting.hop, waiting.entered = job, hop, entered
        self.require_described(job)
        self.it.get().hold(waiting)
        return self.take_actions()

    def hand_over(self, uint32_t job, uint32_t hop, uint32_t to):
        """Restore a hand-over to another node that a restart interrupted."""
        self.require_described(job)
        self.it.get().hand_over(job, hop, to)
        return self.take_actions()

    def start(self, uint32_t job):
        """Start a waiting job; return False if it does not wait here."""
        return bool(self.it.get().start(job))

    def ended(self, double waited):
        """Record the queueing time, in seconds, of a job that has ended."""
        self.it.get().agent().queue().record_wait(waited)

    def expire(self, double now):
        """Release the promises whose life has ended."""
        self.it.get().agent().expire(now)

    @property
    def waiting(self):
        """Jobs, hops and times of arrival, in the order of the queue."""
        cdef LocalQueue* queue = &self.it.get().agent().queue()
        cdef size_t i
        return [(queue[0][i].job, queue[0][i].hop, queue[0][i].entered)
                for i in range(queue.size())]

    @property
    def queue_load(self):
        """The sum of processors * estimate over the waiting jobs."""
        return self.it.get().agent().queue().load()

    @property
    def shadow_load(self):
        """The load of the promises, weighted by their probability (Definition 2)."""
        return self.it.get().agent().shadow_load()

    @property
    def promises(self):
        """The number of open promises."""
        return self.it.get().agent().promises()

    @property
    def negotiations(self):
        """The number of open negotiations."""
        return self.it.get().agent().negotiations()

    @property
    def present(self):
        """True if the node accepts jobs."""
        return self.it.get().agent().present()
