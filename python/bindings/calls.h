// Shared by calls of compiled functions and of programs: a program, and the scratch memory of a call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "python/bindings/runtime.h"
#include "python/bindings/trees.h"

namespace rlx::python {

/// The Python class of arrays.
extern PyTypeObject* array_type;

/// One compiled program of a function, for one signature of the arguments.
struct ProgramEntry {
  ProgramEntry() = default;
  ProgramEntry(const ProgramEntry&) = delete;
  ProgramEntry& operator=(const ProgramEntry&) = delete;
  std::shared_ptr<PyCompiled> compiled;
  TreeDef out_tree;
  std::vector<Shape> outputs;        // static ones
  std::vector<bool> weak;            // of each output
  std::vector<std::string> inputs;   // input names, in the order of the leaves
  std::vector<std::int64_t> over;    // for each output, the donated leaf whose bytes it reuses, or -1
  std::vector<std::size_t> donated;  // leaves that the call consumes
  nb::object keeps;                  // Python functions that the program calls
  bool direct = false;               // run_into applies: host memory, static shapes
  std::uint64_t used = 0;            // time of the last use, for eviction
};

/// Scratch memory of one call, kept for the next call of this thread.
struct CallScratch {
  std::string key;
  std::vector<nb::object> leaves;
  std::vector<TensorView> views;
  std::vector<std::size_t> first_dim;  // offset of the dims of each view
  std::vector<std::int64_t> dims;
  std::vector<Py_buffer> buffers;
  std::vector<Tensor> tensors;  // owners of copies and of DLPack imports
  struct Number {
    std::size_t leaf, tensor, key;  // the leaf, its tensor, and the byte of its dtype in the key
  };
  std::vector<Number> numbers;  // Python floats and complex numbers
  bool wide = false;            // one leaf is an array of float64 or complex128
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

/// Appends the view of a tensor: its data pointer and its extents.
void view_tensor(CallScratch& s, const Tensor& t, TensorView& view);
/// The same for an object that exposes its bytes directly: dense, aligned, of a common dtype. Returns false for other
/// objects.
bool view_buffer(CallScratch& s, nb::handle leaf, TensorView& view);
/// Throws if a donated array is passed twice: a result may overwrite its bytes while another argument reads them.
void check_donated_once(const ProgramEntry& e, const CallScratch& s);
/// Takes the bytes of the donated arrays that still hold them, so that they live as long as the call.
void take_donated(const ProgramEntry& e, CallScratch& s);
/// The results as a tree.
nb::object results_object(const TreeDef& tree, std::vector<nb::object>& outs);
/// Runs an entry with `direct` set on the views of a call. The results get the structure of `tree`.
nb::object run_direct(ProgramEntry& e, CallScratch& s, const TreeDef& tree);
/// Sets the program of an entry, with what a call needs to know of it.
void set_program(ProgramEntry& e, std::shared_ptr<PyCompiled> program);

/// The result of a call of `compiled`, a compiled function, on arrays and small numbers, if its program is kept. Null
/// if it is not, or while a function is traced; `failed`: the run failed, and the Python error is set.
PyObject* call_known(nb::handle compiled, std::span<PyObject* const> args, bool& failed) noexcept;

/// Binds the operators of arrays.
void bind_operators(nb::module_& m);
/// Binds programs of one signature.
void bind_program_calls(nb::module_& m);

}  // namespace rlx::python
