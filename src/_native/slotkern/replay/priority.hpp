// Queue orders that change with time: multifactor priority, and a user-defined function.
//
// Multifactor priority, modelled on the plugin of that name of the Slurm Workload Manager:
//   age * min(wait / longest_wait, 1) + size * width / processors + share * fair(user)
// with fair = 1 / (1 + users * usage / total usage): 1 for a user without usage, and 1/2 for one
// with an equal share of the usage, as with Slurm's 2^(-usage / share). Usage is in processor
// seconds and is halved at every multiple of `half_life` after the first submission. Only sums,
// products and exact halvings are used, so the order is the same on every machine.
// The greatest priority comes first: a key is the negated priority. Cost: O(1) for a job and pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/replay/waiting.hpp"

namespace slotkern::replay {

// The decayed usage of each user. An account is updated when a job of its user starts or ends;
// in between, usage is extrapolated from the last update.
class Usage {
 public:
  Usage(std::size_t users, double origin, double half_life)
      : origin_(origin), half_life_(half_life), accounts_(users + 1) {
    for (Account& account : accounts_) account.since = origin;
  }

  // Accounts for a job of this width that starts now; negative: that ends now.
  void update(std::int32_t user, double now, std::int32_t width) {
    for (Account* account : {&accounts_[static_cast<std::size_t>(user)], &accounts_.back()}) {
      account->used = usage_at(*account, now);
      account->since = now;
      account->running += width;
    }
  }

  double usage_of(std::int32_t user, double now) const {
    return usage_at(accounts_[static_cast<std::size_t>(user)], now);
  }
  double total(double now) const { return usage_at(accounts_.back(), now); }
  double users() const { return static_cast<double>(accounts_.size() - 1); }

 private:
  // The usage up to `since`, in processor seconds, and the processors in use from then on.
  struct Account {
    double used = 0, since = 0;
    std::int64_t running = 0;  // processors in use
  };

  // Returns the usage at `now`, decayed by one halving for each multiple of half_life passed.
  double usage_at(const Account& account, double now) const {
    const auto running = static_cast<double>(account.running);
    const double last = std::floor((now - origin_) / half_life_);
    double halvings = last - std::floor((account.since - origin_) / half_life_);
    if (!(halvings > 0)) return account.used + running * (now - account.since);
    const double next = origin_ + (last - halvings + 1) * half_life_;
    double used = (account.used + running * (next - account.since)) / 2;
    halvings = std::min(halvings - 1, 2000.0);
    const double kept = std::ldexp(1.0, -static_cast<int>(halvings));
    used = used * kept + running * half_life_ * (1 - kept);
    return used + running * (now - (origin_ + last * half_life_));
  }

  double origin_, half_life_;
  std::vector<Account> accounts_;  // one for each user, then the total
};

// Weights and data of multifactor priority; keys() is a KeyFunction.
struct Multifactor {
  double age, size, share, longest_wait;
  const std::int32_t* user;  // number of each job's user, from 0
  JobColumns jobs;
  double processors;
  Usage usage;

  static void keys(void* data, double now, const JobId* jobs, std::size_t count, double* keys) {
    const auto& self = *static_cast<const Multifactor*>(data);
    const double all = self.usage.total(now);
    for (std::size_t i = 0; i < count; ++i) {
      const JobId job = jobs[i];
      const double wait = std::min((now - self.jobs.submit[job]) / self.longest_wait, 1.0);
      const double used = all > 0 ? self.usage.usage_of(self.user[job], now) / all : 0;
      const double fair = 1 / (1 + self.usage.users() * used);
      keys[i] = -(self.age * wait + self.size * (self.jobs.width[job] / self.processors) +
                  self.share * fair);
    }
  }
};

// A user-defined function that sets the priority of a job. A nonzero result reports a failure.
using PriorityFunction = std::int32_t (*)(double now, double submit, double estimate,
                                          std::int64_t width, std::int64_t user,
                                          double* priority);

// A user-defined priority, and its first failure; keys() is a KeyFunction.
struct UserPriority {
  PriorityFunction function;
  const std::int32_t* user;
  JobColumns jobs;
  bool failed = false;
  JobId failed_job = 0;

  static void keys(void* data, double now, const JobId* jobs, std::size_t count, double* keys) {
    auto& self = *static_cast<UserPriority*>(data);
    for (std::size_t i = 0; i < count; ++i) {
      const JobId job = jobs[i];
      double priority = 0;
      const std::int32_t status =
          self.function(now, self.jobs.submit[job], self.jobs.estimate[job],
                        self.jobs.width[job], self.user[job], &priority);
      if ((status != 0 || std::isnan(priority)) && !self.failed) {
        self.failed = true;
        self.failed_job = job;
      }
      keys[i] = self.failed ? 0 : -priority;
    }
  }
};

}  // namespace slotkern::replay
