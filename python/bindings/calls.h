// What the calls of compiled functions and of programs share: a program with its runners, and what one call needs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "python/bindings/runtime.h"
#include "python/bindings/trees.h"

namespace rlx::python {

/// The class of arrays.
extern PyTypeObject* array_type;

/// One program of a function, for one signature.
struct ProgramEntry {
  std::shared_ptr<PyCompiled> first;
  std::vector<std::unique_ptr<CompiledGraph>> idle;  // clones, for calls that overlap; under the GIL
  bool first_idle = true;
  TreeDef out_tree;
  std::vector<Shape> outputs;        // static ones
  std::vector<bool> weak;            // of each output
  std::vector<std::string> inputs;   // names, in the order of the leaves
  std::vector<std::int64_t> over;    // of each output the donated leaf whose bytes it takes, or -1
  std::vector<std::size_t> donated;  // leaves whose arrays are gone after the call
  nb::object keeps;                  // what the program calls: Python functions
  bool direct = false;               // run_into: on the host, all extents known
  std::uint64_t used = 0;            // when, for the least recently used
};

/// What one call needs, kept for the next one of this thread.
struct CallScratch {
  std::string key;
  std::vector<nb::object> leaves;
  std::vector<TensorView> views;
  std::vector<std::size_t> first_dim;  // of each view in dims
  std::vector<std::int64_t> dims;
  std::vector<Py_buffer> buffers;
  std::vector<Tensor> tensors;  // copies, and what came by DLPack
  struct Number {
    std::size_t leaf, tensor, key;  // which leaf it is, its tensor, and the byte of its dtype in the key
  };
  std::vector<Number> numbers;  // Python's floats and complex numbers
  bool wide = false;            // an array of float64 or complex128 is among the leaves
  std::vector<MutableTensorView> results;
  std::vector<nb::object> outs;

  void clear() {
    key.clear();
    leaves.clear();
    views.clear();
    first_dim.clear();
    dims.clear();
    for (Py_buffer& b : buffers) PyBuffer_Release(&b);
    buffers.clear();
    tensors.clear();
    results.clear();
    outs.clear();
    numbers.clear();
    wide = false;
  }
};

class CallScratchHold {
 public:
  CallScratchHold() : s_(std::move(spare())) {
    if (!s_) s_ = std::make_unique<CallScratch>();
  }
  ~CallScratchHold() {
    s_->clear();
    spare() = std::move(s_);
  }
  CallScratch& operator*() { return *s_; }
  CallScratch* operator->() { return s_.get(); }

 private:
  static std::unique_ptr<CallScratch>& spare() {
    static thread_local std::unique_ptr<CallScratch> spare;
    return spare;
  }
  std::unique_ptr<CallScratch> s_;
};

/// A runner of an entry that nobody else uses, be it by a handle of `f.programs`; gives it back.
class Runner {
 public:
  explicit Runner(ProgramEntry& e) : e_(e) {
    if (e.first_idle && (turn_ = std::unique_lock(e.first->busy, std::try_to_lock))) {
      e.first_idle = false;
      e.first->running = true;
      program_ = &e.first->program;
    } else if (!e.idle.empty()) {
      own_ = std::move(e.idle.back());
      e.idle.pop_back();
      program_ = own_.get();
    } else {
      own_ = std::make_unique<CompiledGraph>(e.first->program.clone());
      program_ = own_.get();
    }
  }
  ~Runner() {
    if (own_) {
      e_.idle.push_back(std::move(own_));
    } else {
      e_.first_idle = true;
      e_.first->running = false;
    }
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  CompiledGraph& program() { return *program_; }

 private:
  ProgramEntry& e_;
  std::unique_lock<std::mutex> turn_;
  std::unique_ptr<CompiledGraph> own_;
  CompiledGraph* program_ = nullptr;
};

/// Where the bytes of a tensor are, and its extents as those of the next view.
void view_tensor(CallScratch& s, const Tensor& t, TensorView& view);
/// The same of an object that gives its bytes as they are: dense, aligned, of a common dtype. False: it does not.
bool view_buffer(CallScratch& s, nb::handle leaf, TensorView& view);
/// A donated array is an argument once: what is written over its bytes must not be read by another name.
void check_donated_once(const ProgramEntry& e, const CallScratch& s);
/// Takes the bytes of the donated arrays that still have them, so that they live as long as the call.
void take_donated(const ProgramEntry& e, CallScratch& s);
/// The tree of the results.
nb::object results_object(const ProgramEntry& e, std::vector<nb::object>& outs);
/// Runs an entry that is `direct` on the views of a call.
nb::object run_direct(ProgramEntry& e, CallScratch& s);

/// The part of the extension for programs of one signature.
void bind_program_calls(nb::module_& m);

}  // namespace rlx::python
