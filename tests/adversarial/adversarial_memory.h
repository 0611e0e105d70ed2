// Memory of the adversarial test device: pages that are mapped twice, for the host and for the worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace rlx::test {

/// The bytes of one buffer. The worker's mapping is next to an inaccessible page. The host's mapping is inaccessible
/// too, unless the host was given it, and then only while no work uses the buffer.
class AdversarialBytes {
 public:
  /// All bits set: NaN in every float dtype, -1 in integers.
  AdversarialBytes(std::size_t bytes, bool for_host, std::size_t alignment,
                   std::shared_ptr<std::atomic<std::size_t>> in_use);
  ~AdversarialBytes();
  AdversarialBytes(const AdversarialBytes&) = delete;
  AdversarialBytes& operator=(const AdversarialBytes&) = delete;

  std::size_t bytes() const { return bytes_; }
  bool for_host() const { return for_host_; }
  std::byte* host() const { return host_ + start_; }
  /// The worker's mapping.
  std::byte* worker() const { return worker_ + start_; }
  /// The host may not access it while work uses it.
  void begin_work();
  void end_work();

 private:
  void protect(bool open);
  std::size_t bytes_, pages_ = 0, start_ = 0;
  bool for_host_;
  std::byte *host_ = nullptr, *worker_ = nullptr;
  std::byte *host_map_ = nullptr, *worker_map_ = nullptr;
  std::mutex mutex_;
  int users_ = 0;
  std::shared_ptr<std::atomic<std::size_t>> in_use_;
};

}  // namespace rlx::test
