// Ops whose reference rule is their decomposition, compared with plain formulas in F64: every sample of each.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "rlx/ir/math/threefry.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/conv.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/norm.h"
#include "rlx/ir/ops/reduce.h"
#include "tests/support/closeness.h"
#include "tests/support/samples.h"

namespace rlx::test {
namespace {

// A dense F64 array with the few operations that the formulas use.
struct Array {
  std::vector<std::int64_t> dims;
  std::vector<double> v;
  std::int64_t last() const { return dims.back(); }
  std::int64_t rows() const { return last() == 0 ? 0 : static_cast<std::int64_t>(v.size()) / last(); }
  double& at(std::int64_t row, std::int64_t i) { return v[static_cast<std::size_t>(row * last() + i)]; }
  double at(std::int64_t row, std::int64_t i) const { return v[static_cast<std::size_t>(row * last() + i)]; }
};
using Arrays = std::vector<Array>;

Array from(const Tensor& t) { return {t.dims(), t.to_f64()}; }

Array map(Array x, const std::function<double(double)>& f) {
  for (double& e : x.v) e = f(e);
  return x;
}
// A function of two arrays with NumPy broadcasting.
Array zip(const Array& a, const Array& b, const std::function<double(double, double)>& f) {
  const std::size_t rank = std::max(a.dims.size(), b.dims.size());
  Array out;
  out.dims.resize(rank);
  const auto extent = [&](const Array& x, std::size_t axis) {
    return axis + x.dims.size() < rank ? 1 : x.dims[axis + x.dims.size() - rank];
  };
  std::size_t n = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    out.dims[i] = extent(a, i) == 1 ? extent(b, i) : extent(a, i);
    n *= static_cast<std::size_t>(out.dims[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto index = [&](const Array& x) {
      std::size_t rest = i, at = 0, step = 1;
      for (std::size_t axis = rank; axis-- > 0;) {
        const auto here = rest % static_cast<std::size_t>(out.dims[axis]);
        rest /= static_cast<std::size_t>(out.dims[axis]);
        if (axis + x.dims.size() < rank) continue;
        if (extent(x, axis) != 1) at += here * step;
        step *= static_cast<std::size_t>(extent(x, axis));
      }
      return at;
    };
    out.v.push_back(f(a.v[index(a)], b.v[index(b)]));
  }
  return out;
}
Array plus(const Array& a, const Array& b) {
  return zip(a, b, [](double x, double y) { return x + y; });
}
Array times(const Array& a, const Array& b) {
  return zip(a, b, [](double x, double y) { return x * y; });
}
// [.., K] x [K, N]
Array matmul(const Array& x, const Array& w) {
  Array out{x.dims, {}};
  const std::int64_t k = w.dims[0], n = w.dims[1];
  out.dims.back() = n;
  const std::int64_t rows = k == 0 ? 0 : static_cast<std::int64_t>(x.v.size()) / k;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += x.at(r, i) * w.at(i, j);
      out.v.push_back(sum);
    }
  return out;
}
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double function(ActivationKind fn, double x) {
  switch (fn) {
    case ActivationKind::Gelu: return gelu(x);
    case ActivationKind::GeluApprox:
      return x / (1 + std::exp(-2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case ActivationKind::Silu: return silu(x);
    case ActivationKind::Relu: return std::max(x, 0.0);
    case ActivationKind::Sigmoid: return 1 / (1 + std::exp(-x));
    case ActivationKind::Tanh: return std::tanh(x);
    case ActivationKind::Exp: return std::exp(x);
    case ActivationKind::Neg: return -x;
    case ActivationKind::Square: return x * x;
    default: FAIL("no formula for ", std::string(enum_name(fn))); return 0;
  }
}
double function(BinaryKind fn, double a, double b) {
  switch (fn) {
    case BinaryKind::Add: return a + b;
    case BinaryKind::Sub: return a - b;
    case BinaryKind::Mul: return a * b;
    case BinaryKind::Div: return a / b;
    case BinaryKind::Max: return std::max(a, b);
    case BinaryKind::Min: return std::min(a, b);
    default: FAIL("no formula for ", std::string(enum_name(fn))); return 0;
  }
}
Array activated(const Array& x, const std::optional<ActivationKind>& fn) {
  return fn ? map(x, [&](double e) { return function(*fn, e); }) : x;
}
// (x - mean) / sqrt(var + eps) * gamma + beta over the last axis, and the mean and 1 / sqrt(var + eps) of each row.
// With rms the mean is 0.
Array normed(Array x, const Array* gamma, const Array* beta, double eps, bool rms, Array& means, Array& rstds) {
  means.dims = rstds.dims = x.dims;
  means.dims.back() = rstds.dims.back() = 1;
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    double mean = 0, var = 0;
    for (std::int64_t i = 0; i < x.last() && !rms; ++i) mean += x.at(r, i) / static_cast<double>(x.last());
    for (std::int64_t i = 0; i < x.last(); ++i)
      var += (x.at(r, i) - mean) * (x.at(r, i) - mean) / static_cast<double>(x.last());
    for (std::int64_t i = 0; i < x.last(); ++i)
      x.at(r, i) = (x.at(r, i) - mean) / std::sqrt(var + eps) * (gamma ? gamma->v[static_cast<std::size_t>(i)] : 1) +
                   (beta ? beta->v[static_cast<std::size_t>(i)] : 0);
    means.v.push_back(mean);
    rstds.v.push_back(1 / std::sqrt(var + eps));
  }
  return x;
}
Array zeros_like(const Array& x) {
  return map(x, [](double) { return 0.0; });
}

Arrays linear(const Sample& s, const Arrays& in) {
  const auto& op = s.op.as<ops::Linear>();
  Array y = matmul(in[0], in[1]);
  if (op.has_bias) y = plus(y, in[2]);
  return {activated(y, op.activation)};
}
Arrays linear_fused(const Sample& s, const Arrays& in) {
  return {activated(plus(matmul(in[0], in[1]), in[2]), s.op.as<ops::LinearFused>().activation)};
}
// Returns {y, the sum, [mean], rstd}. Bits 2 to 4 of `present` stand for bias, gamma and beta.
Arrays residual(const Arrays& in, OperandMask present, double eps, bool rms) {
  std::size_t next = 2;
  const auto optional = [&](int place) { return present.has(place) ? &in[next++] : nullptr; };
  const Array *bias = optional(2), *gamma = optional(3), *beta = optional(4);
  Array sum = plus(in[0], in[1]), mean, rstd;
  if (bias) sum = plus(sum, *bias);
  Arrays out{normed(sum, gamma, beta, eps, rms, mean, rstd), sum};
  if (!rms) out.push_back(mean);
  out.push_back(rstd);
  return out;
}
Arrays swiglu(const Sample&, const Arrays& in) {
  const Array gate = map(matmul(in[0], in[2]), silu);
  return {matmul(times(gate, matmul(in[0], in[1])), in[3])};
}
Arrays fused_swiglu(const Sample& s, const Arrays& in) {
  const std::int64_t n = in[0].last() / 2;
  const bool gate_first = s.op.as<ops::FusedSwiGLU>().gate_first;
  Array out{in[0].dims, {}};
  out.dims.back() = n;
  for (std::int64_t r = 0; r < in[0].rows(); ++r)
    for (std::int64_t i = 0; i < n; ++i)
      out.v.push_back(in[0].at(r, gate_first ? n + i : i) * silu(in[0].at(r, gate_first ? i : n + i)));
  return {out};
}
Arrays clamp(const Sample&, const Arrays& in) {
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  return {zip(zip(in[0], in[1], larger), in[2], smaller)};
}
Arrays log_softmax(const Sample& s, const Arrays& in) {
  const auto axis = static_cast<std::size_t>(s.op.as<ops::LogSoftmax>().axis);
  Array y = in[0];
  std::size_t inner = 1, extent = static_cast<std::size_t>(y.dims[axis]);
  for (std::size_t i = axis + 1; i < y.dims.size(); ++i) inner *= static_cast<std::size_t>(y.dims[i]);
  for (std::size_t start = 0; extent > 0 && start < y.v.size(); ++start) {
    if (start / inner % extent != 0) continue;
    double top = -INFINITY, sum = 0;
    for (std::size_t i = 0; i < extent; ++i) top = std::max(top, y.v[start + i * inner]);
    for (std::size_t i = 0; i < extent; ++i) sum += std::exp(y.v[start + i * inner] - top);
    for (std::size_t i = 0; i < extent; ++i) y.v[start + i * inner] -= top + std::log(sum);
  }
  return {y};
}
// Evaluates the elementwise ops of a body one by one.
Arrays body_results(const Graph& body, const Arrays& in) {
  std::vector<Array> values;
  std::size_t next = 0;
  for (const Node& n : body.nodes()) {
    const auto operand = [&](std::size_t i) { return values[n.inputs[i].node.index]; };
    if (n.kind() == OpKind::Input) {
      values.push_back(in[next++]);
    } else if (const auto* c = n.op.get_if<ops::Constant>()) {
      values.push_back(from(c->value));
    } else if (const auto* a = n.op.get_if<ops::Activation>()) {
      values.push_back(activated(operand(0), a->fn));
    } else if (const auto* b = n.op.get_if<ops::Binary>()) {
      values.push_back(zip(operand(0), operand(1), [&](double x, double y) { return function(b->fn, x, y); }));
    } else if (const auto* c2 = n.op.get_if<ops::Compare>()) {
      values.push_back(zip(operand(0), operand(1), [&](double x, double y) {
        switch (c2->fn) {
          case CompareKind::Eq: return x == y ? 1.0 : 0.0;
          case CompareKind::Ne: return x != y ? 1.0 : 0.0;
          case CompareKind::Lt: return x < y ? 1.0 : 0.0;
          case CompareKind::Le: return x <= y ? 1.0 : 0.0;
          case CompareKind::Gt: return x > y ? 1.0 : 0.0;
          default: return x >= y ? 1.0 : 0.0;
        }
      }));
    } else if (const auto* to = n.op.get_if<ops::Cast>()) {
      values.push_back(map(operand(0), [&](double x) { return is_inexact(to->to) ? x : std::trunc(x); }));
    } else if (n.kind() == OpKind::Where) {
      const Array c3 = operand(0), x = operand(1), y = operand(2);
      const Array kept = zip(c3, x, [](double t, double e) { return t != 0 ? e : 0.0; });
      const Array other = zip(c3, y, [](double t, double e) { return t != 0 ? 0.0 : e; });
      values.push_back(plus(kept, other));
    } else {
      FAIL("no formula for ", std::string(op_text_name(n.op)));
    }
  }
  Arrays out;
  for (Value v : body.outputs()) out.push_back(values[v.node.index]);
  return out;
}
Arrays region(const Sample& s, const Arrays& in) { return body_results(*s.op.as<ops::ElementwiseRegion>().body, in); }
// dot_general by its definition: result = batch ++ lhs free ++ rhs free.
template <class Op>
Array dot_general(const Op& op, const Array& a, const Array& b) {
  using List = std::vector<std::int64_t>;
  const auto free_of = [](const Array& x, const List& contract, const List& batch) {
    List out;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.dims.size()); ++i)
      if (std::count(contract.begin(), contract.end(), i) + std::count(batch.begin(), batch.end(), i) == 0)
        out.push_back(i);
    return out;
  };
  const List free_a = free_of(a, op.lhs_contract, op.lhs_batch), free_b = free_of(b, op.rhs_contract, op.rhs_batch);
  Array out;
  for (std::int64_t i : op.lhs_batch) out.dims.push_back(a.dims[static_cast<std::size_t>(i)]);
  for (std::int64_t i : free_a) out.dims.push_back(a.dims[static_cast<std::size_t>(i)]);
  for (std::int64_t i : free_b) out.dims.push_back(b.dims[static_cast<std::size_t>(i)]);
  std::size_t n = 1, k = 1;
  for (std::int64_t d : out.dims) n *= static_cast<std::size_t>(d);
  for (std::int64_t i : op.lhs_contract) k *= static_cast<std::size_t>(a.dims[static_cast<std::size_t>(i)]);
  const auto place = [](const Array& x, const List& index) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
      at = at * static_cast<std::size_t>(x.dims[i]) + static_cast<std::size_t>(index[i]);
    return at;
  };
  for (std::size_t e = 0; e < n; ++e) {
    List at(out.dims.size()), ia(a.dims.size()), ib(b.dims.size());
    std::size_t rest = e;
    for (std::size_t i = at.size(); i-- > 0;) {
      at[i] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(out.dims[i]));
      rest /= static_cast<std::size_t>(out.dims[i]);
    }
    std::size_t p = 0;
    for (std::size_t i = 0; i < op.lhs_batch.size(); ++i, ++p) {
      ia[static_cast<std::size_t>(op.lhs_batch[i])] = at[p];
      ib[static_cast<std::size_t>(op.rhs_batch[i])] = at[p];
    }
    for (std::int64_t i : free_a) ia[static_cast<std::size_t>(i)] = at[p++];
    for (std::int64_t i : free_b) ib[static_cast<std::size_t>(i)] = at[p++];
    double sum = 0;
    for (std::size_t c = 0; c < k; ++c) {
      rest = c;
      for (std::size_t i = op.lhs_contract.size(); i-- > 0;) {
        const std::int64_t extent = a.dims[static_cast<std::size_t>(op.lhs_contract[i])];
        ia[static_cast<std::size_t>(op.lhs_contract[i])] = ib[static_cast<std::size_t>(op.rhs_contract[i])] =
            static_cast<std::int64_t>(rest) % extent;
        rest /= static_cast<std::size_t>(extent);
      }
      sum += a.v[place(a, ia)] * b.v[place(b, ib)];
    }
    out.v.push_back(sum);
  }
  return out;
}
Arrays fused_dot(const Sample& s, const Arrays& in) {
  const auto& op = s.op.as<ops::FusedDot>();
  Arrays operands{dot_general(op, in[0], in[1])};
  operands.insert(operands.end(), in.begin() + 2, in.end());
  return body_results(*op.epilogue, operands);
}
// The convolution is a primitive; tests/unit/ops/conv/conv_test.cpp checks its numbers.
Arrays fused_conv(const Sample& s, const Arrays& in) {
  const auto& op = s.op.as<ops::FusedConv>();
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    parts.push_back(Tensor::zeros(Shape(Dims(in[i].dims.begin(), in[i].dims.end()), DType::F64)));
    std::copy(in[i].v.begin(), in[i].v.end(), parts.back().mutable_values<double>().begin());
  }
  Arrays operands{from(evaluate_op(static_cast<const ops::Conv&>(op), parts)[0])};
  operands.insert(operands.end(), in.begin() + 2, in.end());
  return body_results(*op.epilogue, operands);
}
// Leading dims broadcast.
Arrays batched_matmul(const Sample&, const Arrays& in) {
  const Array &a = in[0], &b = in[1];
  const std::int64_t m = a.dims[a.dims.size() - 2], k = a.last(), n = b.last();
  const auto lead = [](const Array& x) {
    Array out{{x.dims.begin(), x.dims.end() - 2}, {}};
    std::size_t count = 1;
    for (std::int64_t d : out.dims) count *= static_cast<std::size_t>(d);
    for (std::size_t i = 0; i < count; ++i) out.v.push_back(static_cast<double>(i));
    return out;
  };
  const Array at_a = zip(lead(a), zeros_like(lead(b)), [](double x, double) { return x; });
  const Array at_b = zip(zeros_like(lead(a)), lead(b), [](double, double y) { return y; });
  Array out{at_a.dims, {}};
  out.dims.push_back(m), out.dims.push_back(n);
  for (std::size_t g = 0; g < at_a.v.size(); ++g)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t c = 0; c < k; ++c)
          sum += a.v[static_cast<std::size_t>((static_cast<std::int64_t>(at_a.v[g]) * m + i) * k + c)] *
                 b.v[static_cast<std::size_t>((static_cast<std::int64_t>(at_b.v[g]) * k + c) * n + j)];
        out.v.push_back(sum);
      }
  return {out};
}

Arrays grouped_dot(const Sample& s, const Arrays& in) {
  const auto& op = s.op.as<ops::GroupedDot>();
  const bool rows = op.fn == GroupedKind::Rows;
  const std::int64_t m = in[0].dims[0], k = in[0].dims[1], n = in[1].last(), groups = rows ? in[1].dims[0] : op.groups;
  Array out{rows ? std::vector<std::int64_t>{m, n} : std::vector<std::int64_t>{groups, k, n}, {}};
  out.v.assign(static_cast<std::size_t>(rows ? m * n : groups * k * n), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    const auto e = static_cast<std::int64_t>(in[2].v[static_cast<std::size_t>(i)]);
    if (e < 0 || e >= groups) continue;
    for (std::int64_t c = 0; c < k; ++c)
      for (std::int64_t j = 0; j < n; ++j) {
        if (rows)
          out.at(i, j) += in[0].at(i, c) * in[1].at(e * k + c, j);
        else
          out.at(e * k + c, j) += in[0].at(i, c) * in[1].at(i, j);
      }
  }
  return {out};
}

// Row by row, as the op's comment describes it.
Arrays sample(const Sample& s, const Arrays& in) {
  const auto operand = [&](const char* name) -> const Array* {
    const auto i = find_operand(s.op, static_cast<int>(in.size()), name);
    return i ? &in[static_cast<std::size_t>(*i)] : nullptr;
  };
  const Array& logits = in[0];
  const std::int64_t rows = logits.dims[0], tokens = logits.last();
  Array token{{rows}, {}}, logprob{{rows}, {}};
  for (std::int64_t b = 0; b < rows; ++b) {
    const auto setting = [&](const char* name, double otherwise) {
      const Array* a = operand(name);
      return !a ? otherwise : a->v[a->dims.empty() ? 0 : static_cast<std::size_t>(b)];
    };
    std::vector<std::int64_t> left;
    double total = 0;
    for (std::int64_t v = 0; v < tokens; ++v) {
      const Array* mask = operand("mask_bits");
      if (mask && (static_cast<std::uint32_t>(mask->at(b, v / 32)) >> (v % 32) & 1U) == 0) continue;
      left.push_back(v);
      total += std::exp(logits.at(b, v));
    }
    if (left.empty()) {
      token.v.push_back(-1), logprob.v.push_back(-HUGE_VAL);
      continue;
    }
    std::stable_sort(left.begin(), left.end(),
                     [&](std::int64_t x, std::int64_t y) { return logits.at(b, x) > logits.at(b, y); });
    const double temperature = setting("temperature", 1), top = logits.at(b, left[0]);
    std::int64_t drawn = left[0];
    if (temperature > 0) {
      const auto scaled = [&](std::int64_t v) { return (logits.at(b, v) - top) / temperature; };
      const auto top_k = static_cast<std::size_t>(std::max(0.0, setting("top_k", 0)));
      if (top_k > 0 && left.size() > top_k) left.resize(top_k);
      double sum = 0, before = 0, best = -HUGE_VAL;
      for (std::int64_t v : left) sum += std::exp(scaled(v));
      for (std::size_t i = 0; i < left.size(); ++i) {
        const double p = std::exp(scaled(left[i])) / sum;
        const bool nucleus = setting("top_p", 1) >= 1 || before < setting("top_p", 1);
        before += p;
        if (i > 0 && (!nucleus || p < setting("min_p", 0) / sum)) continue;
        const auto key = [&](std::int64_t word) { return static_cast<std::uint32_t>(operand("key")->at(b, word)); };
        const std::uint64_t bits = threefry_bits(key(0), key(1), static_cast<std::uint64_t>(left[i]), 64);
        const double u = std::max(static_cast<double>(bits >> 12) * 0x1p-52, 0x1p-1022);
        const double score = scaled(left[i]) - std::log(-std::log(u));
        if (score > best) best = score, drawn = left[i];
      }
    }
    token.v.push_back(static_cast<double>(drawn));
    logprob.v.push_back(logits.at(b, drawn) - std::log(total));
  }
  return {token, logprob};
}

// x normalized in groups: elements with one number group(n, c) belong together, where n is the outer index and c the
// index along `axis`. The result is multiplied by gamma, and beta is added. Alternatively uses given means and
// variances per c. Also returns the mean and variance per c.
Arrays by_channel(const Arrays& in, OperandMask present, std::int64_t axis, double eps,
                  const std::function<std::int64_t(std::int64_t, std::int64_t)>& group) {
  const Array& x = in[0];
  const std::int64_t channels = x.dims[static_cast<std::size_t>(axis)];
  std::int64_t inner = 1;
  for (std::size_t a = static_cast<std::size_t>(axis) + 1; a < x.dims.size(); ++a) inner *= x.dims[a];
  const auto channel = [&](std::size_t i) { return static_cast<std::int64_t>(i) / inner % channels; };
  const auto group_of = [&](std::size_t i) {
    return group(static_cast<std::int64_t>(i) / inner / channels, channel(i));
  };
  std::map<std::int64_t, double> count, mean, var;
  for (std::size_t i = 0; i < x.v.size(); ++i) count[group_of(i)] += 1, mean[group_of(i)] += x.v[i];
  for (auto& [g, sum] : mean) sum /= count[g];
  for (std::size_t i = 0; i < x.v.size(); ++i) var[group_of(i)] += std::pow(x.v[i] - mean[group_of(i)], 2);
  for (auto& [g, sum] : var) sum /= count[g];
  std::size_t next = 1;
  const Array* vectors[5] = {};
  for (int place = 1; place < 5; ++place)
    if (present.has(place)) vectors[place] = &in[next++];
  Array y = x, means{{channels}, {}}, vars{{channels}, {}};
  for (std::size_t i = 0; i < x.v.size(); ++i) {
    const auto at = static_cast<std::size_t>(channel(i));
    const double m = vectors[3] ? vectors[3]->v[at] : mean[group_of(i)];
    const double v = vectors[4] ? vectors[4]->v[at] : var[group_of(i)];
    y.v[i] =
        (x.v[i] - m) / std::sqrt(v + eps) * (vectors[1] ? vectors[1]->v[at] : 1) + (vectors[2] ? vectors[2]->v[at] : 0);
  }
  for (std::int64_t c = 0; c < channels; ++c) means.v.push_back(mean[c]), vars.v.push_back(var[c]);
  return {y, means, vars};
}

using Formula = std::function<Arrays(const Sample&, const Arrays&)>;
const std::map<OpKind, Formula>& formulas() {
  static const std::map<OpKind, Formula> all{
      {OpKind::Clamp, clamp},
      {OpKind::MatMul, batched_matmul},
      {OpKind::LogSoftmax, log_softmax},
      {OpKind::FusedDot, fused_dot},
      {OpKind::FusedConv, fused_conv},
      {OpKind::GroupedDot, grouped_dot},
      {OpKind::Sample, sample},
      {OpKind::ElementwiseRegion, region},
      {OpKind::FusedSwiGLU, fused_swiglu},
      {OpKind::SwiGLU, swiglu},
      {OpKind::Linear, linear},
      {OpKind::LinearFused, linear_fused},
      {OpKind::SharedLinearPair,
       [](const Sample&, const Arrays& in) {
         return Arrays{matmul(in[0], in[1]), matmul(in[0], in[2])};
       }},
      {OpKind::ResidualLayerNorm,
       [](const Sample& s, const Arrays& in) {
         return Arrays{residual(in, {0b11000}, s.op.as<ops::ResidualLayerNorm>().eps, false)[0]};
       }},
      {OpKind::ResidualRmsNorm,
       [](const Sample& s, const Arrays& in) {
         return Arrays{residual(in, {0b11000}, s.op.as<ops::ResidualRmsNorm>().eps, true)[0]};
       }},
      {OpKind::FusedResidualLN,
       [](const Sample& s, const Arrays& in) {
         const auto& op = s.op.as<ops::FusedResidualLN>();
         return residual(in, op.present, op.eps, false);
       }},
      {OpKind::FusedResidualRmsNorm,
       [](const Sample& s, const Arrays& in) {
         const auto& op = s.op.as<ops::FusedResidualRmsNorm>();
         return residual(in, op.present, op.eps, true);
       }},
      {OpKind::GroupNorm,
       [](const Sample& s, const Arrays& in) {
         const auto& op = s.op.as<ops::GroupNorm>();
         const std::int64_t each = in[0].dims[1] / op.groups;
         return Arrays{by_channel(in, op.present, 1, op.eps, [&](std::int64_t n, std::int64_t c) {
           return n * op.groups + (each == 0 ? 0 : c / each);
         })[0]};
       }},
      {OpKind::BatchNorm,
       [](const Sample& s, const Arrays& in) {
         const auto& op = s.op.as<ops::BatchNorm>();
         Arrays out = by_channel(in, op.present, op.axis, op.eps, [](std::int64_t, std::int64_t c) { return c; });
         if (op.present.has(3)) out.resize(1);
         return out;
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("ops that are their decomposition equal a plain formula") {
  for_each_sample([&](const OpDef& def, const Sample& sample) {
    if (def.reference.has() || def.is_leaf() || def.level == Level::Lir || def.kind == OpKind::Custom) return;
    // Whole layers are compared with NumPy's results in tests/unit/ops/blocks_test.cpp, and fused_attention_block,
    // attention between two matmuls, in attention_test.cpp.
    if (def.kind == OpKind::EncoderBlock || def.kind == OpKind::LlamaDecoderBlock ||
        def.kind == OpKind::FusedAttentionBlock)
      return;
    const auto formula = formulas().find(def.kind);
    REQUIRE_MESSAGE(formula != formulas().end(), "no formula for ", def.name);
    const std::vector<Tensor> operands = draw_operands(sample);
    for (const Tensor& t : operands)
      if (is_complex(t.dtype())) return;
    Arrays in;
    for (const Tensor& t : operands) in.push_back(from(t));
    const Arrays want = formula->second(sample, in);
    std::vector<Tensor> wide;
    for (const Tensor& t : operands) wide.push_back(widened(t));
    const std::vector<Tensor> got = evaluate(to_f64(sample_graph(sample)), bind_operands(wide));
    REQUIRE(got.size() == want.size());
    for (std::size_t r = 0; r < want.size(); ++r) {
      REQUIRE(got[r].dims() == want[r].dims);
      const std::vector<double> values = got[r].to_f64();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double e = want[r].v[i];
        CHECK_MESSAGE(difference(values[i], e) <= 1e-11 * std::max(1.0, std::isfinite(e) ? std::fabs(e) : 1), "result ",
                      r, ", element ", i, " is ", values[i], ", the formula gives ", e);
      }
    }
  });
}

}  // namespace rlx::test
