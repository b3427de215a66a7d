// The agent of one node in a community of schedulers: the five algorithms of CASA as a state
// machine over messages and timers, without a clock or a network of its own.
//
// A driver passes in messages and timer events with the current time, and carries out the actions
// that the agent requests through a `Port`: send a message, discover neighbours, set a timer,
// notify the local scheduler of arriving and departing jobs.
//
//   submit, contact   h_request (Algorithm 1)      decide      h_assign (Algorithm 3)
//   REQUEST           h_accept (Algorithm 2)       reschedule  h_resched (Algorithm 4)
//   INFORM            h'_accept (Algorithm 5)
// (Huang, Bessis, Norrington, Kuonen and Hirsbrunner, FGCS 2011, section 4.) RECEIPT, nodes that
// leave, and lost messages, which the paper mentions but leaves open, are defined here.
//
// Invariant: no job is lost or run twice, even if messages are lost, duplicated, reordered or late.
// A job has one holder at a time. A holder that hands a job over first removes it from its queue
// and then resends ASSIGN to the same node until the RECEIPT arrives, so the job is not lost as
// long as a message that is resent often enough arrives. Each ASSIGN carries the number of
// hand-overs (hop). A node accepts a job only with a greater hop than it has ever accepted it with,
// and answers every other copy by the RECEIPT alone. Handles of negotiations and promises are never
// reused, so messages of an earlier round have no effect. A failed node must return with what it
// held (docs/communities.md).
//
// Cost: O(1) for a message, O(offers) for a decision, O(queue) for a rescheduling. Memory: open
// negotiations and promises, and the last hop of each job that was ever here.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "slotkern/community/handle_table.hpp"
#include "slotkern/community/messages.hpp"
#include "slotkern/community/negotiation.hpp"
#include "slotkern/community/queue.hpp"
#include "slotkern/community/random.hpp"
#include "slotkern/community/shadow_queue.hpp"

namespace slotkern::community {

// Parameters of the protocol, equal for all nodes.
struct Rules {
  double omega = 1;   // weight of the shadow queue in h_assign (Definition 3)
  double varpi = 1;   // weight of the own mean queueing time in h'_accept
  double mu = 1;      // minimum relative queueing delay of a job to be moved (Definition 5)
  bool whole_node = true;               // t_job = load / (speed * processors), as in the paper;
                                        // false: estimate / speed
  std::uint32_t most_informed = kNone;  // max. number of jobs offered by one reschedule(); kNone:
                                        // no limit in practice
  double promise_life = kNever;         // s after which a promise that was not revoked expires
  // Administrative preferences: returns true if a node is willing to run a job it can run; or null.
  bool (*willing)(void* data, double now, NodeId node, JobId job) = nullptr;
  void* data = nullptr;
};

// The actions that an agent requests from its driver.
template <class P>
concept Port = requires(P port, const Message& message, Handle handle, const QueuedJob& waiting) {
  port.send(message);          // delivery is not reliable: lost, duplicated, reordered
  port.discover(handle);       // then call contact(handle, neighbours)
  port.decide_later(handle);   // call decide(handle) when answers can have arrived
  port.resend_later(handle);   // call resend(handle) after a while; no effect once answered
  port.came(waiting);          // the job was appended to the queue
  port.left(waiting);          // the job was removed from the queue, to be handed over
  port.given(waiting.job, message.hop);  // the receiver has confirmed the job, with this hop
  port.suspended(waiting.job, handle);  // no node offers to run the job
  port.resumed(waiting.job);            // a suspended job is retried, or was offered a node late
};

// The protocol state of one node.
class Agent {
 public:
  // `first_generation`: greater than every generation that this node used before a restart.
  Agent(NodeId id, const NodeSpec& profile, const CommunityJobs& jobs, const Rules& rules,
        std::uint64_t seed, std::uint32_t first_generation = 0)
      : id_(id), profile_(profile), jobs_(&jobs), rules_(&rules), random_(seed, id),
        negotiations_(first_generation), shadow_queue_(first_generation) {}

  LocalQueue& queue() { return queue_; }
  const LocalQueue& queue() const { return queue_; }
  const NodeSpec& profile() const { return profile_; }
  bool present() const { return present_; }
  double shadow_load() const { return shadow_queue_.load(); }
  std::size_t promises() const { return shadow_queue_.size(); }
  std::size_t negotiations() const { return negotiations_.size(); }

  // h_request: accepts a new job from a user of this node.
  template <Port P>
  void submit(JobId job, P& port) {
    begin({job, 0, 0}, false, {0, 0}, port);
  }

  // h_request and h_resched: contacts the neighbours; for a new job also this node itself.
  template <Port P>
  void contact(Handle handle, std::span<const NodeId> neighbours, P& port) {
    Negotiation* found = negotiations_.find(handle);
    if (!found || found->phase != Phase::discovering) return;
    Negotiation& negotiation = *found;
    const bool own = !negotiation.moves;
    negotiation.phase = Phase::collecting;
    negotiation.answered.assign(neighbours.size() + own, 0);
    Message message{own ? MessageKind::request : MessageKind::inform, id_, id_, negotiation.job};
    message.contacted = static_cast<std::uint32_t>(neighbours.size());
    message.negotiation = handle;
    message.times[0] = negotiation.response;
    message.times[1] = negotiation.mean_wait;
    if (own) {
      port.send(message);
      ++message.place;
    }
    for (const NodeId node : neighbours) {
      message.to = node;
      port.send(message);
      ++message.place;
    }
    port.decide_later(handle);
  }

  // Processes a message; promises that have expired by `now` are released first.
  template <Port P>
  void receive(const Message& message, double now, P& port) {
    expire(now);
    switch (message.kind) {
      case MessageKind::request:
        if (can_offer(message.job, now))
          offer(message, MessageKind::accept_request, estimate_times(message), now, port);
        break;
      case MessageKind::inform:
        on_inform(message, now, port);
        break;
      case MessageKind::accept_request:
      case MessageKind::accept_inform:
        on_accept(message, port);
        break;
      case MessageKind::assign_request:
      case MessageKind::assign_inform:
        on_assign(message, now, port);
        break;
      case MessageKind::receipt:
        on_receipt(message, port);
        break;
      case MessageKind::revoke:
        shadow_queue_.release(message.promise);
        break;
    }
  }

  // h_assign: chooses among the offers. Without one the job is suspended, or keeps waiting here.
  template <Port P>
  void decide(Handle handle, P& port) {
    Negotiation* found = negotiations_.find(handle);
    if (found && found->phase == Phase::collecting) close_round(handle, *found, port);
  }

  // h_resched: offers the jobs that have waited longest to other nodes, in descending order of
  // relative queueing delay, which is the order of the queue.
  template <Port P>
  void reschedule(double now, P& port) {
    if (!present_) return;
    const double mean = queue_.mean_wait(now);
    double before = 0;
    std::uint32_t informed = 0;
    for (std::size_t i = 0; i < queue_.size() && informed < rules_->most_informed; ++i) {
      const QueuedJob waiting = queue_[i];
      const double delay = mean > 0 ? (now - waiting.entered) / mean : 0;
      if (waiting.negotiation == kNone && delay >= rules_->mu) {
        const double response = before / profile_.power() + job_time(waiting.job);
        queue_[i].negotiation = begin(waiting, true, {response, mean}, port).index;
        ++informed;
      }
      before += jobs_->load(waiting.job);
    }
  }

  // Resends an ASSIGN that is not answered.
  template <Port P>
  void resend(Handle handle, P& port) {
    const Negotiation* found = negotiations_.find(handle);
    if (found && found->phase == Phase::handing_over) assign(handle, *found, port);
  }

  // Retries a suspended job in a new round.
  template <Port P>
  void retry(Handle handle, P& port) {
    const Negotiation* found = negotiations_.find(handle);
    if (!found || found->phase != Phase::suspended) return;
    const QueuedJob waiting{found->job, found->hop, 0};
    const bool moves = found->moves;
    negotiations_.release(handle);
    port.resumed(waiting.job);
    if (!moves)
      begin(waiting, false, {0, 0}, port);
    else if (const std::size_t i = queue_.find(waiting.job); i < queue_.size())
      evict(i, port);
  }

  // The node leaves: it accepts no jobs and offers its waiting jobs to other nodes, with an
  // infinite response time, so that every estimate is an improvement.
  template <Port P>
  void leave(P& port) {
    present_ = false;
    for (std::size_t i = 0; i < queue_.size(); ++i)
      if (queue_[i].negotiation == kNone) evict(i, port);
  }

  // The node returns: it ends the suspended negotiations of its waiting jobs.
  template <Port P>
  void join(P& port) {
    present_ = true;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      QueuedJob& waiting = queue_[i];
      if (waiting.negotiation == kNone) continue;
      const Handle handle = negotiations_.handle(waiting.negotiation);
      if (negotiations_[handle].phase != Phase::suspended) continue;
      waiting.negotiation = kNone;
      negotiations_.release(handle);
      port.resumed(waiting.job);
    }
  }

  // After a restart, hold() restores a waiting job, hand_over() resumes the transfer of a job to
  // `to`, and record_hop() must be called for every job that was ever here, with its last hop.
  template <Port P>
  void hold(const QueuedJob& waiting, P& port) {
    queue_.push(waiting, jobs_->load(waiting.job));
    record_hop(waiting.job, waiting.hop);
    port.came(waiting);
  }

  template <Port P>
  void hand_over(JobId job, std::uint32_t hop, NodeId to, P& port) {
    const Handle handle = negotiations_.allocate();
    Negotiation& negotiation = negotiations_[handle];
    negotiation.job = job;
    negotiation.hop = hop;
    negotiation.phase = Phase::handing_over;
    negotiation.moves = false;
    negotiation.to = to;
    negotiation.promise = {};
    assign(handle, negotiation, port);
  }

  void record_hop(JobId job, std::uint32_t hop) {
    std::uint32_t& last = hops_[job];
    last = std::max(last, hop);
  }

  // Releases the promises whose life has ended.
  void expire(double now) { shadow_queue_.expire(now); }

 private:
  using Phase = Negotiation::Phase;

  // Execution times at this node, in s: of the job, the queue and the shadow queue.
  struct Times {
    double job, queue, shadow;
  };

  double job_time(JobId job) const {
    return rules_->whole_node ? jobs_->load(job) / profile_.power()
                              : jobs_->estimate[job] / profile_.speed;
  }

  Times estimate_times(const Message& message) const {
    return {job_time(message.job), queue_.load() / profile_.power(),
            shadow_queue_.load() / profile_.power()};
  }

  bool can_offer(JobId job, double now) const {
    return present_ && profile_.can_run(*jobs_, job) &&
           (!rules_->willing || rules_->willing(rules_->data, now, id_, job));
  }

  // Starts a round. `moves`: the job waits here already. `here`: its response time and the mean
  // queueing time at this node, in s.
  template <Port P>
  Handle begin(const QueuedJob& waiting, bool moves, std::pair<double, double> here, P& port) {
    const Handle handle = negotiations_.allocate();
    negotiations_[handle].begin(waiting, moves, here.first, here.second);
    port.discover(handle);
    return handle;
  }

  // Offers the i-th waiting job to other nodes with infinite times, so that any offer is better.
  template <Port P>
  void evict(std::size_t i, P& port) {
    const Handle handle = begin(queue_[i], true, {kNever, kNever}, port);
    queue_[i].negotiation = handle.index;
  }

  // Makes an offer. Its load counts 1/x, since one of x promises is kept on average (Definition 2).
  template <Port P>
  void offer(const Message& request, MessageKind kind, const Times& times, double now, P& port) {
    const double load = jobs_->load(request.job) / std::max<std::uint32_t>(1, request.contacted);
    const Handle promise = shadow_queue_.add(load, now + rules_->promise_life);
    Message message{kind, id_, request.from, request.job};
    message.place = request.place;
    message.negotiation = request.negotiation;
    message.promise = promise;
    message.times[0] = times.job;
    message.times[1] = times.queue;
    message.times[2] = times.shadow;
    port.send(message);
  }

  // h'_accept: offers to run a job that waits at the sender, if its response time would be lower
  // here (with the shadow queue), and the mean queueing time here, times varpi, is lower than
  // there.
  template <Port P>
  void on_inform(const Message& message, double now, P& port) {
    if (!can_offer(message.job, now)) return;
    const Times own = estimate_times(message);
    const bool sooner = own.job + own.queue + own.shadow < message.times[0];
    if (sooner && queue_.mean_wait(now) * rules_->varpi < message.times[1])
      offer(message, MessageKind::accept_inform, own, now, port);
  }

  // Records an offer, or revokes it if the round is over. An offer ends a suspension at once.
  template <Port P>
  void on_accept(const Message& message, P& port) {
    Negotiation* found = negotiations_.find(message.negotiation);
    const bool open = found && message.place < found->answered.size() &&
                      (found->phase == Phase::collecting || found->phase == Phase::suspended);
    if (!open) return revoke(message.from, message.job, message.promise, port);
    Negotiation& negotiation = *found;
    if (negotiation.answered[message.place]) {
      for (const JobOffer& offer : negotiation.offers)
        if (offer.node == message.from && offer.promise == message.promise) return;
      return revoke(message.from, message.job, message.promise, port);
    }
    negotiation.answered[message.place] = 1;
    negotiation.offers.push_back(
        {message.from, message.promise,
         message.times[0] + message.times[1] + rules_->omega * message.times[2]});
    if (negotiation.phase != Phase::suspended) return;
    port.resumed(negotiation.job);
    close_round(message.negotiation, negotiation, port);
  }

  // Draws the receiver, revokes all other offers, and hands the job over.
  template <Port P>
  void close_round(Handle handle, Negotiation& negotiation, P& port) {
    std::size_t i = 0;
    if (negotiation.moves) {
      i = queue_.find(negotiation.job);
      if (i == queue_.size() || queue_[i].negotiation != handle.index) {  // the job has started
        for (const JobOffer& offer : negotiation.offers)
          revoke(offer.node, negotiation.job, offer.promise, port);
        negotiations_.release(handle);
        return;
      }
    }
    if (negotiation.offers.empty()) {
      if (negotiation.moves && present_) {
        queue_[i].negotiation = kNone;
        negotiations_.release(handle);
      } else {
        negotiation.phase = Phase::suspended;
        port.suspended(negotiation.job, handle);
      }
      return;
    }
    const std::size_t chosen = draw_offer(negotiation.offers, random_);
    for (std::size_t k = 0; k < negotiation.offers.size(); ++k)
      if (k != chosen)
        revoke(negotiation.offers[k].node, negotiation.job, negotiation.offers[k].promise, port);
    if (negotiation.moves) port.left(queue_.remove(i, jobs_->load(negotiation.job)));
    negotiation.phase = Phase::handing_over;
    negotiation.to = negotiation.offers[chosen].node;
    negotiation.promise = negotiation.offers[chosen].promise;
    ++negotiation.hop;
    assign(handle, negotiation, port);
  }

  // Sends ASSIGN. It also redeems the promise, so the chosen node needs no REVOKE.
  template <Port P>
  void assign(Handle handle, const Negotiation& negotiation, P& port) {
    Message message{
        negotiation.moves ? MessageKind::assign_inform : MessageKind::assign_request, id_,
        negotiation.to, negotiation.job};
    message.hop = negotiation.hop;
    message.negotiation = handle;
    message.promise = negotiation.promise;
    port.send(message);
    port.resend_later(handle);
  }

  template <Port P>
  void revoke(NodeId to, JobId job, Handle promise, P& port) {
    Message message{MessageKind::revoke, id_, to, job};
    message.promise = promise;
    port.send(message);
  }

  // Accepts the job if the hop is new, and confirms it in any case.
  template <Port P>
  void on_assign(const Message& message, double now, P& port) {
    shadow_queue_.release(message.promise);
    const auto [last, first] = hops_.try_emplace(message.job, message.hop);
    if (first || last->second < message.hop) {
      last->second = message.hop;
      const QueuedJob waiting{message.job, message.hop, now};
      queue_.push(waiting, jobs_->load(message.job));
      port.came(waiting);
      if (!present_) evict(queue_.size() - 1, port);
    }
    Message receipt{MessageKind::receipt, id_, message.from, message.job};
    receipt.negotiation = message.negotiation;
    port.send(receipt);
  }

  template <Port P>
  void on_receipt(const Message& message, P& port) {
    const Negotiation* found = negotiations_.find(message.negotiation);
    if (!found || found->phase != Phase::handing_over) return;
    negotiations_.release(message.negotiation);
    port.given(found->job, found->hop);
  }

  NodeId id_;
  NodeSpec profile_;
  const CommunityJobs* jobs_;
  const Rules* rules_;
  Random random_;
  LocalQueue queue_;
  bool present_ = true;
  HandleTable<Negotiation> negotiations_;
  ShadowQueue shadow_queue_;
  std::unordered_map<JobId, std::uint32_t> hops_;
};

}  // namespace slotkern::community
