// Points are states under the queue's mutex. Failures have epochs: work that was queued before a failure was reported
// fails with it, and later work does not.
#include "tests/adversarial/adversarial_queue.h"

#include <algorithm>
#include <chrono>

#include "rlx/error.h"

namespace rlx::test {

class AdversarialPoint final : public Event::Point {
 public:
  AdversarialPoint(std::shared_ptr<AdversarialQueue> queue, std::shared_ptr<AdversarialLane> lane, std::uint64_t epoch)
      : queue_(std::move(queue)), lane_(std::move(lane)), epoch_(epoch) {}
  bool ready() override {
    std::lock_guard lock(queue_->mutex_);
    return done_;
  }
  bool failed() override {
    std::lock_guard lock(queue_->mutex_);
    return done_ && failure_;
  }
  void wait() override {
    std::unique_lock lock(queue_->mutex_);
    queue_->changed_.wait(lock, [&] { return done_; });
    if (!failure_) return;
    if (lane_->epoch == epoch_) ++lane_->epoch;  // reported now, so the stream works again
    std::rethrow_exception(failure_);
  }

 private:
  friend class AdversarialQueue;
  std::shared_ptr<AdversarialQueue> queue_;
  std::shared_ptr<AdversarialLane> lane_;
  std::uint64_t epoch_;
  bool done_ = false;
  std::exception_ptr failure_;
};

void AdversarialQueue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void AdversarialQueue::append(const std::shared_ptr<AdversarialLane>& lane, AdversarialLane::Command command) {
  const bool fresh = std::find(busy_.begin(), busy_.end(), lane) == busy_.end();
  if (fresh) busy_.push_back(lane);
  try {
    lane->commands.push_back(std::move(command));
  } catch (...) {
    if (fresh) busy_.pop_back();
    throw;
  }
  changed_.notify_all();
}

Event AdversarialQueue::add(const std::shared_ptr<AdversarialLane>& lane, std::function<void()> run, Holds holds,
                            Event after, bool order_only) {
  std::lock_guard lock(mutex_);
  if (lost_) std::rethrow_exception(lost_);
  if (lane->failed_epoch == lane->epoch) {
    ++lane->epoch;
    std::rethrow_exception(lane->failure);
  }
  // One command includes its point: a separate point might find no memory when the work is already queued.
  auto point = std::make_shared<AdversarialPoint>(shared_from_this(), lane, lane->epoch);
  append(lane, {std::move(run), std::move(holds), std::move(after), order_only, point, lane->epoch});
  for (const auto& h : lane->commands.back().holds) h->begin_work();
  return Event(std::move(point));
}

Event AdversarialQueue::record(const std::shared_ptr<AdversarialLane>& lane) try {
  std::lock_guard lock(mutex_);
  auto point = std::make_shared<AdversarialPoint>(shared_from_this(), lane, lane->epoch);
  append(lane, {{}, {}, {}, false, point, lane->epoch});
  return Event(std::move(point));
} catch (...) {  // nobody can wait for work that is already queued
  drain();
  throw;
}

void AdversarialQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return std::all_of(busy_.begin(), busy_.end(), [](const auto& l) { return l->commands.empty(); }); });
}

void AdversarialQueue::lose(std::exception_ptr why) {
  std::lock_guard lock(mutex_);
  lost_ = std::move(why);
  changed_.notify_all();
}

bool AdversarialQueue::lost() const {
  std::lock_guard lock(mutex_);
  return lost_ != nullptr;
}

void AdversarialQueue::finish(AdversarialLane& lane, AdversarialLane::Command& command, std::exception_ptr failure) {
  if (failure && lane.failed_epoch != command.epoch) {
    lane.failed_epoch = command.epoch;
    lane.failure = failure;
  }
  for (const auto& h : command.holds) h->end_work();
  if (!command.point) return;
  auto& point = static_cast<AdversarialPoint&>(*command.point);
  point.failure_ = lane.failed_epoch == command.epoch ? lane.failure : nullptr;
  point.done_ = true;
}

// Runs the first command of a lane that can proceed; false when there is none.
bool AdversarialQueue::run_one(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<AdversarialLane>> able;
  for (const auto& lane : busy_)
    if (!lane->commands.empty() && !lane->running) able.push_back(lane);
  std::shuffle(able.begin(), able.end(), random_);
  for (const auto& lane : able) {
    AdversarialLane::Command& front = lane->commands.front();
    const bool skip = lost_ || lane->failed_epoch == front.epoch;
    std::exception_ptr failure = lost_;
    if (!lost_ && front.after.point()) {  // a failed stream waits too
      // The event may be of this queue, so it is queried without the lock.
      Event after = front.after;
      const bool front_order_only = front.order_only;
      lane->running = true;
      lock.unlock();
      const bool ready = after.ready();
      if (ready && !skip && !front_order_only && after.failed()) try {
          after.wait();
        } catch (...) {
          failure = std::current_exception();
        }
      lock.lock();
      lane->running = false;
      if (!ready) continue;
    }
    AdversarialLane::Command command = std::move(lane->commands.front());
    if (!skip && !failure && command.run) {
      lane->running = true;
      lock.unlock();
      try {
        command.run();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      lane->running = false;
    }
    lane->commands.pop_front();
    finish(*lane, command, failure);
    if (lane->commands.empty()) busy_.erase(std::find(busy_.begin(), busy_.end(), lane));
    changed_.notify_all();
    lock.unlock();
    command = {};  // it may hold the last reference
    lock.lock();
    return true;
  }
  return false;
}

void AdversarialQueue::work() {
  std::unique_lock lock(mutex_);
  while (!closed_ || !busy_.empty()) {
    if (random_() % 4 == 0) {  // late
      const auto pause = std::chrono::microseconds(random_() % 40);
      lock.unlock();
      std::this_thread::sleep_for(pause);
      lock.lock();
    }
    if (!run_one(lock)) changed_.wait_for(lock, std::chrono::microseconds(200));
  }
}

}  // namespace rlx::test
