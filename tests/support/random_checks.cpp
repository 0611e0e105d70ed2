// Random programs in every execution mode, and on devices.
#include "tests/support/random_checks.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <optional>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/ir/ops/leaves.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "rlx/ir/verify.h"
#include "rlx/tensor/visit.h"
#include "rlx/transforms/jvp.h"
#include "rlx/transforms/reverse.h"
#include "rlx/transforms/vmap.h"

namespace rlx::test {
namespace {

struct Failure {
  std::string text;
};

// -- one execution mode

struct Way {
  std::string name;
  bool same_bits = false;  // has the same bits as the first mode
  int threads = 1;
  std::string isa = {};
  CompileOptions options = {};
  bool reference = false;
  Graph (*rewrite)(const Graph&) = nullptr;
};

Graph through_text(const Graph& g) { return parse_text(print_text(g), "round trip"); }
Graph through_bytes(const Graph& g) { return from_bytes(to_bytes(g)); }

std::vector<Way> ways_of(const Graph& g, Dice& dice) {
  std::vector<Way> all;
  all.push_back({.name = "one thread"});
  all.push_back({.name = "two threads", .same_bits = true, .threads = 2});
  if (dice.chance(50))
    all.push_back({.name = "text round trip", .same_bits = true, .rewrite = through_text});
  else
    all.push_back({.name = "binary round trip", .same_bits = true, .rewrite = through_bytes});
  std::vector<Way> others;
  CompileOptions o;
  o.fusion.skip_fusion = true;
  others.push_back({.name = "unfused", .options = o});
  o = {};
  o.fusion.unfuse_elementwise_regions = true;
  others.push_back({.name = "without regions", .threads = 2, .options = o});
  o = {};
  o.constant_folding = false;
  others.push_back({.name = "not folded", .options = o});
  o = {};
  o.kernel_dispatch = KernelDispatchConfig{};
  o.kernel_dispatch->policy = KernelDispatchPolicy::ForceCommon;
  others.push_back({.name = "decomposed", .options = o});
  o = {};
  o.policy = FusionPolicy::Fusable;
  others.push_back({.name = "blocks as primitives", .options = o});
  for (cpu::Isa isa : {cpu::Isa::Generic, cpu::Isa::Sse4, cpu::Isa::Avx2, cpu::Isa::Avx512, cpu::Isa::Neon})
    if (cpu::isa_supported(isa) && isa != cpu::best_isa())
      others.push_back({.name = concat_text("isa ", cpu::isa_name(isa)), .isa = std::string(cpu::isa_name(isa))});
  others.push_back({.name = "reference backend", .reference = true});
  // All symbols in one mode, or each in its own.
  if (!g.symbols().empty()) {
    CompileOptions runtime, bucket, mixed;
    for (const auto& [name, info] : g.symbols()) {
      runtime.symbol_modes.emplace(name, SymbolMode::runtime());
      bucket.symbol_modes.emplace(name, SymbolMode::bucket({info.max / 2, info.max}));
      if (dice.chance(50)) mixed.symbol_modes.emplace(name, SymbolMode::runtime());
    }
    all.push_back({.name = "runtime symbols", .threads = 1 + static_cast<int>(dice.below(2)), .options = runtime});
    all.push_back({.name = "bucket symbols", .options = bucket});
    others.push_back({.name = "mixed symbols", .options = mixed});
  }
  for (int i = 0; i < 3; ++i) all.push_back(dice.any(others));
  return all;
}

struct Step {
  NamedTensors inputs, params, states;  // states before the step
};
struct StepResult {
  std::vector<Tensor> outputs;
  NamedTensors states;  // states after the step
};

std::vector<StepResult> run(const Way& way, const Graph& graph, const std::vector<Step>& steps) {
  Graph g = way.rewrite ? way.rewrite(graph) : graph;
  Session session = way.reference ? Session::on_backend("reference") : Session();
  session.with_threads(way.threads).with_isa(way.isa);
  CompiledGraph f = session.compile_with(std::move(g), way.options);
  std::vector<StepResult> results;
  for (const Step& s : steps) {
    for (const auto& [name, value] : s.params) f.set_param(name, value);
    for (const auto& [name, value] : s.states) f.write_state(name, value);
    StepResult r;
    r.outputs = f.run_typed(s.inputs);
    for (const IoInfo& state : f.states()) r.states.emplace(state.name, f.read_state(state.name));
    results.push_back(std::move(r));
  }
  return results;
}

// -- comparison

void expect_bound(const std::string& who, const std::string& what, const Tensor& got, const Bounded& exact) {
  const Gap gap = gap_to(got, exact);
  if (gap.size > 1) throw Failure{concat_text(who, ": ", what, ": ", gap.text)};
}

void expect_step(const std::string& who, const StepResult& got, const BoundedResult& exact) {
  if (got.outputs.size() != exact.outputs.size()) throw Failure{concat_text(who, ": number of outputs")};
  for (std::size_t i = 0; i < got.outputs.size(); ++i)
    expect_bound(who, concat_text("output ", i), got.outputs[i], exact.outputs[i]);
  for (const auto& [name, value] : got.states)
    expect_bound(who, concat_text("state ", name), value, exact.states.at(name));
}

void expect_bits(const std::string& who, const StepResult& got, const StepResult& first) {
  for (std::size_t i = 0; i < got.outputs.size(); ++i)
    if (!got.outputs[i].identical(first.outputs[i])) {
      const Gap gap = ulp_gap(got.outputs[i], first.outputs[i]);
      throw Failure{concat_text(who, ": other bits in output ", i, ": ", gap.text)};
    }
  for (const auto& [name, value] : got.states)
    if (!value.identical(first.states.at(name))) throw Failure{concat_text(who, ": other bits in state ", name)};
}

NamedTensors leaves_of(const Graph& g, OpKind kind, const NamedTensors& values) {
  NamedTensors out;
  for (NodeId id : g.leaves(kind))
    if (auto it = values.find(g.leaf_name(id)); it != values.end()) out.insert(*it);
  return out;
}

NamedTensors together(const Step& s) {
  NamedTensors all = s.inputs;
  all.insert(s.params.begin(), s.params.end());
  all.insert(s.states.begin(), s.states.end());
  return all;
}

// Random numbers between -1 and 1.
Tensor drawn_unit(const Shape& shape, Dice& dice) {
  Tensor t = Tensor::zeros(shape);
  for (std::int64_t i = 0; i < t.num_elements(); ++i) t.set(i, 2 * dice.uniform() - 1);
  return t;
}

// The result of a transform; none where the program does not allow it (no rule, no float output).
template <class Make>
std::optional<TransformResult> transformed(Make make) {
  try {
    return make();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::Unsupported || e.code() == ErrorCode::InvalidArgument) return std::nullopt;
    // Rules cannot make the values they need from 4-bit elements.
    if (std::strstr(e.what(), "packed 4-bit elements") != nullptr) return std::nullopt;
    throw;
  }
}

bool has_complex_leaf(const NamedTensors& values) {
  for (const auto& [name, value] : values)
    if (is_complex(value.dtype())) return true;
  return false;
}

// Checks <ct, jvp u> = <vjp ct, u> in F64, within the bounds of both sides.
void expect_adjoint(const RandomProgram& p, const SymbolBinding& binding) {
  NamedTensors values = p.values(binding, 0);
  if (has_complex_leaf(values)) return;
  // Ops that read the bits of a narrower float have no F64 form.
  const auto wide = attempt([&] { return to_f64(p.graph.symbols().empty() ? p.graph : p.graph.bind(binding)); });
  if (!wide.ok()) return;
  const Graph& g = wide.value();
  std::vector<Wrt> wrt;
  for (auto& [name, value] : values)
    if (is_float(value.dtype())) value = value.cast(DType::F64), wrt.emplace_back(name);
  if (wrt.empty()) return;
  const auto reverse = transformed([&] { return vjp(g, wrt); });
  const auto forward = reverse ? transformed([&] { return jvp(g, wrt); }) : std::nullopt;
  if (!forward) return;
  Dice dice(p.seed + 5);
  std::vector<Tensor> directions, cotangents;
  NamedTensors forward_values = values, reverse_values = values;
  for (const std::string& name : forward->added_inputs) {
    directions.push_back(drawn_unit(forward->graph.shape(forward->graph.find_leaf(OpKind::Input, name)), dice));
    forward_values.emplace(name, directions.back());
  }
  for (const std::string& name : reverse->added_inputs) {
    cotangents.push_back(drawn_unit(reverse->graph.shape(reverse->graph.find_leaf(OpKind::Input, name)), dice));
    reverse_values.emplace(name, cotangents.back());
  }
  const auto tangents = evaluate_bounded(forward->graph, forward_values).outputs;
  const auto gradients = evaluate_bounded(reverse->graph, reverse_values).outputs;
  const std::size_t n = g.outputs().size();
  double difference_of_sides = 0, bound = 0;
  const auto add = [&](const Tensor& weight, const Bounded& b, double sign) {
    for (std::int64_t i = 0; i < weight.num_elements(); ++i) {
      const auto w = load_element<std::complex<double>>(weight.data(), weight.dtype(), i);
      const auto v = load_element<std::complex<double>>(b.value.data(), b.value.dtype(), i);
      const double term = (w * v).real();
      difference_of_sides += sign * term;
      bound += std::abs(w) * b.slack.at(i) + 1e-13 * std::abs(w) * std::abs(v);
    }
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (is_inexact(g.shape(g.outputs()[i]).dtype())) add(cotangents.at(next++), tangents.at(n + i), 1);
  for (std::size_t i = 0; i < directions.size(); ++i) add(directions[i], gradients.at(n + i), -1);
  if (!std::isfinite(bound) || !std::isfinite(difference_of_sides)) return;  // a kink or a pole
  if (std::fabs(difference_of_sides) > bound)
    throw Failure{concat_text("derivatives: <ct, jvp u> and <vjp ct, u> differ by ", difference_of_sides,
                              ", the bound is ", bound)};
}

void expect_run(const char* who, const Session& session, const Graph& g, const NamedTensors& values,
                Subnormals subnormals) {
  const BoundedResult exact = evaluate_bounded(g, values, subnormals);
  std::vector<Tensor> got;
  try {
    CompiledGraph f = session.compile(Graph(g));
    NamedTensors inputs;
    for (const IoInfo& param : f.params()) f.set_param(param.name, values.at(param.name));
    for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
    got = f.run_typed(inputs);
  } catch (const Error& e) {
    throw Failure{concat_text(who, ": ", e.what())};
  }
  for (std::size_t i = 0; i < got.size(); ++i) expect_bound(who, concat_text("output ", i), got[i], exact.outputs[i]);
}

// Runs the reverse derivative as a program of its own.
bool expect_reverse(const RandomProgram& p, const SymbolBinding& binding, const Session& session,
                    Subnormals subnormals) {
  const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
  NamedTensors values = p.values(binding, 0);
  if (subnormals == Subnormals::MayBeZero) values = without_subnormals(values);
  std::vector<Wrt> wrt;
  for (const auto& [name, value] : values)
    if (is_inexact(value.dtype()) && !is_storage_only(value.dtype())) wrt.emplace_back(name);
  if (wrt.empty()) return false;
  const auto reverse = transformed([&] { return vjp(g, wrt); });
  if (!reverse) return false;
  Dice dice(p.seed + 5);
  for (const std::string& name : reverse->added_inputs)
    values.emplace(name, drawn_unit(reverse->graph.shape(reverse->graph.find_leaf(OpKind::Input, name)), dice));
  expect_run("derivatives", session, reverse->graph, values, subnormals);
  return true;
}

// Batches some of the leaves in three rows. Each row of the results must be within the bound of that row's program.
bool expect_batch(const RandomProgram& p, const SymbolBinding& binding, const Session& session, Subnormals subnormals) {
  constexpr std::int64_t kRows = 3;
  const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
  if (!g.state_updates().empty()) return false;
  for (Value v : g.outputs())
    if (dtype_bits(g.shape(v).dtype()) < 8) return false;
  Dice dice(p.seed + 6);
  std::vector<NamedTensors> rows;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    rows.push_back(p.values(binding, 10 + row));
    if (subnormals == Subnormals::MayBeZero) rows.back() = without_subnormals(rows.back());
  }
  InAxes axes;
  NamedTensors values;
  for (const auto& [name, first] : rows[0]) {
    if (dtype_bits(first.dtype()) < 8 || dice.chance(40)) {
      for (NamedTensors& row : rows) row.insert_or_assign(name, first);
      values.emplace(name, first);
      continue;
    }
    Dims dims = first.shape().dims();
    dims.insert(dims.begin(), Dim(kRows));
    Tensor all = Tensor::zeros(Shape(dims, first.dtype()));
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (first.size_bytes() != 0)
        std::memcpy(all.mutable_data() + row * first.size_bytes(), rows[row].at(name).data(), first.size_bytes());
    values.emplace(name, std::move(all));
    axes.emplace(name, 0);
  }
  if (axes.empty()) return false;
  const auto batched = transformed([&] { return vmap(g, axes, kRows); });
  if (!batched) return false;
  std::vector<Tensor> got;
  try {
    CompiledGraph f = session.compile(Graph(batched->graph));
    NamedTensors inputs;
    for (const IoInfo& param : f.params()) f.set_param(param.name, values.at(param.name));
    for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
    got = f.run_typed(inputs);
  } catch (const Error& e) {
    throw Failure{concat_text("batch: ", e.what())};
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const BoundedResult exact = evaluate_bounded(g, rows[row], subnormals);
    for (std::size_t i = 0; i < got.size(); ++i)
      expect_bound("batch", concat_text("row ", row, " of output ", i),
                   got[i].rows(static_cast<std::int64_t>(row), 1).reshaped(exact.outputs[i].value.dims()),
                   exact.outputs[i]);
  }
  return true;
}

// Throws a Failure when some mode of running `p` is wrong. Runs only the modes named `only` when it is not empty.
void check_ways(const RandomProgram& p, const std::string& only, bool derive, Looked& looked) {
  const Graph& g = p.graph;
  if (const auto problems = verify(g, Level::Hir); !problems.empty())
    throw Failure{concat_text("verify: ", problems[0].text())};
  if (!same_graph(through_text(g), g)) throw Failure{"the text form does not give the graph back"};
  if (!same_graph(through_bytes(g), g)) throw Failure{"the binary form does not give the graph back"};
  Dice dice(p.seed ^ 0x77);
  const std::vector<Way> ways = ways_of(g, dice);
  for (std::uint64_t variant = 0; variant < (g.symbols().empty() ? 1U : 2U); ++variant) {
    const SymbolBinding binding = p.binding(variant);
    // Shape assumptions on symbolic extents (a crop leaves something) need not hold at every value.
    if (!g.symbols().empty() && !attempt([&] { return g.bind(binding); }).ok()) continue;
    std::vector<Step> steps;
    std::vector<BoundedResult> exact;
    NamedTensors states;
    for (std::uint64_t i = 0; i < 2; ++i) {
      const NamedTensors values = p.values(binding, 2 * variant + i);
      steps.push_back({leaves_of(g, OpKind::Input, values), leaves_of(g, OpKind::Param, values), states});
      exact.push_back(evaluate_bounded(g, together(steps.back())));
      EvaluateResult evaluated = evaluate_with_states(g, together(steps.back()));
      if (only.empty() || only == "evaluator")
        expect_step("evaluator", {evaluated.outputs, evaluated.states}, exact.back());
      states = std::move(evaluated.states);
    }
    std::vector<StepResult> first;
    for (const Way& way : ways) {
      if (!only.empty() && !first.empty() && way.name != only) continue;
      std::vector<StepResult> got;
      try {
        got = run(way, g, steps);
      } catch (const Error& e) {
        throw Failure{concat_text(way.name, ": ", e.what())};
      }
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (way.same_bits) expect_bits(concat_text(way.name, ": step ", i), got[i], first[i]);
        if (only.empty() || way.name == only || !way.same_bits)
          expect_step(concat_text(way.name, ": step ", i), got[i], exact[i]);
      }
      if (first.empty()) first = std::move(got);
    }
    if ((derive || p.seed % 3 == 0) && (only.empty() || only == "derivatives")) {
      expect_adjoint(p, binding);
      looked.derivatives |= expect_reverse(p, binding, Session(), Subnormals::Kept);
    }
    if ((derive || p.seed % 5 == 0) && (only.empty() || only == "batch"))
      looked.batches |= expect_batch(p, binding, Session(), Subnormals::Kept);
  }
}

// -- reducing a failing program

// The part of `g` that `outputs` and `updates` need. The results of node `cut` (if valid) become inputs.
Graph part_of(const Graph& g, const std::vector<Value>& outputs, const std::vector<Graph::StateUpdate>& updates,
              NodeId cut) {
  std::vector<bool> live(g.num_nodes(), false);
  for (Value v : outputs) live[v.node.index] = true;
  for (const auto& u : updates) live[u.value.node.index] = live[g.find_leaf(OpKind::State, u.name).index] = true;
  for (std::size_t i = live.size(); i-- > 0;)
    if (live[i] && NodeId{static_cast<std::uint32_t>(i)} != cut)
      for (Value v : g.nodes()[i].inputs) live[v.node.index] = true;
  Graph out(g.name());
  out.set_symbols(g.symbols());
  std::vector<NodeId> map(g.num_nodes());
  for (std::uint32_t i = 0; i < g.num_nodes(); ++i) {
    if (!live[i]) continue;
    Node n = g.node(NodeId{i});
    for (Value& v : n.inputs) v = Value(map[v.node.index], v.result);
    if (NodeId{i} == cut) {
      n.op = ops::Input{concat_text("cut", i), n.shape().dims(), n.shape().dtype()};
      n.inputs.clear();
    }
    map[i] = out.add_node(std::move(n));
  }
  std::vector<Value> outs;
  for (Value v : outputs) outs.emplace_back(map[v.node.index], v.result);
  out.set_outputs(std::move(outs));
  for (const auto& u : updates) out.set_state(u.name, Value(map[u.value.node.index], u.value.result));
  return out;
}

}  // namespace

// The error that `check` finds, or "". `looked` gets the checks that were made.
template <class Check>
std::string text_of_failure(Looked* looked, Check check) {
  Looked seen;
  try {
    check(seen);
  } catch (const Failure& f) {
    return f.text;
  } catch (const Error& e) {
    return concat_text("an error: ", e.what());
  }
  if (looked != nullptr) *looked = seen;
  return {};
}

std::string failure_of(const RandomProgram& p, const std::string& only, bool derive, Looked* looked) {
  return text_of_failure(looked, [&](Looked& seen) { check_ways(p, only, derive, seen); });
}

RandomProgram smaller(RandomProgram p, const std::string& who) {
  const auto try_part = [&](const std::vector<Value>& outputs, const std::vector<Graph::StateUpdate>& updates,
                            NodeId cut) {
    RandomProgram q = p;
    try {
      q.graph = part_of(p.graph, outputs, updates, cut);
    } catch (const Error&) {
      return false;
    }
    const std::string text = failure_of(q, who, true);
    if (text.compare(0, who.size(), who) != 0) return false;
    p = std::move(q);
    return true;
  };
  const Graph whole = p.graph;
  for (Value v : whole.outputs())
    if (try_part({v}, {}, {})) break;
  if (p.graph.num_nodes() == whole.num_nodes()) try_part(p.graph.outputs(), {}, {});
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = static_cast<std::uint32_t>(p.graph.num_nodes()); i-- > 0 && !changed;) {
      const Node& n = p.graph.node(NodeId{i});
      if (n.inputs.empty() || n.num_results() != 1 || is_storage_only(n.shape().dtype())) continue;
      changed = try_part(p.graph.outputs(), p.graph.state_updates(), NodeId{i});
    }
  }
  return p;
}

std::string failure_on(const Session& session, const RandomProgram& p, Subnormals subnormals, bool derive,
                       Looked* looked) {
  CompileOptions compile;
  if (p.seed % 2 == 0)
    for (const auto& [name, info] : p.graph.symbols()) compile.symbol_modes[name] = SymbolMode::runtime(info.max);
  return text_of_failure(looked, [&](Looked& seen) {
    CompiledGraph f = session.compile_with(Graph(p.graph), compile);
    // As on the cpu, shape assumptions need not hold at every value.
    const auto fits = [&](std::uint64_t variant) {
      return p.graph.symbols().empty() || attempt([&] { return p.graph.bind(p.binding(variant)); }).ok();
    };
    for (std::uint64_t variant : {0, 1}) {
      const SymbolBinding binding = p.binding(variant);
      if (!fits(variant)) continue;
      const Graph g = p.graph.symbols().empty() ? p.graph : p.graph.bind(binding);
      f.reset();
      NamedTensors values = p.values(binding, variant), inputs;
      if (subnormals == Subnormals::MayBeZero) values = without_subnormals(values);
      for (const IoInfo& param : f.params()) f.set_param(param.name, values.at(param.name));
      for (const IoInfo& in : f.inputs()) inputs.emplace(in.name, values.at(in.name));
      for (int run = 0; run < 2; ++run) {
        const std::string who = concat_text("variant ", variant, ", run ", run);
        const BoundedResult exact = evaluate_bounded(g, values, subnormals);
        const std::vector<Tensor> got = f.run_typed(inputs);
        for (std::size_t i = 0; i < got.size(); ++i)
          expect_bound(who, concat_text("result ", i), got[i], exact.outputs[i]);
        for (const IoInfo& s : f.states()) {
          const Tensor state = f.read_state(s.name);
          if (const auto it = exact.states.find(s.name); it != exact.states.end())
            expect_bound(who, concat_text("state ", s.name), state, it->second);
          values.insert_or_assign(s.name, state);
        }
      }
    }
    if (derive && fits(0)) {
      seen.derivatives = expect_reverse(p, p.binding(0), session, subnormals);
      seen.batches = expect_batch(p, p.binding(0), session, subnormals);
    }
  });
}

}  // namespace rlx::test
