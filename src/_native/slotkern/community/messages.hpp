// What nodes of a community say to each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slotkern/community/queue.hpp"
#include "slotkern/community/handle_table.hpp"

namespace slotkern::community {

// Table 1, and REVOKE of Algorithm 3.
enum class MessageKind : std::uint8_t {
  request, accept_request, assign_request, inform, accept_inform, assign_inform, receipt, revoke
};
inline constexpr std::size_t kKinds = 8;

struct Message {
  MessageKind kind;
  NodeId from, to;
  JobId job;
  std::uint32_t hop = 0;        // of ASSIGN
  std::uint32_t place = 0;      // of the receiver among the contacted; its answer brings it back
  std::uint32_t contacted = 0;  // x of REQUEST and INFORM
  Handle negotiation{};         // of the requester; answers bring it back
  Handle promise{};             // of the responder
  // ACCEPT: the times of the job, the queue and the shadow queue.
  // INFORM: the estimated response and the mean queueing time at the requester.
  double times[3] = {0, 0, 0};
};

}  // namespace slotkern::community
