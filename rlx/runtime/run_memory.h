// Memory of one runner on its device: arenas, and the places that inputs and outputs of the host pass through.
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

struct CompiledProgram;

// -- values on their way. Only this file knows how devices keep memory (`MemoryModel`). --

/// Where a run finds an input: a device tensor's buffer, else the host's own bytes where kernels reach them, else a
/// copy, in `room` or in a buffer of its own. On an opaque device `holder` gets the buffer.
RunSlot input_slot(OpenDevice& device, Stream& stream, const TensorView& value, const Shape& shape,
                   const BufferView& room, std::shared_ptr<Buffer>& holder);
/// Where a run leaves an output for the host.
RunSlot output_slot(OpenDevice& device, void* data, std::size_t bytes, const BufferView& room,
                    std::shared_ptr<Buffer>& holder);
/// Brings an output from there to the host's bytes, which may be those of a read-back buffer.
void fetch_output(OpenDevice& device, Stream& stream, const RunSlot& from, const Shape& shape, void* data,
                  Buffer* readback);
/// Where a run leaves an output that stays on the device: in `value`, made as far as it can be before the run.
RunSlot value_slot(OpenDevice& device, const Shape& shape, Tensor& value, std::shared_ptr<Buffer>& holder);
/// After it was submitted: `value` is the output, written by `done`.
void keep_value(const RunSlot& from, const Shape& shape, const Event& done, Tensor& value);

/// The bytes of a state between runs; none yet on an opaque device, where each write makes them.
std::shared_ptr<Buffer> state_buffer(OpenDevice& device, const Shape& shape);
RunSlot state_slot(OpenDevice& device, std::shared_ptr<Buffer>& buffer, const Shape& shape);
/// A state whose bytes nobody may read any more: on an opaque device they make room for the next value.
void drop_state_value(const OpenDevice& device, std::shared_ptr<Buffer>& buffer, bool& valid);
/// Writes the bytes of a state from `offset` on behind what the stream holds: `bytes` of them from `data`, or zeros for
/// null. Where the device takes no such part (an opaque one, or one that copies whole granules), bytes around it are
/// fetched, changed and put back. `valid` is false from the first byte that is written over on.
void write_state_bytes(OpenDevice& device, Stream& stream, std::shared_ptr<Buffer>& buffer, const Shape& shape,
                       std::size_t granule, std::size_t offset, std::size_t bytes, const std::byte* data, bool& valid);
/// Reads such bytes and waits for them.
void read_state_bytes(OpenDevice& device, Stream& stream, Buffer& buffer, const Shape& shape, std::size_t granule,
                      std::size_t offset, std::span<std::byte> to);
/// A state's bytes for another runner: a copy, or the same ones where runs replace buffers and never change them.
std::shared_ptr<Buffer> copied_state(OpenDevice& device, Stream& stream, const std::shared_ptr<Buffer>& buffer,
                                     const Shape& shape);

/// Reads I64 scalars that lie at `from` and waits for them.
void read_scalars(OpenDevice& device, Stream& stream, std::span<const BufferView> from, std::span<std::int64_t> to);

/// The copy on a device of bytes that do not change while it is there.
struct Resident {
  std::shared_ptr<Buffer> buffer;
  Event there{};  // when it holds them
};
/// Where kernels read `bytes`: there where they reach them, else in the copy, which is made now when there is none.
BufferView resident_on(OpenDevice& device, Stream& stream, const Tensor& bytes, Resident& copy);
/// The value on the device: itself where kernels reach memory of the host, else a copy, which is there when the device
/// comes to use it.
Tensor value_on(OpenDevice& device, const Tensor& here);

/// Runs a static program without params or states once on values of the host.
std::vector<Tensor> run_once(OpenDevice& device, Stream& stream, const ExecutableGraph& code,
                             std::span<const Tensor> inputs);

/// Grows to the largest program used so far; what it holds stays where it is until then.
class RunMemory {
 public:
  RunMemory(std::shared_ptr<OpenDevice> device, std::size_t alignment);
  bool fits(const CompiledProgram& c) const;
  /// Takes room for `c`, as far as there is too little. OutOfMemory names `graph`; then nothing has changed.
  void reserve(const CompiledProgram& c, const std::string& graph);
  /// The arenas of `c`, which fits, on all its devices, in the order of its plan.
  std::vector<BufferView> arenas(const CompiledProgram& c) const;
  /// Where run_slots leaves outputs, by `CompiledProgram::slot_offsets`: memory that the host reaches.
  std::byte* results() const { return results_at_; }
  Buffer* results_buffer() const { return results_.get(); }
  /// Room for an input or output on a device whose runs are given buffers, else empty.
  BufferView input_room(std::size_t i) const { return room(inputs_, i); }
  BufferView output_room(std::size_t o) const { return room(outputs_, o); }
  /// True when runs read inputs of the host where they are, so that these must not lie where runs write.
  bool reads_inputs_in_place() const;
  /// True when the host's bytes lie in the arenas, which runs write, or in the results.
  bool in_arenas(const void* data, std::size_t bytes) const;
  bool in_results(const void* data, std::size_t bytes) const;

 private:
  using Buffers = std::vector<std::shared_ptr<Buffer>>;
  static BufferView room(const Buffers& list, std::size_t i) {
    return i < list.size() && list[i] ? BufferView(*list[i], 0, list[i]->bytes()) : BufferView();
  }
  /// The n-th arena of each device of a program is the n-th of the device here, whichever program it is.
  using Arenas = std::map<std::shared_ptr<OpenDevice>, Buffers>;
  /// Calls f(device, arenas of it so far, bytes of the arena) for each arena of `c`.
  template <class F>
  void each_arena(const CompiledProgram& c, F f) const;
  std::shared_ptr<Buffer> take(std::size_t bytes, BufferUse use) const;
  std::size_t start(const Buffer& b) const;

  std::shared_ptr<OpenDevice> device_;
  std::size_t alignment_, spare_;
  Arenas arenas_;
  Buffers inputs_, outputs_;
  std::shared_ptr<Buffer> results_;
  std::byte* results_at_ = nullptr;
};

/// The error of a machine without memory for `what` of a graph.
[[noreturn]] void throw_no_room(const std::string& graph, const std::string& what, std::size_t bytes);

}  // namespace rlx
