// A device made to find faults: memory that the host cannot reach, work that runs late and in any order that is legal,
// few bindings, coarse alignment, small arenas, failures that show when somebody waits. It is registered from outside
// as a backend of another project would be. Its kernels are the reference rules.
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

/// What a adversarial test device does, and what a test makes it do.
struct AdversarialOptions {
  std::uint64_t seed = 1;                           // of the order of work and of its delays
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  int devices = 2;
  bool opaque = false;  // whole values, through a plug-in's table; else arenas, through a Backend
  bool peers = false;   // of arenas: streams of a device copy from memory of another one
  // Its target refuses these; in opaque mode also what has them in a body.
  OpSet refuse{};
  // In opaque mode: those of these that read an input of the graph it is given, as code for a fused op of which it
  // wants to make the operands.
  OpSet refuse_on_inputs{};
  static OpSet control_flow() { return {OpKind::If, OpKind::While, OpKind::Scan, OpKind::Call}; }
};

/// What a test does to the devices, in either mode.
class AdversarialControl {
 public:
  virtual ~AdversarialControl() = default;
  /// The device `ordinal` fails the n-th step from now (0: the next), when it comes to run it.
  virtual void fail_step(int ordinal, int n, std::string why) = 0;
  /// The device is lost now: what is under way fails, and what is asked of it from now on.
  virtual void lose(int ordinal) = 0;
  /// Work that was done since the backend was made, on all its devices.
  struct Counts {
    std::uint64_t steps = 0, runs = 0, uploads = 0, downloads = 0, copies = 0, allocations = 0;
    std::uint64_t binds = 0;        // opaque: compiles
    std::uint64_t reordered = 0;    // steps that ran before one which the schedule has earlier
    std::uint64_t late = 0;         // runs that began after submit had returned
    std::uint64_t taken = 0;        // inputs that runs took over
    std::uint64_t peer_copies = 0;  // of `copies`, those from another device
  };
  virtual Counts counts() const = 0;
};

class AdversarialBackend : public Backend, public AdversarialControl {
 public:
  static constexpr std::size_t kAlignment = 256, kArenaBytes = std::size_t{64} << 10;
  static constexpr int kBindings = 7;
};

std::shared_ptr<AdversarialBackend> adversarial_backend(const AdversarialOptions& options = {});

/// Registers an adversarial test backend for a device that this build has no backend for, while it lives.
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

/// Both modes, for tests of what they have in common.
inline std::vector<AdversarialOptions> adversarial_modes(AdversarialOptions options = {}) {
  std::vector<AdversarialOptions> modes(2, options);
  modes[1].opaque = true;
  return modes;
}
inline const char* mode_name(const AdversarialOptions& options) { return options.opaque ? "opaque" : "arena"; }

}  // namespace rlx::test
