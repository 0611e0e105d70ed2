// Bytes on their way to the host: copied into memory that the library maps, and from there when somebody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "rlx/backends/wgpu/gpu.h"
#include "rlx/tensor/buffer.h"

namespace rlx::wgpu {

/// Pieces that one submission brings.
class Download {
 public:
  explicit Download(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  bool empty() const { return pieces_.empty(); }
  /// Before `begin`: bytes of a buffer, which is held until then; `kept` is held until they are written.
  void add(std::shared_ptr<const rlx::Buffer> from, abi::Buffer handle, std::size_t offset, std::span<std::byte> to,
           std::shared_ptr<const rlx::Buffer> kept);
  /// Adds the copies to `encoder`.
  void encode(abi::CommandEncoder encoder);
  /// After the submission: asks for the bytes. What `before` and `also` bring counts as brought by this.
  static void begin(const std::shared_ptr<Download>& self, std::uint64_t submission, std::shared_ptr<Download> before,
                    std::shared_ptr<Download> also = nullptr);
  /// True when the bytes, and those before them, are there for `finish`, or never will be.
  bool ready() const;
  /// Writes them to the host, once; throws what failed.
  void finish();
  /// True once `finish` has done it.
  bool finished() const { return state_ == State::Written; }

 private:
  friend class DownloadPool;
  enum class State { Filling, Asked, There, Failed, Written };
  struct Piece {
    std::shared_ptr<const rlx::Buffer> from;
    abi::Buffer handle;
    std::size_t offset, at, bytes;
    std::byte* to;
    std::shared_ptr<const rlx::Buffer> kept;
  };
  static void on_mapped(abi::MapStatus status, abi::StringView, void* download, void*);
  void restart();

  std::shared_ptr<Gpu> gpu_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0, capacity_ = 0;
  abi::Buffer staging_ = nullptr;
  std::uint64_t submission_ = 0;
  std::atomic<State> state_{State::Filling};
  mutable std::atomic<bool> all_there_{false};  // found by ready()
  std::mutex mutex_;                            // of finish
  std::shared_ptr<Download> before_, also_;
  std::shared_ptr<Download> self_;  // while the library may call back
};

/// Downloads that are used again, with their memory.
class DownloadPool {
 public:
  explicit DownloadPool(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  /// Waits where the library still has to call back, which it does for whoever asks alone.
  ~DownloadPool();
  DownloadPool(const DownloadPool&) = delete;
  DownloadPool& operator=(const DownloadPool&) = delete;
  std::shared_ptr<Download> take();

 private:
  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Download>> all_;
};

}  // namespace rlx::wgpu
