// Ops defined in Python. Their rules are Python functions of values; a kernel is a Python function of arrays, or a C
// function given by its address.
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "python/bindings/runtime.h"
#include "python/bindings/tracing.h"
#include "rlx/backends/cpu/custom_kernel.h"
#include "rlx/base/forks.h"
#include "rlx/ir/custom_op.h"

namespace rlx::python {
namespace {

// buffers: operands, then results. dims: the dimensions, by buffer. attrs: JSON text. A return value other than 0 fails
// the run.
using CKernel = std::int32_t (*)(void** buffers, const std::int64_t* const* dims, const char* attrs);

// A registered op. It lives as long as the process.
struct PyOp {
  std::string name, what, operand_names;
  nb::object shape, kernel, vjp, jvp, batch, decompose;
  CKernel c_kernel = nullptr;
};

ProcessMutex& ops_mutex() {
  static auto& mutex = *new ProcessMutex;
  return mutex;
}
std::map<std::string, PyOp*, std::less<>>& ops_by_name() {
  static auto* ops = new std::map<std::string, PyOp*, std::less<>>();
  return *ops;
}

const PyOp& op_of(const OpBox& box) {
  const std::lock_guard lock(ops_mutex());
  return *ops_by_name().at(box.as<ops::Custom>().name);
}

std::string_view attrs_text(const OpBox& box) {
  const auto& bytes = box.as<ops::Custom>().attrs;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

nb::object attrs_of(const OpBox& box) {
  const std::string_view text = attrs_text(box);
  if (text.empty()) return nb::dict();
  return nb::module_::import_("json").attr("loads")(nb::str(text.data(), text.size()));
}

// -- rules --

Result<Shapes> infer(const InferContext& c) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(c.box());
  nb::list operands;
  for (int i = 0; i < c.num_inputs(); ++i)
    operands.append(nb::make_tuple(dims_object(c.input(i).dims()), dtype_object(c.input(i).dtype())));
  nb::object result = op.shape(*operands, **nb::borrow<nb::kwargs>(attrs_of(c.box())));
  if (!nb::isinstance<nb::tuple>(result) && !nb::isinstance<nb::list>(result)) result = nb::make_tuple(result);
  Shapes out;
  for (nb::handle s : result) {
    if (!nb::hasattr(s, "shape") || !nb::hasattr(s, "dtype"))
      return Diagnostic{ErrorCode::InvalidArgument,
                        concat_text(op.name, ": its shape rule returns ", nb::repr(s).c_str()),
                        {},
                        "return an rlx.ShapeDtype, or a tuple of them"};
    out.emplace_back(dims_from(s.attr("shape")), dtype_from(s.attr("dtype")));
  }
  return out;
}

nb::list values_of(std::span<const Expr> values) { return value_list(values, user_line()); }

// The results of a rule: None, or one value for each operand.
void for_each_result(nb::object result, std::size_t count, const std::string& what,
                     const std::function<void(std::size_t, nb::handle)>& take) {
  if (!nb::isinstance<nb::tuple>(result) && !nb::isinstance<nb::list>(result)) result = nb::make_tuple(result);
  if (nb::len(result) != count)
    raise(ErrorCode::InvalidArgument, concat_text(what, " returns ", nb::len(result), " values, expected ", count));
  std::size_t i = 0;
  for (nb::handle h : result) {
    if (!h.is_none()) take(i, h);
    ++i;
  }
}

// Converts `h`, which a rule returned for the value `of`, to the dtype of `of`. The shapes must be equal.
Expr like(Graph& g, nb::handle h, const Expr& of, const char* rule, const PyOp& op, const char* what) {
  Expr e = operand_from(g, h, user_line(), nullptr, of.dtype());
  if (!(e.shape() == of.shape()))
    raise(ErrorCode::InvalidArgument,
          concat_text(rule, op.name, " returns a ", what, " ", e.shape(), " for ", of.shape()));
  return e;
}

void vjp(VjpContext& c) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(c.box());
  if (op.vjp.is_none()) detail::throw_no_rule("it was registered without a vjp rule");
  const Frame frame(c.graph());
  std::vector<Expr> outputs, cotangents;
  for (int r = 0; r < c.num_results(); ++r) {
    outputs.push_back(c.output(r));
    cotangents.push_back(c.cotangent(r));
  }
  const nb::object result = op.vjp(nb::tuple(values_of(cotangents)), nb::tuple(values_of(c.inputs())),
                                   nb::tuple(values_of(outputs)), **nb::borrow<nb::kwargs>(attrs_of(c.box())));
  for_each_result(result, static_cast<std::size_t>(c.num_inputs()), concat_text("the vjp rule of ", op.name),
                  [&](std::size_t i, nb::handle h) {
                    const int place = static_cast<int>(i);
                    if (c.wants(place))
                      c.accumulate(place, like(c.graph(), h, c.input(place), "the vjp rule of ", op, "cotangent"));
                  });
}

void jvp(JvpContext& c) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(c.box());
  if (op.jvp.is_none()) detail::throw_no_rule("it was registered without a jvp rule");
  const Frame frame(c.graph());
  std::vector<Expr> outputs, tangents;
  for (int r = 0; r < c.num_results(); ++r) outputs.push_back(c.output(r));
  for (int i = 0; i < c.num_inputs(); ++i) tangents.push_back(c.tangent(i));
  const nb::object result = op.jvp(nb::tuple(values_of(c.inputs())), nb::tuple(values_of(tangents)),
                                   nb::tuple(values_of(outputs)), **nb::borrow<nb::kwargs>(attrs_of(c.box())));
  for_each_result(result, static_cast<std::size_t>(c.num_results()), concat_text("the jvp rule of ", op.name),
                  [&](std::size_t r, nb::handle h) {
                    const int place = static_cast<int>(r);
                    c.set_tangent(place, like(c.graph(), h, c.output(place), "the jvp rule of ", op, "tangent"));
                  });
}

void decompose(DecomposeContext& c) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(c.box());
  const Frame frame(c.graph());
  const nb::object result = op.decompose(*values_of(c.inputs()), **nb::borrow<nb::kwargs>(attrs_of(c.box())));
  for_each_result(result, static_cast<std::size_t>(c.num_results()), op.name, [&](std::size_t r, nb::handle h) {
    c.set_result(static_cast<int>(r), operand_from(c.graph(), h, user_line()));
  });
}

// The batch rule. "broadcast": the op accepts operands with leading batch axes. Else a Python function of (operands,
// batched, size).
void batch(BatchContext& c) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(c.box());
  if (op.batch.is_none()) detail::throw_no_rule("it was registered without a batch rule");
  if (PyUnicode_Check(op.batch.ptr())) return c.emit_lifted(c.box());
  const Frame frame(c.graph());
  std::vector<Expr> lifted;
  nb::list batched;
  for (int i = 0; i < c.num_inputs(); ++i) {
    lifted.push_back(c.input(i));
    batched.append(c.is_batched(i));
  }
  const nb::object result = op.batch(nb::tuple(values_of(lifted)), nb::tuple(batched), dim_object(c.batch_size()),
                                     **nb::borrow<nb::kwargs>(attrs_of(c.box())));
  for_each_result(
      result, static_cast<std::size_t>(c.num_results()), concat_text("the batch rule of ", op.name),
      [&](std::size_t r, nb::handle h) { c.set_result(static_cast<int>(r), operand_from(c.graph(), h, user_line())); });
}

// -- kernels --

Diagnostic bad_result(const PyOp& op, std::size_t r, std::string problem) {
  return {ErrorCode::InvalidArgument,
          concat_text(op.name, ": result ", r, " of its kernel ", problem),
          {},
          "the kernel must return arrays with the shapes and dtypes of its shape rule"};
}

// Calls the kernel on copies of the operands, which it may keep. Its results are copied to the outputs.
std::optional<Diagnostic> call_python(const OpBox& box, std::span<const Tensor> operands,
                                      std::span<const MutableTensorView> results) {
  const nb::gil_scoped_acquire gil;
  const PyOp& op = op_of(box);
  try {
    nb::list args;
    for (const Tensor& t : operands) args.append(array_object(t).attr("__array__")());
    nb::object made = op.kernel(*args, **nb::borrow<nb::kwargs>(attrs_of(box)));
    if (!nb::isinstance<nb::tuple>(made) && !nb::isinstance<nb::list>(made)) made = nb::make_tuple(made);
    if (nb::len(made) != results.size())
      return Diagnostic{
          ErrorCode::InvalidArgument,
          concat_text(op.name, ": its kernel must return ", results.size(), " arrays, it returned ", nb::len(made)),
          {},
          {}};
    std::size_t r = 0;
    for (nb::handle h : made) {
      const MutableTensorView& to = results[r];
      const bool number = weak_scalar(h).has_value();
      const Tensor t = tensor_from(h, op.name.c_str(), true, number ? std::optional(to.dtype) : std::nullopt).to_host();
      const std::vector<std::int64_t> dims(to.dims.begin(), to.dims.end());
      if (t.dtype() != to.dtype || t.dims() != dims)
        return bad_result(op, r,
                          concat_text("is ", t.shape(), ", expected ", dims_text(to.dims), " ", dtype_name(to.dtype)));
      if (t.size_bytes()) std::memcpy(to.data, t.data(), t.size_bytes());
      ++r;
    }
    return std::nullopt;
  } catch (nb::python_error& e) {
    return kept_exception(e, concat_text("the kernel of ", op.name));
  } catch (const Error& e) {
    return e.diagnostic();
  }
}

std::optional<Diagnostic> run_kernel(const KernelCall& call) {
  const PyOp& op = op_of(call.op);
  if (op.c_kernel) {
    std::vector<void*> buffers;
    std::vector<const std::int64_t*> dims;
    for (const KernelInput& x : call.inputs) {
      buffers.push_back(const_cast<void*>(x.data()));  // NOLINT(const-cast): the documented signature has one list
      dims.push_back(x.dims().data());
    }
    for (const KernelOutput& y : call.outputs) {
      buffers.push_back(y.data());
      dims.push_back(y.dims().data());
    }
    const std::string attrs(attrs_text(call.op));
    const std::int32_t code = op.c_kernel(buffers.data(), dims.data(), attrs.c_str());
    if (code == 0) return std::nullopt;
    return Diagnostic{ErrorCode::InvalidArgument, concat_text("the kernel of ", op.name, " returned ", code), {}, {}};
  }
  std::vector<Tensor> operands;
  for (const KernelInput& x : call.inputs) {
    const Dims dims(x.dims().begin(), x.dims().end());
    operands.push_back(Tensor::copy_of(x.data(), Shape(dims, x.dtype())));
  }
  std::vector<MutableTensorView> results;
  for (const KernelOutput& y : call.outputs) {
    MutableTensorView v;
    v.data = y.data();
    v.dtype = y.dtype();
    v.dims = y.dims();
    results.push_back(v);
  }
  return call_python(call.op, operands, results);
}

void reference(const RefArgs& a) {
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<KernelInput> inputs;
  std::vector<KernelOutput> outputs;
  for (const Tensor& t : a.inputs) dims.push_back(t.dims());
  for (const Tensor& t : a.outputs) dims.push_back(t.dims());
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    TensorView v = a.inputs[i].view();
    v.dims = dims[i];
    inputs.emplace_back(static_cast<int>(i), v);
  }
  for (std::size_t r = 0; r < a.outputs.size(); ++r) {
    MutableTensorView v;
    v.data = a.outputs[r].num_elements() ? a.outputs[r].mutable_data() : nullptr;
    v.dtype = a.outputs[r].dtype();
    v.dims = dims[a.inputs.size() + r];
    v.size_bytes = a.outputs[r].size_bytes();
    outputs.emplace_back(static_cast<int>(r), v);
  }
  if (auto d = run_kernel({a.box, inputs, outputs})) throw Error(*std::move(d));
}

void register_python_op(const std::string& name, const std::string& what, int operands, nb::object shape,
                        nb::object kernel, std::uintptr_t address, nb::object vjp_rule, nb::object jvp_rule,
                        nb::object batch_rule, nb::object decomposition, bool ordered) {
  auto op = std::make_unique<PyOp>();
  op->name = name;
  op->what = what;
  op->shape = std::move(shape);
  op->kernel = std::move(kernel);
  op->c_kernel = reinterpret_cast<CKernel>(address);
  op->vjp = std::move(vjp_rule);
  op->jvp = std::move(jvp_rule);
  op->batch = std::move(batch_rule);
  op->decompose = std::move(decomposition);
  const bool composite = !op->decompose.is_none(), has_kernel = !op->kernel.is_none() || op->c_kernel;
  OpDef def{
      .kind = OpKind::Custom,
      .name = op->name,
      .what = op->what,
      .inputs = operands < 0 ? variadic_inputs("x", 0) : variadic_inputs("x", operands),
      .attrs = {},
      .level = Level::Mir,
      .leaf = LeafKind::None,
      .elementwise = ElementwiseKind::No,
      .view = ViewKind::None,
      .precision = PrecisionCategory::Stated,
      .infer = infer,
      .decompose = composite ? Rule<void(DecomposeContext&)>(decompose) : none("its kernel is a Python function"),
      .vjp = !op->vjp.is_none() ? Rule<void(VjpContext&)>(vjp)
             : composite        ? Rule<void(VjpContext&)>(by_decomposition)
                                : Rule<void(VjpContext&)>(none("it was registered without a vjp rule")),
      .jvp = !op->jvp.is_none() ? Rule<void(JvpContext&)>(jvp)
             : composite        ? Rule<void(JvpContext&)>(by_decomposition)
                                : Rule<void(JvpContext&)>(none("it was registered without a jvp rule")),
      .batch = !op->batch.is_none() ? Rule<void(BatchContext&)>(batch)
               : composite          ? Rule<void(BatchContext&)>(by_decomposition)
                                    : Rule<void(BatchContext&)>(none("it was registered without a batch rule")),
      .reference = has_kernel ? Rule<void(const RefArgs&)>(reference) : Rule<void(const RefArgs&)>(by_decomposition),
      .cost = moves_bytes};
  if (ordered) def.trait = OpTrait::Ordered;
  {
    const std::lock_guard lock(ops_mutex());
    if (!ops_by_name().emplace(op->name, op.get()).second)
      raise(ErrorCode::InvalidArgument, concat_text("an op '", name, "' is registered already"),
            "ops live as long as the process: choose another name");
  }
  try {
    register_op(def);
  } catch (...) {
    const std::lock_guard lock(ops_mutex());
    ops_by_name().erase(op->name);
    throw;
  }
  if (has_kernel) register_cpu_kernel(op->name, {run_kernel, nullptr});
  (void)op.release();  // for the life of the process
}

nb::object add_custom(const std::string& name, nb::sequence operands, const std::string& attrs) {
  const SourceLoc loc = user_line();
  Graph* g = traced_graph();
  for (std::size_t i = 0; !g && i < nb::len(operands); ++i)
    if (nb::isinstance<PyValue>(operands[i])) g = &graph_of(nb::cast<const PyValue&>(operands[i]));
  if (!g) raise(ErrorCode::InvalidArgument, "there is no graph to add to");
  std::vector<Value> own;
  for (std::size_t i = 0; i < nb::len(operands); ++i) own.push_back(operand_from(*g, operands[i], loc).value());
  const auto* bytes = reinterpret_cast<const std::byte*>(attrs.data());
  const Expr made = g->add(OpBox(ops::Custom{name, {bytes, bytes + attrs.size()}}), std::move(own), loc);
  const std::uint32_t results = g->node(made.value().node).num_results();
  if (results == 1) return value_object(made, loc);
  nb::list out;
  for (std::uint32_t r = 0; r < results; ++r) out.append(value_object(made.result(r), loc));
  return nb::tuple(out);
}

}  // namespace

void bind_custom(nb::module_& m) {
  m.def("register_op", &register_python_op, nb::arg("name"), nb::arg("what"), nb::arg("operands"), nb::arg("shape"),
        nb::arg("kernel").none(), nb::arg("address"), nb::arg("vjp").none(), nb::arg("jvp").none(),
        nb::arg("batch").none(), nb::arg("decompose").none(), nb::arg("ordered"));
  m.def("add_custom", &add_custom);
}

}  // namespace rlx::python
