// Runs programs on the arguments of a call.
#include "python/bindings/calls.h"

namespace rlx::python {
namespace {

// Points the views of the leaves at their dims. All dims have been appended, so these pointers stay valid.
void finish_views(CallScratch& s) {
  for (std::size_t i = 0; i < s.views.size(); ++i) {
    const std::size_t end = i + 1 < s.views.size() ? s.first_dim[i + 1] : s.dims.size();
    s.views[i].dims = {s.dims.data() + s.first_dim[i], end - s.first_dim[i]};
  }
}

}  // namespace

void view_tensor(CallScratch& s, const Tensor& t, TensorView& view) {
  view.dtype = t.dtype();
  for (const Dim& d : t.shape().dims()) s.dims.push_back(d.value());
  view.size_bytes = t.size_bytes();
  view.buffer = t.buffer().get();
  view.data = view.buffer ? nullptr : t.data();
}

bool view_buffer(CallScratch& s, nb::handle leaf, TensorView& view) {
  if (!PyObject_CheckBuffer(leaf.ptr()) || PyBytes_Check(leaf.ptr()) || PyByteArray_Check(leaf.ptr())) return false;
  Py_buffer b{};
  if (PyObject_GetBuffer(leaf.ptr(), &b, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  const char* format = b.format ? b.format : "B";
  const DType t = *format == 'f'   ? DType::F32
                  : *format == 'd' ? DType::F64
                  : *format == 'i' ? DType::I32
                  : *format == 'l' ? DType::I64
                                   : DType::Bool;
  const bool common = t != DType::Bool && format[1] == 0;
  if (!common || !PyBuffer_IsContiguous(&b, 'C') || reinterpret_cast<std::uintptr_t>(b.buf) % alignment_of(t) != 0) {
    PyBuffer_Release(&b);
    return false;
  }
  view.data = b.buf;
  view.dtype = t;
  view.size_bytes = static_cast<std::size_t>(b.len);
  s.dims.insert(s.dims.end(), b.shape, b.shape + b.ndim);
  s.buffers.push_back(b);
  return true;
}

void check_donated_once(const ProgramEntry& e, const CallScratch& s) {
  for (const std::size_t given : e.donated)
    for (std::size_t i = 0; i < s.leaves.size(); ++i)
      if (i != given && s.leaves[i].ptr() == s.leaves[given].ptr() && Py_TYPE(s.leaves[i].ptr()) == array_type)
        raise(
            ErrorCode::InvalidArgument,
            concat_text("one array is passed as '", e.inputs[given], "', which is donated, and as '", e.inputs[i], "'"),
            "pass a copy for one of them: rlx.array(x)");
}

void take_donated(const ProgramEntry& e, CallScratch& s) {
  for (const std::size_t i : e.donated)
    if (Py_TYPE(s.leaves[i].ptr()) == array_type) {
      Tensor& held = nb::inst_ptr<PyArray>(s.leaves[i])->tensor;
      s.tensors.push_back(std::move(held));
      held = Tensor();
    }
}

nb::object results_object(const TreeDef& tree, std::vector<nb::object>& outs) {
  if (tree.nodes.size() == 1 && tree.nodes[0].kind == TreeKind::Leaf) return std::move(outs[0]);
  return unflatten(tree, outs.data(), outs.size());
}

void set_program(ProgramEntry& e, std::shared_ptr<PyCompiled> program) {
  e.compiled = std::move(program);
  e.direct = e.compiled->on_host && e.compiled->static_shapes;
  for (const IoInfo& i : e.compiled->program.outputs()) e.outputs.push_back(i.shape);
  for (const IoInfo& i : e.compiled->program.inputs()) e.inputs.push_back(i.name);
}

nb::object run_direct(ProgramEntry& e, CallScratch& s, const TreeDef& tree) {
  finish_views(s);
  check_donated_once(e, s);
  std::vector<nb::object>& outs = s.outs;
  outs.resize(e.outputs.size());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const std::int64_t leaf = i < e.over.size() ? e.over[i] : -1;
    Tensor t;
    if (leaf >= 0 && Py_TYPE(s.leaves[static_cast<std::size_t>(leaf)].ptr()) == array_type) {
      // A donated array hands its bytes to the run. If another reference shares them, the run gets a copy.
      PyArray& from = *nb::inst_ptr<PyArray>(s.leaves[static_cast<std::size_t>(leaf)]);
      t = std::move(from.tensor);
      from.tensor = Tensor();
      if (t.num_elements()) s.views[static_cast<std::size_t>(leaf)].data = t.mutable_data();
    } else {
      t = Tensor::uninitialized(e.outputs[i]);
    }
    MutableTensorView view;
    view.data = t.num_elements() ? t.mutable_data() : nullptr;
    view.dtype = t.dtype();
    view.size_bytes = t.size_bytes();
    s.results.push_back(view);
    outs[i] = array_object(std::move(t), e.weak[i]);
  }
  take_donated(e, s);
  {
    const nb::gil_scoped_release free;
    const CtrlC interruptible(e.compiled->may_last);
    e.compiled->program.run_into(s.views, s.results);
  }
  return results_object(tree, outs);
}

}  // namespace rlx::python
