// A job that looks for a node: who was asked, what was offered, and who is chosen.
//
// O(offers) a choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/community/queue.hpp"
#include "slotkern/community/random.hpp"
#include "slotkern/community/handle_table.hpp"

namespace slotkern::community {

struct JobOffer {
  NodeId node;
  Handle promise;
  double response;  // Definition 3: the times of the job, the queue and the shadow queue
};

struct Negotiation {
  enum class Phase : std::uint8_t { discovering, collecting, suspended, handing_over };

  JobId job;
  std::uint32_t hop;
  Phase phase;
  bool moves;  // a waiting job, not a new one
  NodeId to;   // while it is handed over
  Handle promise;
  double response, mean_wait;
  std::vector<JobOffer> offers;
  std::vector<std::uint8_t> answered;  // by place

  // Over what an earlier one has left, whose memory it keeps.
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

// Definition 3: by lot, with probabilities inverse to the responses offered.
inline std::size_t draw_offer(const std::vector<JobOffer>& offers, Random& random) {
  double sum = 0;
  for (const JobOffer& offer : offers) sum += 1 / offer.response;
  double left = random.uniform() * sum;
  for (std::size_t k = 0; k + 1 < offers.size(); ++k)
    if ((left -= 1 / offers[k].response) < 0) return k;
  return offers.size() - 1;
}

}  // namespace slotkern::community
