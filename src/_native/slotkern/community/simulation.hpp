// One face for all scenarios and local schedulers, for the door.
#pragma once

#include <memory>
#include <optional>

#include "slotkern/base/status.hpp"
#include "slotkern/community/community.hpp"
#include "slotkern/community/direct.hpp"
#include "slotkern/community/preferences.hpp"

namespace slotkern::community {

enum class Scenario : int { direct, community };

// What a simulation is told; jobs by submission, everything checked.
struct Plan {
  Jobs jobs;
  Grid grid;
  LocalPolicy local;
  Scenario scenario = Scenario::community;
  Placing placing = Placing::home;
  double decision = 0.0;  // s a job, of the centre
  Neighbours neighbours;
  Rules rules;
  Settings settings;
};

class Simulation {
 public:
  virtual ~Simulation() = default;
  // Goes on where a signal has interrupted it.
  virtual Status run() noexcept = 0;
  virtual const Outcome& outcome() const = 0;
  virtual Tally tally() const = 0;
  virtual std::size_t events() const = 0;
  virtual double shadow_load() const = 0;
  virtual std::size_t promises() const = 0;
};

namespace detail {

template <class Local>
class CommunitySimulation final : public Simulation {
 public:
  explicit CommunitySimulation(const Plan& plan) : plan_(plan) {}
  Status run() noexcept override {
    return guarded([&] {
      expect_long();
      if (!it_)
        it_.emplace(plan_.jobs, plan_.grid, plan_.local, plan_.neighbours, plan_.rules,
                    plan_.settings);
      it_->run();
      return Status::ok;
    });
  }
  const Outcome& outcome() const override { return it_->outcome(); }
  Tally tally() const override { return it_->tally(); }
  std::size_t events() const override { return it_->events(); }
  double shadow_load() const override { return it_->shadow_load(); }
  std::size_t promises() const override { return it_->promises(); }

 private:
  const Plan& plan_;
  std::optional<Community<Local>> it_;
};

template <class Local>
class DirectSimulation final : public Simulation {
 public:
  explicit DirectSimulation(const Plan& plan) : plan_(plan) {}
  Status run() noexcept override {
    return guarded([&] {
      expect_long();
      if (!it_)
        it_.emplace(plan_.jobs, plan_.grid, plan_.local, plan_.placing, plan_.decision);
      it_->run();
      return Status::ok;
    });
  }
  const Outcome& outcome() const override { return it_->outcome(); }
  Tally tally() const override { return {}; }
  std::size_t events() const override { return it_->events(); }
  double shadow_load() const override { return 0; }
  std::size_t promises() const override { return 0; }

 private:
  const Plan& plan_;
  std::optional<Direct<Local>> it_;
};

}  // namespace detail

template <class Local>
std::unique_ptr<Simulation> make_simulation(const Plan& plan) {  // which must outlive it
  if (plan.scenario == Scenario::community)
    return std::make_unique<detail::CommunitySimulation<Local>>(plan);
  return std::make_unique<detail::DirectSimulation<Local>>(plan);
}

inline std::unique_ptr<Simulation> make_simulation(const Plan& plan) {
  return plan.local.plain() ? make_simulation<Fcfs>(plan) : make_simulation<Backfilling>(plan);
}

}  // namespace slotkern::community
