// Bytes on their way to the host: copied into memory that the library maps, and from there when somebody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rlx/backends/wgpu/gpu.h"
#include "rlx/tensor/buffer.h"

namespace rlx::wgpu {

/// Pieces that one submission brings.
class Download {
 public:
  explicit Download(const Gpu& gpu) : gpu_(gpu) {}
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Bytes of a buffer, which is held until `encode`; `kept` is held until they are written.
  void add(std::shared_ptr<const rlx::Buffer> from, abi::Buffer handle, std::size_t offset, std::span<std::byte> to,
           std::shared_ptr<const void> kept);
  /// Adds the copies to `encoder`.
  void encode(abi::CommandEncoder encoder);

 private:
  friend class Downloads;
  enum class State { Filling, Asked, There, Failed };
  struct Piece {
    std::shared_ptr<const rlx::Buffer> from;
    abi::Buffer handle;
    std::size_t offset, at, bytes;
    std::byte* to;
    std::shared_ptr<const void> kept;
  };
  static void on_mapped(abi::MapStatus status, abi::StringView, void* download, void*);
  std::size_t mapped_bytes() const { return round_up(bytes_, 8); }
  /// Asks for the bytes once `submission` is done; throws what the library says at once.
  void ask(std::uint64_t submission);
  /// False when the library does not give the bytes, which it said were there.
  bool write();

  const Gpu& gpu_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0, capacity_ = 0;
  Gpu::OwnBuffer staging_;
  std::uint64_t submission_ = 0, number_ = 0;
  std::atomic<State> state_{State::Filling};
  std::unique_ptr<Download> next_;  // in a list of Downloads
};

/// All downloads of a device, numbered as they began, from 1 on. They are written in that order, whichever stream they
/// are of: the device has one queue, so one that began earlier is there no later.
class Downloads {
 public:
  explicit Downloads(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  /// Waits where the library still has to call back, which it does for whoever asks alone.
  ~Downloads();
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;
  const Gpu& gpu() const { return *gpu_; }

  /// One to be filled, with the memory of an earlier one.
  std::unique_ptr<Download> take();
  /// The number of one that was submitted; what it brings is on its way.
  std::uint64_t begin(std::unique_ptr<Download> download, std::uint64_t submission);
  /// True when the bytes of all up to a number are there for `finish`, or never will be. Never blocks.
  bool ready(std::uint64_t number);
  /// True when they are written.
  bool finished(std::uint64_t number) const { return written_ >= number; }
  /// Waits for a submission and writes what was to be there by then, up to a number, to the host. Throws DeviceLost,
  /// and nothing of that is written any more.
  void finish(std::uint64_t submission, std::uint64_t number);

 private:
  void finish_up_to(std::uint64_t number);
  void give(std::unique_ptr<Download> download);

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;  // of what follows
  std::unique_ptr<Download> first_;
  Download* last_ = nullptr;
  Download* unknown_ = nullptr;  // the first that was not seen to be there
  std::uint64_t begun_ = 0;
  std::unique_ptr<Download> idle_;
  std::size_t num_idle_ = 0;
  std::atomic<std::uint64_t> there_{0}, written_{0};
};

}  // namespace rlx::wgpu
