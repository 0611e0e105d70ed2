// A device made to find faults: memory that the host cannot reach, work that runs late and in any order that is legal,
// few bindings, coarse alignment, small arenas, failures that show when somebody waits. It is registered from outside
// as a backend of another project would be. Its kernels are the reference rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rlx/driver/backend.h"
#include "rlx/driver/registry.h"

namespace rlx::test {

/// What a proof device does, and what a test makes it do.
struct ProofOptions {
  std::uint64_t seed = 1;                           // of the order of work and of its delays
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  int devices = 2;
};

class ProofBackend : public Backend {
 public:
  static constexpr std::size_t kAlignment = 256, kArenaBytes = std::size_t{64} << 10;
  static constexpr int kBindings = 7;

  /// The device `ordinal` fails the n-th step from now (0: the next), when it comes to run it.
  virtual void fail_step(int ordinal, int n, std::string why) = 0;
  /// The device is lost now: what is under way fails, and what is asked of it from now on.
  virtual void lose(int ordinal) = 0;
  /// Work that was done since the backend was made, on all its devices.
  struct Counts {
    std::uint64_t steps = 0, runs = 0, binds = 0, uploads = 0, downloads = 0, copies = 0, allocations = 0;
    std::uint64_t reordered = 0;  // steps that ran before one which the schedule has earlier
    std::uint64_t late = 0;       // runs that began after submit had returned
  };
  virtual Counts counts() const = 0;
};

std::shared_ptr<ProofBackend> proof_backend(const ProofOptions& options = {});

/// Registers a proof backend for a device that this build has no backend for, while it lives.
class ProofScope {
 public:
  explicit ProofScope(const ProofOptions& options = {}) : backend_(proof_backend(options)) {
    register_backend(kDevice, backend_);
  }
  ProofScope(const ProofScope&) = delete;
  ProofScope& operator=(const ProofScope&) = delete;
  ~ProofScope() { register_backend(kDevice, nullptr); }
  ProofBackend& operator*() const { return *backend_; }
  ProofBackend* operator->() const { return backend_.get(); }

  static constexpr Device kDevice = Device::DirectX;

 private:
  std::shared_ptr<ProofBackend> backend_;
};

}  // namespace rlx::test
