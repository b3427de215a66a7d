// Simulates a community of schedulers event by event: agents (protocol.hpp) over a network, each
// next to the local scheduler of its node.
//
// A node processes REQUEST, INFORM and ACCEPT at its ticks, one tick in each cycle (immediately if
// the cycle is 0), and ASSIGN, RECEIPT and REVOKE on arrival. The ticks and reschedulings of each
// node have a random phase. The events of one time are processed in this order: job ends, messages,
// discoveries, decisions, reschedulings, departures and arrivals of nodes, submissions; events of
// one kind in the order in which they were scheduled. Then each node whose queue or processors have
// changed runs one pass of its local scheduler. The result depends on the input and the seed alone.
//
// Why it terminates: reschedulings continue only while some job is neither done nor suspended, and
// a suspended job is retried a limited number of times. If messages can be lost, ASSIGN is resent
// until it is answered; otherwise a RECEIPT always arrives, and no such timer is needed.
// Cost: O(1) for each message, O(log(nodes + running jobs)) for each tick, decision and job end.
#pragma once

#include <array>

#include "slotkern/community/neighbours.hpp"
#include "slotkern/community/network.hpp"
#include "slotkern/community/protocol.hpp"
#include "slotkern/community/sites.hpp"

namespace slotkern::community {

// Parameters of the simulated network and of the timers of nodes; times in s.
struct Settings {
  double cycle = 0;         // s between the ticks of a node; 0: messages are processed at once
  double window = 1;        // s during which answers are collected
  double interval = 600;    // s between the reschedulings of a node; kNever: none
  double discovery = 0;     // duration of a discovery in s,
  double discovery_each = 0;  // plus s for each contacted node
  double latency = 0.1;     // s
  bool latency_varies = false;  // true: exponentially distributed with that mean
  double loss = 0;
  double resend = 10;       // s without a RECEIPT after which ASSIGN is resent
  double retry = 0;         // s after which a suspended job is retried; 0: never
  std::uint32_t retries = 0;
  std::uint64_t seed = 0;
};

// Counts of messages, losses and suspensions.
struct Tally {
  std::array<std::uint64_t, kKinds> sent{}, own{};  // messages by kind, to others and to oneself
  std::uint64_t lost = 0, suspensions = 0;
};

// The event loop of one simulation.
template <class Local>
class Community {
 public:
  Community(const CommunityJobs& jobs, const Grid& grid, const LocalPolicy& policy,
            const Neighbours& neighbours, const Rules& rules, const Settings& settings)
      : jobs_(jobs), rules_(rules), settings_(settings), changes_(grid.changes),
        sites_(jobs, grid, policy),
        network_(settings.latency, settings.latency_varies, settings.loss, settings.seed),
        discovery_(neighbours, grid.present, settings.seed), active_jobs_(jobs.size),
        tries_(settings.retries > 0 ? jobs.size : 0) {
    const auto size = static_cast<NodeId>(grid.nodes.size());
    agents_.reserve(size);
    inboxes_.resize(size);
    for (NodeId node = 0; node < size; ++node) {
      Random random(settings.seed, 0x100000000u + node);
      agents_.emplace_back(node, grid.nodes[node], jobs_, rules_, settings.seed);
      inboxes_[node].phase = round_to_tick_grid(random.uniform() * settings.cycle);
      const double first = round_to_tick_grid(random.uniform() * settings.interval);
      if (settings.interval < kNever) schedule(first, EventClass::rescheduling, node);
      NodePort port{*this, node};
      if (!grid.present[node]) agents_[node].leave(port);
    }
  }
  Community(const Community&) = delete;
  Community& operator=(const Community&) = delete;

  // Processes all events. A signal interrupts it between events; a further call continues.
  void run() {
    while (step()) pacer_.count_event();
    if (rules_.promise_life < kNever)  // every remaining promise expires
      for (Agent& agent : agents_) agent.expire(kNever);
    for (std::size_t job = 0; job < jobs_.size; ++job) {
      Fate& fate = sites_.outcome().fate[job];
      if (fate != Fate::pending) continue;
      fate = std::isnan(sites_.outcome().queued[job]) ? Fate::no_offer : Fate::stranded;
    }
  }

  const Outcome& outcome() const { return sites_.outcome(); }
  const Tally& tally() const { return tally_; }
  std::size_t submitted() const { return next_job_; }
  std::size_t events() const { return pacer_.events(); }

  // Without message loss, shadow_load() and promises() are 0 after run().
  double shadow_load() const {
    double sum = 0;
    for (const Agent& agent : agents_) sum += agent.shadow_load();
    return sum;
  }
  std::size_t promises() const {
    std::size_t sum = 0;
    for (const Agent& agent : agents_) sum += agent.promises();
    return sum;
  }

 private:
  // The kinds of events, in the order in which events of one time are processed.
  enum class EventClass : std::uint8_t {
    end, message, discovery, decision, resending, retrial, rescheduling, change, submission
  };

  // A scheduled event of a node.
  struct Timer {
    double time;
    std::uint64_t order;  // kind of event in the high byte, then the order of scheduling
    NodeId node;
    Handle handle;
    EventClass kind() const { return static_cast<EventClass>(order >> 56); }
    friend bool operator<(const Timer& a, const Timer& b) {
      return a.time < b.time || (a.time == b.time && a.order < b.order);
    }
  };

  // The messages that a node has not processed yet, and its tick times.
  struct Inbox {
    double phase = 0, next_tick = kNever;
    std::vector<Delivery> messages;
  };

  // Carries out the actions of the agent of one node.
  struct NodePort {
    Community& self;
    NodeId node;

    void send(const Message& message) { self.send(message); }
    void discover(Handle handle) { self.discover(node, handle); }
    void decide_later(Handle handle) {
      self.schedule(self.tick(node, self.now_ + self.settings_.window), EventClass::decision, node,
                    handle);
    }
    void resend_later(Handle handle) {
      if (self.settings_.loss > 0)
        self.schedule(self.now_ + self.settings_.resend, EventClass::resending, node, handle);
    }
    void came(const QueuedJob& waiting) {
      self.sites_.on_arrival(node, waiting.job, self.now_);
      self.sites_.mark(node);
    }
    void left(const QueuedJob& waiting) {
      self.sites_.on_departure(node, waiting.job, self.now_);
      self.sites_.mark(node);
    }
    void given(JobId, std::uint32_t) {}
    void suspended(JobId job, Handle handle) {
      --self.active_jobs_;
      ++self.tally_.suspensions;
      if (self.settings_.retries > 0 && self.tries_[job]++ < self.settings_.retries)
        self.schedule(self.now_ + self.settings_.retry, EventClass::retrial, node, handle);
    }
    void resumed(JobId) { ++self.active_jobs_; }
  };

  // Processes one event, or the pending passes of local schedulers; returns false if none is left.
  bool step() {
    const double end = sites_.next_event();
    const Delivery* delivery = network_.next();
    const double change = next_change_ < changes_.size() ? changes_[next_change_].time : kNever;
    const double coming = next_job_ < jobs_.size ? jobs_.submit[next_job_] : kNever;
    const double arrival = delivery ? delivery->time : kNever;
    const double timer = timers_.time();
    const double next = std::min({end, arrival, timer, change, coming});
    const auto queue_of = [&](NodeId n) -> LocalQueue& { return agents_[n].queue(); };
    if (sites_.has_marked() && next > now_) {
      sites_.start_marked(queue_of, now_);
      return true;
    }
    if (next == kNever) return false;
    now_ = next;
    if (end == now_) {
      active_jobs_ -= sites_.end_jobs(queue_of);
    } else if (arrival == now_ &&
               !(timer == now_ &&
                 timers_.top().order < order(EventClass::message, delivery->serial))) {
      const Delivery copy = network_.pop();
      receive(copy.message);
    } else if (timer == now_ && timers_.top().kind() <= EventClass::rescheduling) {
      const Timer top = timers_.top();
      timers_.pop();
      fire(top);
    } else if (change == now_) {
      apply(changes_[next_change_++]);
    } else {
      const auto job = static_cast<JobId>(next_job_++);
      NodePort port{*this, static_cast<NodeId>(jobs_.home[job])};
      agents_[port.node].submit(job, port);
    }
    return true;
  }

  // Processes a timer.
  void fire(const Timer& timer) {
    Agent& agent = agents_[timer.node];
    NodePort port{*this, timer.node};
    switch (timer.kind()) {
      case EventClass::message:
        return tick(timer);
      case EventClass::discovery:
        agent.contact(timer.handle, discovery_.neighbours_of(timer.node), port);
        break;
      case EventClass::decision:
        agent.decide(timer.handle, port);
        break;
      case EventClass::resending:
        agent.resend(timer.handle, port);
        break;
      case EventClass::retrial:
        agent.retry(timer.handle, port);
        break;
      default:
        agent.reschedule(now_, port);
        if (active_jobs_ > 0)
          schedule(now_ + settings_.interval, EventClass::rescheduling, timer.node);
    }
  }

  void receive(const Message& message) {
    NodePort port{*this, message.to};
    agents_[message.to].receive(message, now_, port);
  }

  // Processes the messages in the inbox that have arrived, in the order of sending.
  void tick(const Timer& timer) {
    Inbox& inbox = inboxes_[timer.node];
    if (timer.time != inbox.next_tick) return;  // superseded by an earlier tick
    inbox.next_tick = kNever;
    handled_.swap(inbox.messages);
    for (const Delivery& delivery : handled_)
      if (delivery.time > now_) put_in_inbox(delivery);
    for (const Delivery& delivery : handled_)
      if (delivery.time <= now_) receive(delivery.message);
    handled_.clear();
  }

  // Adds a message to the receiver's inbox, and schedules its tick if none comes early enough.
  void put_in_inbox(const Delivery& delivery) {
    Inbox& inbox = inboxes_[delivery.message.to];
    inbox.messages.push_back(delivery);
    if (delivery.time >= inbox.next_tick) return;
    inbox.next_tick = delivery.time;
    schedule(delivery.time, EventClass::message, delivery.message.to);
  }

  // Counts a message and gives it to the network; messages processed at ticks go to an inbox.
  void send(const Message& message) {
    const auto kind = static_cast<std::size_t>(message.kind);
    ++(message.from == message.to ? tally_.own : tally_.sent)[kind];
    const double arrival = network_.arrival(message, now_);
    if (arrival == kNever) {
      ++tally_.lost;
      return;
    }
    const bool at_tick = settings_.cycle > 0 && (message.kind == MessageKind::request ||
                                                 message.kind == MessageKind::inform ||
                                                 message.kind == MessageKind::accept_request ||
                                                 message.kind == MessageKind::accept_inform);
    if (at_tick)
      put_in_inbox({tick(message.to, arrival), serial_++, message});
    else
      network_.push({arrival, serial_++, message});
  }

  void discover(NodeId node, Handle handle) {
    const double each = settings_.discovery_each;
    double takes = settings_.discovery;
    if (each > 0) takes += each * static_cast<double>(discovery_.neighbours_of(node).size());
    schedule(now_ + takes, EventClass::discovery, node, handle);
  }

  // Lets a node join or leave.
  void apply(const MembershipChange& change) {
    Agent& agent = agents_[change.node];
    if (agent.present() == change.joins) return;
    discovery_.set_present(change.node, change.joins);
    sites_.set_serving(change.node, change.joins, agent.queue(), now_);
    NodePort port{*this, change.node};
    if (change.joins) {
      agent.join(port);
      sites_.mark(change.node);
    } else {
      agent.leave(port);
    }
  }

  // Returns the first tick of the node that is not before `time`.
  double tick(NodeId node, double time) const {
    if (!(settings_.cycle > 0)) return time;
    // All ticks are computed as phase + k * cycle, so that equal ticks are equal bit by bit.
    const double phase = inboxes_[node].phase, cycle = settings_.cycle;
    double k = std::ceil((time - phase) / cycle);
    if (phase + (k - 1) * cycle >= time) --k;
    if (phase + k * cycle < time) ++k;
    return phase + k * cycle;
  }

  // Rounds a phase down to a multiple of 2^-20 s, so that sums of such times are exact.
  static double round_to_tick_grid(double seconds) {
    return std::floor(seconds * 0x1p20) * 0x1p-20;
  }

  static std::uint64_t order(EventClass kind, std::uint64_t serial) {
    return (static_cast<std::uint64_t>(kind) << 56) | serial;
  }

  void schedule(double time, EventClass kind, NodeId node, Handle handle = {}) {
    timers_.push({time, order(kind, serial_++), node, handle});
  }

  CommunityJobs jobs_;
  Rules rules_;
  Settings settings_;
  std::vector<MembershipChange> changes_;
  Sites<Local> sites_;
  Network network_;
  Discovery discovery_;
  std::vector<Agent> agents_;
  std::vector<Inbox> inboxes_;
  std::vector<Delivery> handled_;
  replay::EventHeap<Timer> timers_;
  std::uint64_t serial_ = 0;
  double now_ = 0;
  std::size_t next_job_ = 0, next_change_ = 0;
  std::size_t active_jobs_;  // jobs that are neither done nor suspended
  std::vector<std::uint32_t> tries_;
  Tally tally_;
  InterruptPacer pacer_;
};

}  // namespace slotkern::community
