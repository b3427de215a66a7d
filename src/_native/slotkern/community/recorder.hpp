// An agent for drivers that are not templates: it records the actions of the protocol in order.
//
// It also stores the jobs: each one must be described before it is first used.
#pragma once

#include "slotkern/base/status.hpp"
#include "slotkern/community/protocol.hpp"

namespace slotkern::community {

// The kinds of actions that an agent requests from its driver (concept Port).
enum class ActionKind : int {
  send, discover, decide, resend, came, left, given, suspended, resumed
};

// A requested action; its kind determines which fields are valid.
struct Action {
  ActionKind what;
  JobId job = 0;
  std::uint32_t hop = 0;
  double entered = 0;
  Handle handle{};
  Message message{};
};

// An agent with its jobs and the list of its requested actions.
class RecordedAgent {
 public:
  RecordedAgent(NodeId id, const NodeSpec& profile, const Rules& rules, std::uint64_t seed,
                std::uint32_t first_generation)
      : rules_(rules), agent_(id, profile, jobs_, rules_, seed, first_generation) {}
  RecordedAgent(const RecordedAgent&) = delete;
  RecordedAgent& operator=(const RecordedAgent&) = delete;

  // Stores a job; job numbers should be dense, since they index the columns.
  void describe(JobId job, std::int32_t width, double estimate, std::int32_t label) {
    if (job >= width_.size()) {
      width_.resize(job + 1), estimate_.resize(job + 1), label_.resize(job + 1);
      jobs_.width = width_.data(), jobs_.estimate = estimate_.data();
      jobs_.label = label_.data(), jobs_.size = width_.size();
    }
    width_[job] = width, estimate_[job] = estimate, label_[job] = label;
  }

  bool is_described(JobId job) const { return job < width_.size() && width_[job] > 0; }
  Agent& agent() { return agent_; }
  const std::vector<Action>& actions() const { return actions_; }
  void clear() { actions_.clear(); }

  void submit(JobId job) { RecordingPort port{*this}; agent_.submit(job, port); }
  void contact(Handle handle, const std::vector<NodeId>& nodes) {
    RecordingPort port{*this};
    agent_.contact(handle, nodes, port);
  }
  void receive(const Message& message, double now) {
    RecordingPort port{*this};
    agent_.receive(message, now, port);
  }
  void decide(Handle handle) { RecordingPort port{*this}; agent_.decide(handle, port); }
  void reschedule(double now) { RecordingPort port{*this}; agent_.reschedule(now, port); }
  void resend(Handle handle) { RecordingPort port{*this}; agent_.resend(handle, port); }
  void retry(Handle handle) { RecordingPort port{*this}; agent_.retry(handle, port); }
  void leave() { RecordingPort port{*this}; agent_.leave(port); }
  void join() { RecordingPort port{*this}; agent_.join(port); }
  void hold(const QueuedJob& waiting) { RecordingPort port{*this}; agent_.hold(waiting, port); }
  void hand_over(JobId job, std::uint32_t hop, NodeId to) {
    RecordingPort port{*this};
    agent_.hand_over(job, hop, to, port);
  }

  // Removes a job that starts from the queue; returns false if it does not wait here.
  bool start(JobId job) {
    const std::size_t i = agent_.queue().find(job);
    if (i == agent_.queue().size()) return false;
    agent_.queue().remove(i, jobs_.load(job));
    return true;
  }

 private:
  struct RecordingPort {
    RecordedAgent& self;
    void put(Action action) { self.actions_.push_back(action); }
    void send(const Message& message) { put({.what = ActionKind::send, .message = message}); }
    void discover(Handle handle) { put({.what = ActionKind::discover, .handle = handle}); }
    void decide_later(Handle handle) { put({.what = ActionKind::decide, .handle = handle}); }
    void resend_later(Handle handle) { put({.what = ActionKind::resend, .handle = handle}); }
    void came(const QueuedJob& w) { put({ActionKind::came, w.job, w.hop, w.entered}); }
    void left(const QueuedJob& w) { put({ActionKind::left, w.job, w.hop, w.entered}); }
    void given(JobId job, std::uint32_t hop) { put({ActionKind::given, job, hop}); }
    void suspended(JobId job, Handle handle) {
      put({.what = ActionKind::suspended, .job = job, .handle = handle});
    }
    void resumed(JobId job) { put({.what = ActionKind::resumed, .job = job}); }
  };

  std::vector<std::int32_t> width_, label_;
  std::vector<double> estimate_;
  CommunityJobs jobs_;
  Rules rules_;
  Agent agent_;
  std::vector<Action> actions_;
};

}  // namespace slotkern::community
