// A program bound to a device: pipelines, numbers, scratch, and bind groups, which are remade only when their buffers
// changed.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "rlx/backends/wgpu/device.h"
#include "rlx/backends/wgpu/executable.h"
#include "rlx/backends/wgpu/timestamps.h"

namespace rlx::wgpu {

class WgpuInstance final : public Instance {
 public:
  WgpuInstance(const WgpuExecutable& code, std::shared_ptr<WgpuDevice> device, const LirModule& program,
               std::span<const BufferView> arenas);
  ~WgpuInstance() override;
  Event submit(const RunArguments& a, Stream& stream) override;

 private:
  /// The location of bytes: a part of the buffer that a place is bound to.
  struct Part {
    Place place = Place::None;  // None: scratch
    std::uint32_t index = 0;
    std::size_t begin = 0, end = 0;
    bool written = false;
  };
  struct Launch {
    NodeId node;
    abi::ComputePipeline pipeline = nullptr;
    abi::BindGroup group = nullptr;
    std::uint32_t numbers = 0, numbers_bytes = 0;  // its slot in the buffer of numbers
    std::uint32_t x = 0, y = 0;
    std::uint32_t first_part = 0, num_parts = 0;
    double expected_ns = 0;
    bool stale = true;  // the bind group does not match the current bindings of the places
    bool begins_submission = false;
  };
  /// The buffer range that a place is bound to.
  struct Bound {
    abi::Buffer handle = nullptr;
    std::uint64_t serial = 0;
    std::size_t offset = 0, bytes = 0;
    friend bool operator==(const Bound&, const Bound&) = default;
    bool meets(const Bound& o) const {
      return handle == o.handle && offset < o.offset + o.bytes && o.offset < offset + bytes;
    }
  };
  /// The slots of one kind (inputs, for example) and the launches that read or write each.
  struct Slots {
    std::vector<Bound> bound;
    std::vector<std::vector<std::uint32_t>> users;
  };
  struct Copy {
    Part from;
    Place to = Place::Output;
    std::uint32_t index = 0;
    std::size_t bytes = 0;
    // Set for each run:
    abi::Buffer source = nullptr, target = nullptr;
    std::size_t source_at = 0, target_at = 0, aside = 0;
    bool staged = false;
  };

  /// A copy of a launch's operand, made before the launch runs.
  struct Shadow {
    std::size_t launch = 0;
    Bound of;
    std::shared_ptr<rlx::Buffer> copy;
  };

  void lower(const WgpuExecutable& code);
  /// False for a launch without workgroups.
  bool add_launch(const codegen::NodeLaunches& of, const codegen::Kernel& kernel, std::vector<std::uint32_t>& numbers);
  void require_short_loops(const codegen::NodeLaunches& of) const;
  void take_scratch(const WgpuExecutable& code);
  void plan_copies();
  Bound bound_of(const BufferView& view) const;
  void rebind(Place place, std::size_t i, const BufferView& view);
  Slots& slots(Place place) { return slots_[static_cast<std::size_t>(place)]; }
  const Slots& slots(Place place) const { return slots_[static_cast<std::size_t>(place)]; }
  /// The current buffer range of a part.
  Bound find(const Part& p) const;
  void make_group(Launch& launch);
  bool is_alias(const Part& input, const Part& output) const;
  void check_disjoint(const Launch& launch, std::span<const Bound> at) const;
  /// Copies operands of a launch where two of its bindings overlap. Browsers reject overlapping bindings, even if both
  /// are read.
  void make_shadows(Launch& launch, std::span<Bound> at);
  void encode_shadows(std::span<const Launch> list, abi::CommandEncoder encoder) const;
  /// Writes the launches into a pass and ends it.
  void encode(std::span<const Launch> list, abi::ComputePassEncoder pass) const;
  /// An encoder with the commands that f(encoder) writes.
  template <class F>
  abi::CommandEncoder encoded(F&& f) const;
  void encode_copies(abi::CommandEncoder encoder);
  void run(const StepRange& range, WgpuStream& stream);
  void run_timed(const StepRange& range, WgpuStream& stream, std::vector<StepTime>& times);
  std::size_t in_one_submission(std::span<const Launch> left) const;
  std::span<Launch> launches(const StepRange& steps);

  std::shared_ptr<WgpuDevice> device_;
  Gpu& gpu_;
  const LirModule& program_;
  std::shared_ptr<const Constants> constants_;
  std::array<Slots, static_cast<std::size_t>(Place::None)> slots_;
  std::vector<Pipeline> pipelines_;  // kept alive for the launches
  std::vector<Launch> launches_;
  std::vector<std::uint32_t> first_launch_;  // of each step, and one past the last
  std::vector<Part> parts_;
  std::vector<Copy> copies_;
  std::vector<Shadow> shadows_;
  Gpu::OwnBuffer numbers_;
  std::shared_ptr<rlx::Buffer> scratch_, aside_;
  std::unique_ptr<Timestamps> timestamps_;
  std::uint64_t binding_generation_ = ~std::uint64_t{0};
};

}  // namespace rlx::wgpu
