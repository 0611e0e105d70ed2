// Points in a device's work, and its streams. A plug-in orders work by the values that it reads; a stream tracks
// failures and the work that a wait has to wait for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rlx/backends/tpu/client.h"
#include "rlx/exec/block_pool.h"

namespace rlx::tpu {

class TpuDevice;
class Work;

/// The device that work runs on. The device itself may hold such work, so this does not own the device.
struct OnDevice {
  OnDevice(std::shared_ptr<const Client> c, std::string t) : client(std::move(c)), text(std::move(t)) {
    path_.reserve(16);
  }
  std::shared_ptr<const Client> client;
  std::string text;  // "device tpu:1"
  mutable std::array<std::atomic<std::size_t>, kNumBufferUses> in_use{};
  /// The use of memory, "in use are 4096 bytes for weights"; empty when none is in use.
  std::string usage() const;

  /// Memory pools for Work and buffer objects.
  const std::shared_ptr<BlockPool> works = std::make_shared<BlockPool>(), buffers = std::make_shared<BlockPool>();
  /// A pooled empty list with reserved capacity, which is returned the same way.
  using Path = std::vector<std::shared_ptr<Work>>;
  Path take_path() const;
  void give_path(Path path) const;

 private:
  mutable std::mutex mutex_;
  mutable Path path_;
};

/// One asynchronous operation of the plug-in, ordered after others.
class Work final : public Event::Point, public std::enable_shared_from_this<Work> {
 public:
  struct Dependency {
    std::shared_ptr<Work> work;
    bool order_only = false;  // its failure does not fail this work
  };
  /// Takes ownership of `event`. With null the work completes with the work before it.
  Work(std::shared_ptr<const OnDevice> place, abi::Point* event, std::array<Dependency, 2> dependencies);
  ~Work() override;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool ready() override { return settle(false) != State::Pending; }
  bool failed() override { return settle(false) == State::Failed; }
  void wait() override;
  /// True for a failure that a wait has already thrown.
  bool reported() const { return reported_; }
  const OnDevice& on() const { return *place_; }

 private:
  enum class State : std::uint8_t { Pending, Done, Failed };
  State settle(bool block);
  State finish(bool block);
  std::shared_ptr<Work> unsettled_dependency();

  std::shared_ptr<const OnDevice> place_;
  abi::Point* const event_;
  std::atomic<State> state_{State::Pending};
  std::atomic<bool> reported_{false};
  std::mutex mutex_;  // guards the members below
  std::array<Dependency, 2> dependencies_;
  std::optional<Diagnostic> error_;  // readable once the state is Failed
};

class TpuStream final : public Stream {
 public:
  explicit TpuStream(std::shared_ptr<TpuDevice> device) : device_(std::move(device)) {}
  ~TpuStream() override;
  void upload(std::span<const std::byte> from, const BufferView& to) override;
  void download(const BufferView& from, std::span<std::byte> to) override;
  void copy(const BufferView& from, const BufferView& to) override;
  Event record() override { return Event(last()); }
  void wait(const Event& event) override { wait(event, false); }
  void wait_order(const Event& event) override { wait(event, true); }

  /// Throws a failure that was not reported yet. Must be called before work is given to the plug-in.
  void begin();
  /// Adds work after the stream's earlier work. Takes ownership of its event; null is completed work.
  void add(abi::Point* event);
  /// Waits for pending fetches into any of these host bytes. A plug-in does not order fetches, so an earlier one could
  /// write last.
  void wait_for_fetches(const void* to, std::size_t bytes);
  /// Records that the most recently added work fetches into these bytes.
  void note_fetch(const void* to, std::size_t bytes);
  const TpuDevice& on() const { return *device_; }

 private:
  struct Fetch {
    std::uintptr_t begin, end;
    Event done;
  };
  void wait(const Event& event, bool order_only);
  // One thread uses the stream, but any thread may drain the device.
  std::shared_ptr<Work> last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  void set_last(std::shared_ptr<Work> work) {
    std::lock_guard lock(mutex_);
    last_.swap(work);
  }
  std::vector<Fetch> fetches_;  // the fetches that were pending at the last check
  std::shared_ptr<TpuDevice> device_;
  mutable std::mutex mutex_;
  std::shared_ptr<Work> last_;
};

}  // namespace rlx::tpu
