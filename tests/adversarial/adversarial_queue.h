// The worker of an adversarial test device: streams of work that it runs late, one command at a time, each stream in
// order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "rlx/device/open_device.h"
#include "tests/adversarial/adversarial_memory.h"

namespace rlx::test {

using Holds = std::vector<std::shared_ptr<AdversarialBytes>>;

class AdversarialQueue;

/// The command queue of one stream. It may outlive the Stream that callers hold.
struct AdversarialLane {
  struct Command {
    std::function<void()> run;  // may throw; empty for a point
    Holds holds;
    Event after;              // must be done first
    bool order_only = false;  // true: a failure of `after` is ignored
    std::shared_ptr<Event::Point> point;
    std::uint64_t epoch = 0;
  };
  std::deque<Command> commands;
  std::uint64_t epoch = 0;  // counts the failures that were reported
  std::uint64_t failed_epoch = ~std::uint64_t{0};
  std::exception_ptr failure;  // of failed_epoch
  bool running = false;
};

class AdversarialQueue : public std::enable_shared_from_this<AdversarialQueue> {
 public:
  explicit AdversarialQueue(std::uint64_t seed) : random_(seed) {}
  /// Runs added commands until `close` was called and all are done: the body of the worker thread.
  void work();
  void close();
  /// Adds work to the end of the lane and returns its end. Throws an unreported earlier failure of the lane. If this
  /// call fails, nothing is added.
  Event add(const std::shared_ptr<AdversarialLane>& lane, std::function<void()> run, Holds holds, Event after = {},
            bool order_only = false);
  Event record(const std::shared_ptr<AdversarialLane>& lane);
  void drain();
  /// Pending and future work fails with this error.
  void lose(std::exception_ptr why);
  bool lost() const;

 private:
  friend class AdversarialPoint;
  void append(const std::shared_ptr<AdversarialLane>& lane, AdversarialLane::Command command);
  bool run_one(std::unique_lock<std::mutex>& lock);
  void finish(AdversarialLane& lane, AdversarialLane::Command& command, std::exception_ptr failure);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<AdversarialLane>> busy_;  // lanes with commands
  std::mt19937_64 random_;
  std::exception_ptr lost_;
  bool closed_ = false;
};

}  // namespace rlx::test
