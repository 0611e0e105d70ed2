// Memory of one instance on its device: arenas, and the slots that inputs and outputs of the host pass through.
// Internal.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/device/backend.h"
#include "rlx/exec/fetching.h"

namespace rlx {

struct Compilation;

// -- values in transit. Only this file depends on how devices keep memory (`MemoryModel`). --

/// The location from which a run reads an input: a device tensor's buffer, else host memory if kernels can read it,
/// else a copy in `room` or in a new buffer. On an opaque device `slot` receives the buffer.
RunSlot input_slot(OpenDevice& device, Stream& stream, const TensorView& value, const Shape& shape,
                   const BufferView& room, std::shared_ptr<Buffer>& slot);
/// The location to which a run writes an output for the host.
RunSlot output_slot(OpenDevice& device, void* data, std::size_t bytes, const BufferView& room,
                    std::shared_ptr<Buffer>& slot);
/// Copies an output from that location to host memory, which may be that of a read-back buffer.
void fetch_output(OpenDevice& device, Stream& stream, const RunSlot& from, const Shape& shape, void* data,
                  Buffer* readback);
/// The location to which a run writes an output that stays on the device. `value` is created as far as possible before
/// the run.
RunSlot value_slot(OpenDevice& device, const Shape& shape, Tensor& value, std::shared_ptr<Buffer>& slot);
/// Completes `value` after the run was submitted: it is the output, written by `done`.
void keep_value(const RunSlot& from, const Shape& shape, const Event& done, Tensor& value);

/// The bytes of a state between runs. None on an opaque device, where each write makes them.
std::shared_ptr<Buffer> state_buffer(OpenDevice& device, const Shape& shape);
RunSlot state_slot(OpenDevice& device, std::shared_ptr<Buffer>& buffer, const Shape& shape);
/// Invalidates a state that nobody may read any more. On an opaque device this frees its memory for the next value.
void drop_state_value(const OpenDevice& device, std::shared_ptr<Buffer>& buffer, bool& valid);
/// Writes `bytes` bytes of a state from `offset` on, after the work on the stream: from `data`, or zeros when `data` is
/// null. When the device cannot write that part (an opaque device, or one that copies whole granules), the surrounding
/// bytes are downloaded, changed and uploaded. `valid` becomes false when the first byte is overwritten.
void write_state_bytes(OpenDevice& device, Stream& stream, std::shared_ptr<Buffer>& buffer, const Shape& shape,
                       std::size_t granule, std::size_t offset, std::size_t bytes, const std::byte* data, bool& valid);
/// Reads such bytes and waits for them.
void read_state_bytes(OpenDevice& device, Stream& stream, Buffer& buffer, const Shape& shape, std::size_t granule,
                      std::size_t offset, std::span<std::byte> to);
/// The bytes of a state for another instance: a copy, or the same buffer when runs replace buffers and never change
/// them.
std::shared_ptr<Buffer> copied_state(OpenDevice& device, Stream& stream, const std::shared_ptr<Buffer>& buffer,
                                     const Shape& shape);

/// Reads I64 scalars from these locations and waits for them.
void read_scalars(OpenDevice& device, Stream& stream, std::span<const BufferView> from, std::span<std::int64_t> to);

/// A copy on a device of host bytes that do not change meanwhile.
struct Resident {
  std::shared_ptr<Buffer> buffer;
  Event there{};  // when the copy is complete
};
/// The location from which kernels read `bytes`: host memory if they can read it, otherwise the copy, which is made on
/// first use.
BufferView resident_on(OpenDevice& device, Stream& stream, const Tensor& bytes, Resident& copy);
/// The value on the device: the value itself if kernels can read host memory, otherwise a copy that is complete before
/// the device uses it.
Tensor value_on(OpenDevice& device, const Tensor& here);

/// Runs a static program without params or states once, on host values.
std::vector<Tensor> run_once(OpenDevice& device, Stream& stream, const Executable& code,
                             std::span<const Tensor> inputs);

/// Memory that grows to the largest program used so far. Its contents keep their addresses until it grows.
class RunMemory {
 public:
  RunMemory(std::shared_ptr<OpenDevice> device, std::size_t alignment);
  bool fits(const Compilation& c) const;
  /// Allocates memory where the current memory is too small for `c`. OutOfMemory names `graph` and leaves this
  /// unchanged.
  void reserve(const Compilation& c, const std::string& graph);
  /// The arenas of `c`, which must fit, on all its devices, in the order of its plan.
  std::vector<BufferView> arenas(const Compilation& c) const;
  /// The memory in which run_slots leaves outputs, by `Compilation::slot_offsets`. The host can access it.
  std::byte* results() const { return results_at_; }
  Buffer* results_buffer() const { return results_.get(); }
  /// Room for an input or output on a device whose runs take buffers; otherwise empty.
  BufferView input_room(std::size_t i) const { return room(inputs_, i); }
  BufferView output_room(std::size_t o) const { return room(outputs_, o); }
  /// True when runs read host inputs in place, so that these must not overlap memory that runs write.
  bool reads_inputs_in_place() const;
  /// True when the host's bytes lie in the arenas, which runs write, or in the results.
  bool in_arenas(const void* data, std::size_t bytes) const;
  bool in_results(const void* data, std::size_t bytes) const;

 private:
  using Buffers = std::vector<std::shared_ptr<Buffer>>;
  static BufferView room(const Buffers& list, std::size_t i) {
    return i < list.size() && list[i] ? BufferView(*list[i], 0, list[i]->bytes()) : BufferView();
  }
  /// The n-th arena of a device in a program uses the n-th buffer of that device here, whatever the program.
  using Arenas = std::map<std::shared_ptr<OpenDevice>, Buffers>;
  /// Calls f(device, its arenas so far, bytes of the arena) for each arena of `c`.
  template <class F>
  void each_arena(const Compilation& c, F f) const;
  std::shared_ptr<Buffer> take(std::size_t bytes, BufferUse use) const;
  std::size_t start(const Buffer& b) const;

  std::shared_ptr<OpenDevice> device_;
  std::size_t alignment_, spare_;
  Arenas arenas_;
  Buffers inputs_, outputs_;
  std::shared_ptr<Buffer> results_;
  std::byte* results_at_ = nullptr;
};

/// Throws the out-of-memory error for `what` of a graph.
[[noreturn]] void throw_no_room(const std::string& graph, const std::string& what, std::size_t bytes);

}  // namespace rlx
