// Points of a device's work, and streams of it. A plug-in orders work by the values that it reads; a stream here is who
// remembers what failed, and what a wait has to wait for.
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

/// Which device work runs on. The device itself may hold such work, so this is no owner of it.
struct OnDevice {
  OnDevice(std::shared_ptr<const Client> c, std::string t) : client(std::move(c)), text(std::move(t)) {
    path_.reserve(16);
  }
  std::shared_ptr<const Client> client;
  std::string text;  // "device tpu:1"
  mutable std::array<std::atomic<std::size_t>, kNumBufferUses> in_use{};
  /// "in use are 4096 bytes for weights"; empty when nothing is.
  std::string usage() const;

  /// Memory of work and of buffers, for those that come.
  const std::shared_ptr<BlockPool> works = std::make_shared<BlockPool>(), buffers = std::make_shared<BlockPool>();
  /// A list without elements but with room, which is given back the same way.
  using Path = std::vector<std::shared_ptr<Work>>;
  Path take_path() const;
  void give_path(Path path) const;

 private:
  mutable std::mutex mutex_;
  mutable Path path_;
};

/// One thing that was left to the plug-in, behind others.
class Work final : public Event::Point, public std::enable_shared_from_this<Work> {
 public:
  struct Before {
    std::shared_ptr<Work> work;
    bool order_only = false;  // its failure is not this one's
  };
  /// Takes `event`, which may be null: then it is the point behind what is before it.
  Work(std::shared_ptr<const OnDevice> place, abi::Point* event, std::array<Before, 2> before);
  ~Work() override;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool ready() override { return settle(false) != State::Pending; }
  bool failed() override { return settle(false) == State::Failed; }
  void wait() override;
  /// True for a failure that a wait has thrown.
  bool told() const { return told_; }
  const OnDevice& on() const { return *place_; }

 private:
  enum class State : std::uint8_t { Pending, Done, Failed };
  State settle(bool block);
  State finish(bool block);
  std::shared_ptr<Work> unsettled_before();

  std::shared_ptr<const OnDevice> place_;
  abi::Point* const event_;
  std::atomic<State> state_{State::Pending};
  std::atomic<bool> told_{false};
  std::mutex mutex_;  // of what follows
  std::array<Before, 2> before_;
  std::optional<Diagnostic> error_;  // whoever holds the work reads it once the state is Failed
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

  /// Throws a failure that nobody was told of. To be called before work is given to the plug-in.
  void begin();
  /// The work's event, which is taken, goes behind what the stream holds; null is work that is done.
  void add(abi::Point* event);
  /// Waits for fetches under way into any of these bytes of the host: a plug-in keeps no order among fetches, so that
  /// an earlier one could be the last to write.
  void wait_for_fetches(const void* to, std::size_t bytes);
  /// The work added last fetches into these bytes.
  void note_fetch(const void* to, std::size_t bytes);
  const TpuDevice& on() const { return *device_; }

 private:
  struct Fetch {
    std::uintptr_t begin, end;
    Event done;
  };
  void wait(const Event& event, bool order_only);
  // One thread uses the stream, but any may drain the device.
  std::shared_ptr<Work> last() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  void set_last(std::shared_ptr<Work> work) {
    std::lock_guard lock(mutex_);
    last_.swap(work);
  }
  std::vector<Fetch> fetches_;  // that were under way when they were last looked at
  std::shared_ptr<TpuDevice> device_;
  mutable std::mutex mutex_;
  std::shared_ptr<Work> last_;
};

}  // namespace rlx::tpu
