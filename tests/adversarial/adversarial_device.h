// A device made to find faults: memory that the host cannot access, work that runs late and in any legal order, few
// bindings, coarse alignment, small arenas, and failures that appear at a wait. It is registered from outside, like a
// backend of another project. Its kernels are the reference rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_set.h"

namespace rlx::test {

/// The properties of an adversarial test device, set by tests.
struct AdversarialOptions {
  std::uint64_t seed = 1;                           // of the order of work and of delays
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  int devices = 2;
  bool opaque = false;  // opaque, through a plug-in's table; else arenas, through a Backend
  bool peers = false;   // arena mode: streams of a device copy from memory of another one
  // Ops that its target refuses; in opaque mode also ops with one of these in a body.
  OpSet refuse{};
  // In opaque mode: ops that it refuses if they read an input of their graph. It acts like code for a fused op that
  // must compute the operands itself.
  OpSet refuse_on_inputs{};
  static OpSet control_flow() { return {OpKind::If, OpKind::While, OpKind::Scan, OpKind::Call}; }
};

/// Faults that a test injects into the devices, in either mode.
class AdversarialControl {
 public:
  virtual ~AdversarialControl() = default;
  /// Device `ordinal` fails when it runs the n-th step from now (0: the next).
  virtual void fail_step(int ordinal, int n, std::string why) = 0;
  /// The device is lost now: pending and future work fails.
  virtual void lose(int ordinal) = 0;
  /// The work since the backend was made, on all its devices.
  struct Counts {
    std::uint64_t steps = 0, runs = 0, uploads = 0, downloads = 0, copies = 0, allocations = 0;
    std::uint64_t binds = 0;        // opaque: compiles
    std::uint64_t reordered = 0;    // steps that ran before an earlier step of the schedule
    std::uint64_t late = 0;         // runs that began after submit had returned
    std::uint64_t taken = 0;        // donated inputs that runs consumed
    std::uint64_t peer_copies = 0;  // part of `copies`: from another device
  };
  virtual Counts counts() const = 0;
};

class AdversarialBackend : public Backend, public AdversarialControl {
 public:
  static constexpr std::size_t kAlignment = 256, kArenaBytes = std::size_t{64} << 10;
  static constexpr int kBindings = 7;
};

std::shared_ptr<AdversarialBackend> adversarial_backend(const AdversarialOptions& options = {});

/// Registers an adversarial test backend, for a device without a backend in this build, during its lifetime.
class AdversarialScope {
 public:
  explicit AdversarialScope(const AdversarialOptions& options = {});
  AdversarialScope(const AdversarialScope&) = delete;
  AdversarialScope& operator=(const AdversarialScope&) = delete;
  ~AdversarialScope();
  AdversarialControl& operator*() const { return *control_; }
  AdversarialControl* operator->() const { return control_.get(); }

  static constexpr Device kDevice = Device::DirectX;

 private:
  std::shared_ptr<AdversarialControl> control_;
};

/// Both modes, for tests of their common behaviour.
inline std::vector<AdversarialOptions> adversarial_modes(AdversarialOptions options = {}) {
  std::vector<AdversarialOptions> modes(2, options);
  modes[1].opaque = true;
  return modes;
}
inline const char* mode_name(const AdversarialOptions& options) { return options.opaque ? "opaque" : "arena"; }

}  // namespace rlx::test
