// One round of finding a node for a job: the contacted nodes, their offers, and the chosen one.
//
// Cost: O(offers) for the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/community/handle_table.hpp"
#include "slotkern/community/queue.hpp"
#include "slotkern/community/random.hpp"

namespace slotkern::community {

// A node's offer to run the job.
struct JobOffer {
  NodeId node;
  Handle promise;
  double response;  // Definition 3: times of the job, the queue and the shadow queue, in s
};

// The state of a round, kept at the node that holds the job.
struct Negotiation {
  enum class Phase : std::uint8_t { discovering, collecting, suspended, handing_over };

  JobId job;
  std::uint32_t hop;
  Phase phase;
  bool moves;  // true: the job waits here already; false: it is new
  NodeId to;   // receiver; valid while handing over
  Handle promise;
  double response, mean_wait;
  std::vector<JobOffer> offers;
  std::vector<std::uint8_t> answered;  // nonzero for contacted nodes that have answered

  // Starts a round; reuses the memory of the previous one.
  void begin(const QueuedJob& waiting, bool waits_here, double own_response, double own_mean) {
    job = waiting.job;
    hop = waiting.hop;
    phase = Phase::discovering;
    moves = waits_here;
    response = own_response;
    mean_wait = own_mean;
    offers.clear();
  }
};

// Draws an offer with a probability inverse to its response time (Definition 3); returns its index.
inline std::size_t draw_offer(const std::vector<JobOffer>& offers, Random& random) {
  double sum = 0;
  for (const JobOffer& offer : offers) sum += 1 / offer.response;
  double left = random.uniform() * sum;
  for (std::size_t k = 0; k + 1 < offers.size(); ++k)
    if ((left -= 1 / offers[k].response) < 0) return k;
  return offers.size() - 1;
}

}  // namespace slotkern::community
