// A community of schedulers, event by event: agents (protocol.hpp) over a network, each beside
// the local scheduler of its node.
//
// A node handles REQUEST, INFORM and ACCEPT at its ticks, one a cycle (at once where the cycle
// is 0); ASSIGN, RECEIPT and REVOKE when they arrive. Ticks and reschedulings have a random
// phase for each node. At one time: ends, messages, discoveries, decisions, reschedulings,
// nodes that leave or join, submissions; of one kind in the order in which they were asked for;
// then each node where a job has ended, come or left looks at its queue once.
// Nothing depends on anything but these numbers and the seed.
//
// Why it ends: reschedulings go on while there is a job that is neither done nor suspended, and
// a suspended job is tried again a limited number of times. With loss ASSIGN is sent again until
// it has been answered; without, a RECEIPT always comes and no such timer is needed.
// Cost: O(1) a message and O(log(nodes + running)) a tick, a decision and an end.
#pragma once

#include <array>

#include "slotkern/community/neighbours.hpp"
#include "slotkern/community/network.hpp"
#include "slotkern/community/protocol.hpp"
#include "slotkern/community/sites.hpp"

namespace slotkern::community {

struct Settings {
  double cycle = 0;         // between two ticks of a node; 0: everything at once
  double window = 1;        // for which answers are collected
  double interval = 600;    // between two reschedulings of a node; kNever: none
  double discovery = 0;     // seconds of a discovery,
  double discovery_each = 0;  // and more for each node contacted
  double latency = 0.1;
  bool latency_varies = false;  // exponential
  double loss = 0;
  double resend = 10;       // after so long without a RECEIPT
  double retry = 0;         // a suspended job is tried again after so long; 0: never
  std::uint32_t retries = 0;
  std::uint64_t seed = 0;
};

struct Tally {
  std::array<std::uint64_t, kKinds> sent{}, own{};  // to others, to oneself
  std::uint64_t lost = 0, suspensions = 0;
};

template <class Local>
class Community {
 public:
  Community(const Jobs& jobs, const Grid& grid, const LocalPolicy& policy,
            const Neighbours& neighbours, const Rules& rules, const Settings& settings)
      : jobs_(jobs), rules_(rules), settings_(settings), changes_(grid.changes),
        sites_(jobs, grid, policy),
        network_(settings.latency, settings.latency_varies, settings.loss, settings.seed),
        discovery_(neighbours, grid.present, settings.seed), live_(jobs.size),
        tries_(settings.retries > 0 ? jobs.size : 0) {
    const auto size = static_cast<NodeId>(grid.nodes.size());
    agents_.reserve(size);
    desks_.resize(size);
    for (NodeId node = 0; node < size; ++node) {
      Random random(settings.seed, 0x100000000u + node);
      agents_.emplace_back(node, grid.nodes[node], jobs_, rules_, settings.seed);
      desks_[node].phase = whole(random.uniform() * settings.cycle);
      const double first = whole(random.uniform() * settings.interval);
      if (settings.interval < kNever) at(first, Class::rescheduling, node);
      Port port{*this, node};
      if (!grid.present[node]) agents_[node].leave(port);
    }
  }
  Community(const Community&) = delete;
  Community& operator=(const Community&) = delete;

  // Goes on until everything has happened; may be interrupted between events.
  void run() {
    while (step()) pulse_.beat();
    if (rules_.promise_life < kNever)  // time passes
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
  std::size_t events() const { return pulse_.events(); }

  // What must be nothing when all has happened without loss.
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
  // The order of what happens at one time.
  enum class Class : std::uint8_t {
    end, message, discovery, decision, resending, retrial, rescheduling, change, submission
  };

  struct Timer {
    double time;
    std::uint64_t order;  // class, then the order in which they were asked for
    NodeId node;
    Ticket ticket;
    Class kind() const { return static_cast<Class>(order >> 56); }
    friend bool operator<(const Timer& a, const Timer& b) {
      return a.time < b.time || (a.time == b.time && a.order < b.order);
    }
  };

  // What lies on a node's desk until its next tick.
  struct Desk {
    double phase = 0, next_tick = kNever;
    std::vector<Flight> inbox;
  };

  // What an agent asks for, done.
  struct Port {
    Community& self;
    NodeId node;

    void send(const Message& message) { self.send(message); }
    void discover(Ticket ticket) { self.discover(node, ticket); }
    void decide_later(Ticket ticket) {
      self.at(self.tick(node, self.now_ + self.settings_.window), Class::decision, node, ticket);
    }
    void resend_later(Ticket ticket) {
      if (self.settings_.loss > 0)
        self.at(self.now_ + self.settings_.resend, Class::resending, node, ticket);
    }
    void came(const Waiting& waiting) {
      self.sites_.came(node, waiting.job, self.now_);
      self.sites_.mark(node);
    }
    void left(const Waiting& waiting) {
      self.sites_.left(node, waiting.job, self.now_);
      self.sites_.mark(node);
    }
    void given(JobId, std::uint32_t) {}
    void suspended(JobId job, Ticket ticket) {
      --self.live_;
      ++self.tally_.suspensions;
      if (self.settings_.retries > 0 && self.tries_[job]++ < self.settings_.retries)
        self.at(self.now_ + self.settings_.retry, Class::retrial, node, ticket);
    }
    void resumed(JobId) { ++self.live_; }
  };

  // Whether anything has happened.
  bool step() {
    const double end = sites_.next();
    const Flight* flight = network_.next();
    const double change = next_change_ < changes_.size() ? changes_[next_change_].time : kNever;
    const double coming = next_job_ < jobs_.size ? jobs_.submit[next_job_] : kNever;
    const double arrival = flight ? flight->time : kNever;
    const double timer = timers_.time();
    const double next = std::min({end, arrival, timer, change, coming});
    const auto queue_of = [&](NodeId n) -> LocalQueue& { return agents_[n].queue(); };
    if (sites_.has_marked() && next > now_) {
      sites_.look_all(queue_of, now_);
      return true;
    }
    if (next == kNever) return false;
    now_ = next;
    if (end == now_) {
      live_ -= sites_.end(queue_of);
    } else if (arrival == now_ && !(timer == now_ && timers_.top().order <
                                                         order(Class::message, flight->serial))) {
      const Flight copy = network_.pop();
      receive(copy.message);
    } else if (timer == now_ && timers_.top().kind() <= Class::rescheduling) {
      const Timer top = timers_.top();
      timers_.pop();
      fire(top);
    } else if (change == now_) {
      apply(changes_[next_change_++]);
    } else {
      const auto job = static_cast<JobId>(next_job_++);
      Port port{*this, static_cast<NodeId>(jobs_.home[job])};
      agents_[port.node].submit(job, port);
    }
    return true;
  }

  void fire(const Timer& timer) {
    Agent& agent = agents_[timer.node];
    Port port{*this, timer.node};
    switch (timer.kind()) {
      case Class::message:
        return tick(timer);
      case Class::discovery:
        agent.contact(timer.ticket, discovery_.of(timer.node), port);
        break;
      case Class::decision:
        agent.decide(timer.ticket, port);
        break;
      case Class::resending:
        agent.resend(timer.ticket, port);
        break;
      case Class::retrial:
        agent.retry(timer.ticket, port);
        break;
      default:
        agent.reschedule(now_, port);
        if (live_ > 0) at(now_ + settings_.interval, Class::rescheduling, timer.node);
    }
  }

  void receive(const Message& message) {
    Port port{*this, message.to};
    agents_[message.to].receive(message, now_, port);
  }

  // Everything on the desk that has arrived is handled, in the order in which it was sent.
  void tick(const Timer& timer) {
    Desk& desk = desks_[timer.node];
    if (timer.time != desk.next_tick) return;  // an earlier one was wanted since
    desk.next_tick = kNever;
    handled_.swap(desk.inbox);
    for (const Flight& flight : handled_)
      if (flight.time > now_) lay(flight);
    for (const Flight& flight : handled_)
      if (flight.time <= now_) receive(flight.message);
    handled_.clear();
  }

  void lay(const Flight& flight) {
    Desk& desk = desks_[flight.message.to];
    desk.inbox.push_back(flight);
    if (flight.time >= desk.next_tick) return;
    desk.next_tick = flight.time;
    at(flight.time, Class::message, flight.message.to);
  }

  void send(const Message& message) {
    const auto kind = static_cast<std::size_t>(message.kind);
    ++(message.from == message.to ? tally_.own : tally_.sent)[kind];
    const double arrival = network_.arrival(message, now_);
    if (arrival == kNever) {
      ++tally_.lost;
      return;
    }
    const bool at_tick = settings_.cycle > 0 && (message.kind == Kind::request ||
                                                 message.kind == Kind::inform ||
                                                 message.kind == Kind::accept_request ||
                                                 message.kind == Kind::accept_inform);
    if (at_tick)
      lay({tick(message.to, arrival), serial_++, message});
    else
      network_.push({arrival, serial_++, message});
  }

  void discover(NodeId node, Ticket ticket) {
    const double each = settings_.discovery_each;
    double takes = settings_.discovery;
    if (each > 0) takes += each * static_cast<double>(discovery_.of(node).size());
    at(now_ + takes, Class::discovery, node, ticket);
  }

  void apply(const Change& change) {
    Agent& agent = agents_[change.node];
    if (agent.present() == change.joins) return;
    discovery_.change(change.node, change.joins);
    sites_.serve(change.node, change.joins, agent.queue(), now_);
    Port port{*this, change.node};
    if (change.joins) {
      agent.join(port);
      sites_.mark(change.node);
    } else {
      agent.leave(port);
    }
  }

  // The first tick of a node that is not before `time`.
  double tick(NodeId node, double time) const {
    if (!(settings_.cycle > 0)) return time;
    // Every tick is phase + k * cycle in these words: two of them are equal to the last bit.
    const double phase = desks_[node].phase, cycle = settings_.cycle;
    double k = std::ceil((time - phase) / cycle);
    if (phase + (k - 1) * cycle >= time) --k;
    if (phase + k * cycle < time) ++k;
    return phase + k * cycle;
  }

  // Phases are multiples of 2^-20 s: sums of such times do not round.
  static double whole(double seconds) { return std::floor(seconds * 0x1p20) * 0x1p-20; }

  static std::uint64_t order(Class kind, std::uint64_t serial) {
    return (static_cast<std::uint64_t>(kind) << 56) | serial;
  }

  void at(double time, Class kind, NodeId node, Ticket ticket = {}) {
    timers_.push({time, order(kind, serial_++), node, ticket});
  }

  Jobs jobs_;
  Rules rules_;
  Settings settings_;
  std::vector<Change> changes_;
  Sites<Local> sites_;
  Network network_;
  Discovery discovery_;
  std::vector<Agent> agents_;
  std::vector<Desk> desks_;
  std::vector<Flight> handled_;
  replay::EventHeap<Timer> timers_;
  std::uint64_t serial_ = 0;
  double now_ = 0;
  std::size_t next_job_ = 0, next_change_ = 0;
  std::size_t live_;  // jobs that are neither done nor suspended
  std::vector<std::uint32_t> tries_;
  Tally tally_;
  Pulse pulse_;
};

}  // namespace slotkern::community
