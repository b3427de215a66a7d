// A common interface of all scenarios and local schedulers, for the Python binding.
#pragma once

#include <memory>
#include <optional>

#include "slotkern/base/status.hpp"
#include "slotkern/community/community.hpp"
#include "slotkern/community/direct_placement.hpp"
#include "slotkern/community/preferences.hpp"

namespace slotkern::community {

// The two kinds of scenarios: placement without a protocol, and the protocol.
enum class Scenario : int { direct, community };

// The validated input of a simulation; jobs in the order of submission.
struct SimulationConfig {
  CommunityJobs jobs;
  Grid grid;
  LocalPolicy local;
  Scenario scenario = Scenario::community;
  PlacementPolicy placement = PlacementPolicy::home;
  double decision = 0.0;  // s for each decision of the central scheduler
  Neighbours neighbours;
  Rules rules;
  Settings settings;
};

// A simulation of any scenario.
class Simulation {
 public:
  virtual ~Simulation() = default;
  // Runs the simulation, or continues it after an interruption by a signal.
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
  explicit CommunitySimulation(const SimulationConfig& config) : config_(config) {}
  Status run() noexcept override {
    return guarded([&] {
      enable_interrupts();
      if (!it_)
        it_.emplace(config_.jobs, config_.grid, config_.local, config_.neighbours, config_.rules,
                    config_.settings);
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
  const SimulationConfig& config_;
  std::optional<Community<Local>> it_;
};

template <class Local>
class DirectSimulation final : public Simulation {
 public:
  explicit DirectSimulation(const SimulationConfig& config) : config_(config) {}
  Status run() noexcept override {
    return guarded([&] {
      enable_interrupts();
      if (!it_)
        it_.emplace(config_.jobs, config_.grid, config_.local, config_.placement, config_.decision);
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
  const SimulationConfig& config_;
  std::optional<DirectPlacement<Local>> it_;
};

}  // namespace detail

// Creates the simulation; `config` must outlive it.
template <class Local>
std::unique_ptr<Simulation> make_simulation(const SimulationConfig& config) {
  if (config.scenario == Scenario::community)
    return std::make_unique<detail::CommunitySimulation<Local>>(config);
  return std::make_unique<detail::DirectSimulation<Local>>(config);
}

inline std::unique_ptr<Simulation> make_simulation(const SimulationConfig& config) {
  return config.local.is_plain_fcfs() ? make_simulation<Fcfs>(config)
                                      : make_simulation<BackfillScheduler>(config);
}

}  // namespace slotkern::community
