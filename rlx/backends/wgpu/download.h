// Downloads: bytes are copied to staging memory that the library maps, and from there to the host when somebody waits.
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

/// The ranges that one submission copies to the host.
class Download {
 public:
  explicit Download(const Gpu& gpu) : gpu_(gpu) {}
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Adds bytes of a buffer. The buffer is held until `encode`; `kept` is held until the bytes are written.
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
  /// Requests the mapping once `submission` is done. Throws the errors that the library reports immediately.
  void ask(std::uint64_t submission);
  /// False when the library does not return the bytes after it reported them as mapped.
  bool write();

  const Gpu& gpu_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0, capacity_ = 0;
  Gpu::OwnBuffer staging_;
  std::uint64_t submission_ = 0, number_ = 0;
  std::atomic<State> state_{State::Filling};
  std::unique_ptr<Download> next_;  // the next in the list of a Downloads
};

/// All downloads of a device, numbered from 1 in the order in which they began. They are written in that order for all
/// streams: the device has one queue, so an earlier download never arrives later.
class Downloads {
 public:
  explicit Downloads(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  /// Waits for outstanding callbacks of the library; it runs them only when polled.
  ~Downloads();
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;
  const Gpu& gpu() const { return *gpu_; }

  /// A download to fill. It reuses the memory of an earlier one.
  std::unique_ptr<Download> take();
  /// Registers a submitted download, whose bytes are now on their way, and returns its number.
  std::uint64_t begin(std::unique_ptr<Download> download, std::uint64_t submission);
  /// True when the bytes of all downloads up to a number are ready for `finish`, or never will be. Never blocks.
  bool ready(std::uint64_t number);
  /// True when these downloads are written to the host.
  bool finished(std::uint64_t number) const { return written_ >= number; }
  /// Waits for a submission and writes its downloads, up to a number, to the host. Throws DeviceLost; then none of them
  /// is written any more.
  void finish(std::uint64_t submission, std::uint64_t number);

 private:
  void finish_up_to(std::uint64_t number);
  void give(std::unique_ptr<Download> download);

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<Download> first_;
  Download* last_ = nullptr;
  Download* unknown_ = nullptr;  // the first that is not known to be mapped
  std::uint64_t begun_ = 0;
  std::unique_ptr<Download> idle_;
  std::size_t num_idle_ = 0;
  std::atomic<std::uint64_t> there_{0}, written_{0};
};

}  // namespace rlx::wgpu
