// Checks ops on their samples.
#include "rlx/testing/check_op.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "rlx/ir/custom_op.h"
#include "rlx/ir/evaluate.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/visit.h"
#include "rlx/testing/drawn_values.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"

namespace rlx::testing {
namespace {

using Tensors = std::vector<Tensor>;

std::complex<double> element_of(const Tensor& t, std::int64_t i) {
  return load_element<std::complex<double>>(t.data(), t.dtype(), i);
}

// The largest |got - want| / max(1, |want|) over real and imaginary parts. Infinite if shapes differ, or if only one of
// two numbers is NaN or infinite.
double apart(const Tensor& got, const Tensor& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (!(got.shape() == want.shape())) return kInfinite;
  double worst = 0;
  for (std::int64_t i = 0; i < got.num_elements(); ++i) {
    const std::complex<double> a = element_of(got, i), b = element_of(want, i);
    const double unit = std::isfinite(std::abs(b)) ? std::max(1.0, std::abs(b)) : 1;
    for (const auto& [x, y] : {std::pair{a.real(), b.real()}, std::pair{a.imag(), b.imag()}}) {
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double distance = std::abs(x - y) / unit;
      worst = std::isnan(distance) ? kInfinite : std::max(worst, distance);
    }
  }
  return worst;
}

// The rounding error that a result of this dtype may have.
double rounding_of(DType t) {
  switch (t) {
    case DType::F64:
    case DType::C128: return 64 * 0x1p-53;
    case DType::F32:
    case DType::C64: return 64 * 0x1p-24;
    case DType::F16: return 64 * 0x1p-11;
    case DType::BF16: return 64 * 0x1p-8;
    default: return is_int(t) || t == DType::Bool ? 0 : 0.5;
  }
}

// Re(sum(a * b)), without conjugation: the pairing of cotangents and tangents.
double paired(const Tensor& a, const Tensor& b) {
  std::complex<double> sum = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) sum += element_of(a, i) * element_of(b, i);
  return sum.real();
}

Tensor moved(const Tensor& a, double step, const Tensor& by) {
  Tensor out = Tensor::zeros(a.shape());
  for (std::int64_t i = 0; i < a.num_elements(); ++i)
    store_element(out.mutable_data(), a.dtype(), i, element_of(a, i) + step * element_of(by, i));
  return out;
}

// Floats converted to F64, complex numbers to C128.
Tensor f64_values(const Tensor& t) {
  const DType to = is_complex(t.dtype()) ? DType::C128 : is_float(t.dtype()) ? DType::F64 : t.dtype();
  Tensor out = Tensor::zeros(t.shape().with_dtype(to));
  if (to == t.dtype()) return t;
  for (std::int64_t i = 0; i < t.num_elements(); ++i) store_element(out.mutable_data(), to, i, element_of(t, i));
  return out;
}

std::string operand_of(std::size_t k) { return concat_text("x", k); }

Graph graph_of_sample(const Sample& sample) {
  Graph g("sample");
  std::vector<Value> operands, outputs;
  for (const SampleInput& in : sample.inputs) operands.push_back(g.input(operand_of(operands.size()), in.shape));
  const Expr e = g.add(sample.op, operands);
  for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) outputs.push_back(e.result(r));
  g.set_outputs(std::move(outputs));
  return g;
}

NamedTensors bound_to(const Tensors& operands) {
  NamedTensors out;
  for (std::size_t k = 0; k < operands.size(); ++k) out.emplace(operand_of(k), operands[k]);
  return out;
}

template <class Fn>
bool exists(const Rule<Fn>& rule) {
  return rule.has() || rule.derived();
}

class Checker {
 public:
  Checker(const OpDef& def, const OpCheckOptions& options, OpCheck& found)
      : def_(def), options_(options), found_(found) {}

  void run(const Sample& sample) {
    name_ = sample.name;
    const Graph g = graph_of_sample(sample);
    const Tensors operands = draw_operands(sample);
    const NamedTensors values = bound_to(operands);
    const Tensors want = evaluate(g, values);
    if (!sample.inputs.empty() && def_.decompose.has()) {
      compare("decomposition (fusable)", decomposed(sample, values, FusionPolicy::Fusable), want);
      compare("decomposition (direct)", decomposed(sample, values, FusionPolicy::Direct), want);
    }
    if (def_.level != Level::Lir && !def_.is_leaf())
      compare("compiled graph", Session(options_.device).compile(Graph(g)).run_typed(values), want);
    if (sample.differentiable) derivatives(g, operands);
    if (!sample.inputs.empty() && exists(def_.batch)) batches(sample, g);
  }
  void problem(const std::string& text) { found_.problems.push_back(concat_text("sample '", name_, "': ", text)); }

 private:
  // Counts one comparison and records a problem if it failed. `text` describes it.
  void expect(bool good, const std::string& text) {
    ++found_.checks;
    if (!good) problem(text);
  }
  void compare(const std::string& what, const Tensors& got, const Tensors& want) {
    if (got.size() != want.size())
      return expect(false, concat_text(what, ": ", got.size(), " results, not ", want.size()));
    for (std::size_t r = 0; r < got.size(); ++r) {
      if (!(got[r].shape() == want[r].shape())) {
        expect(false, concat_text(what, ": result ", r, " is ", got[r].shape(), ", not ", want[r].shape()));
        continue;
      }
      const double distance = apart(got[r], want[r]), allowed = tolerance(got[r].dtype());
      expect(distance <= allowed,
             concat_text(what, ": result ", r, " is ", distance, " away from the reference, more than ", allowed));
    }
  }
  double tolerance(DType t) const {
    const double own = rounding_of(t);
    return own != 0 && options_.tolerance > 0 ? options_.tolerance : own;
  }

  static Tensors decomposed(const Sample& sample, const NamedTensors& values, FusionPolicy policy) {
    Graph g("decomposed");
    std::vector<Expr> operands;
    for (const SampleInput& in : sample.inputs) operands.push_back(g.input(operand_of(operands.size()), in.shape));
    g.set_outputs(decompose_into(g, sample.op, operands, policy));
    return evaluate(g, values);
  }

  // Tangents of the outputs of `g` in the direction u of the named operands.
  static Tensors tangents(const Graph& g, NamedTensors values, const std::vector<std::string>& names,
                          const Tensors& u) {
    const TransformResult r = jvp(g, {names.begin(), names.end()});
    for (std::size_t k = 0; k < u.size(); ++k) values[r.added_inputs[k]] = u[k];
    const Tensors all = evaluate(r.graph, values);
    return {all.begin() + static_cast<std::ptrdiff_t>(g.outputs().size()), all.end()};
  }

  void derivatives(const Graph& plain, Tensors operands) {
    if (!exists(def_.jvp) && !exists(def_.vjp)) return;
    Graph g(plain);
    const bool wide = attempt([&] { return to_f64(plain); }).ok();
    if (wide) {
      g = to_f64(plain);
      for (Tensor& t : operands) t = f64_values(t);
    }
    // The error of a central difference: third order in the step, plus rounding divided by the step.
    const double step = wide ? 1e-5 : 5e-3, allowed = wide ? 1e-6 : 5e-3;
    const NamedTensors values = bound_to(operands);
    std::vector<std::string> names;
    std::vector<std::size_t> outputs;
    Tensors u, cotangents;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (is_inexact(operands[k].dtype())) {
        names.push_back(operand_of(k));
        u.push_back(draw(operands[k].shape(), Fill::Unit, 1, 77 + k));
      }
    for (std::size_t r = 0; r < g.outputs().size(); ++r)
      if (const Shape& s = g.shape(g.outputs()[r]); is_inexact(s.dtype())) {
        outputs.push_back(r);
        cotangents.push_back(draw(s, Fill::Unit, 1, 555 + r));
      }
    if (names.empty() || outputs.empty()) return;
    NamedTensors up = values, down = values;
    for (std::size_t k = 0; k < names.size(); ++k) {
      up[names[k]] = moved(values.at(names[k]), step, u[k]);
      down[names[k]] = moved(values.at(names[k]), -step, u[k]);
    }
    const Tensors above = evaluate(g, up), below = evaluate(g, down);
    double from_differences = 0, scale = 1;
    Tensors differences;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Tensor zero = Tensor::zeros(above[outputs[k]].shape());
      differences.push_back(moved(zero, 1 / (2 * step), moved(above[outputs[k]], -1, below[outputs[k]])));
      from_differences += paired(cotangents[k], differences.back());
      scale += std::abs(paired(cotangents[k], differences.back()));
    }
    double from_jvp = 0;
    if (exists(def_.jvp)) {
      const Tensors t = tangents(g, values, names, u);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        const double distance = apart(t[outputs[k]], differences[k]);
        from_jvp += paired(cotangents[k], t[outputs[k]]);
        expect(distance <= allowed, concat_text("jvp: the tangent of result ", outputs[k], " is ", distance,
                                                " away from the finite difference"));
      }
    }
    if (!exists(def_.vjp)) return;
    const GradResult r = vjp(g, {names.begin(), names.end()});
    NamedTensors with = values;
    for (std::size_t k = 0; k < cotangents.size(); ++k) with[r.added_inputs[k]] = cotangents[k];
    const Tensors gradients = evaluate(r.graph, with);
    double from_vjp = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Tensor& gradient = gradients[g.outputs().size() + k];
      if (!(gradient.shape() == u[k].shape()))
        return expect(false, concat_text("vjp: the cotangent of ", names[k], " is ", gradient.shape()));
      from_vjp += paired(gradient, u[k]);
      scale += std::abs(paired(gradient, u[k]));
    }
    expect(std::abs(from_vjp - from_differences) <= allowed * scale,
           concat_text("vjp: ", from_vjp, " in a direction where the finite difference is ", from_differences));
    if (exists(def_.jvp))
      expect(std::abs(from_vjp - from_jvp) <= (wide ? 1e-9 : 1e-4) * scale,
             concat_text("vjp gives ", from_vjp, ", but jvp gives ", from_jvp));
  }

  void batches(const Sample& sample, const Graph& g) {
    constexpr std::int64_t kBatch = 3;
    const auto packed = [](const Shape& s) { return dtype_bits(s.dtype()) < 8; };  // rows are not whole bytes
    for (const SampleInput& in : sample.inputs)
      if (packed(in.shape)) return;
    for (const Value v : g.outputs())
      if (packed(g.shape(v))) return;
    std::vector<Tensors> slices;
    for (std::int64_t b = 0; b < kBatch; ++b) slices.push_back(draw_operands(sample, static_cast<std::uint64_t>(b)));
    const std::size_t count = sample.inputs.size();
    for (std::size_t which = 0; which <= (count > 1 ? count : 0); ++which) {  // the last iteration batches all operands
      const auto batched = [&](std::size_t k) { return which == count || which == k; };
      InAxes axes;
      NamedTensors values;
      std::string text = "vmap over";
      for (std::size_t k = 0; k < count; ++k) {
        if (!batched(k)) {
          values.emplace(operand_of(k), slices[0][k]);
          continue;
        }
        Dims dims = sample.inputs[k].shape.dims();
        dims.insert(dims.begin(), Dim(kBatch));
        Tensor stack = Tensor::zeros(Shape(dims, sample.inputs[k].shape.dtype()));
        std::byte* to = stack.mutable_data();
        for (const Tensors& slice : slices) to = std::copy_n(slice[k].data(), slice[k].size_bytes(), to);
        axes.emplace(operand_of(k), 0);
        values.emplace(operand_of(k), std::move(stack));
        text += " " + operand_of(k);
      }
      const Tensors all = evaluate(vmap(g, axes, kBatch).graph, values);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        Tensors operands, rows;
        for (std::size_t k = 0; k < count; ++k)
          operands.push_back(slices[batched(k) ? static_cast<std::size_t>(b) : 0][k]);
        const Tensors want = evaluate(g, bound_to(operands));
        for (std::size_t r = 0; r < all.size(); ++r)
          rows.push_back(all[r].rows(b, 1).reshaped(g.shape(g.outputs()[r]).static_dims()));
        compare(concat_text(text, ", slice ", b), rows, want);
      }
    }
  }

  const OpDef& def_;
  const OpCheckOptions& options_;
  OpCheck& found_;
  std::string name_;
};

}  // namespace

OpCheck check_op(const OpDef& def, const OpCheckOptions& options) {
  OpCheck found;
  Checker checker(def, options, found);
  for (const Sample& sample : op_samples(def)) {
    ++found.samples;
    try {
      checker.run(sample);
    } catch (const Error& e) {
      checker.problem(e.what());
    }
  }
  return found;
}

OpCheck check_op(std::string_view name, const OpCheckOptions& options) {
  if (const OpDef* def = registered_op(name)) return check_op(*def, options);
  for (const OpDef* def : all_op_defs())
    if (def->name == name) return check_op(*def, options);
  throw Error(ErrorCode::NotFound, concat_text("check_op: there is no op '", name, "'"),
              "call register_op with its OpDef first");
}

}  // namespace rlx::testing
