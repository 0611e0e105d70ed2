// Parts of a matmul kernel: axes by role, reads in the operands' layouts, and epilogues as straight-line functions.
#include "rlx/codegen/dot.h"

#include <algorithm>

#include "rlx/codegen/elements.h"
#include "rlx/codegen/functions_wgsl.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/linalg.h"

namespace rlx::codegen {
namespace {

std::vector<int> ints(const std::vector<std::int64_t>& from) { return {from.begin(), from.end()}; }

// The axes of [0, rank) that are in neither list.
std::vector<int> others(int rank, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<int> out;
  for (int i = 0; i < rank; ++i)
    if (std::find(a.begin(), a.end(), i) == a.end() && std::find(b.begin(), b.end(), i) == b.end()) out.push_back(i);
  return out;
}

template <class Op>
DotAxesOf axes_of(const Op& op, int lhs_rank, int rhs_rank) {
  return {ints(op.lhs_batch),
          ints(op.rhs_batch),
          others(lhs_rank, op.lhs_contract, op.lhs_batch),
          others(rhs_rank, op.rhs_contract, op.rhs_batch),
          ints(op.lhs_contract),
          ints(op.rhs_contract)};
}

DType accumulator_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const auto* fused = n.op.get_if<ops::FusedDot>();
  const std::optional<DType> out = fused ? fused->out : n.op.as<ops::DotGeneral>().out;
  return out.value_or(g.shape(n.inputs[0]).dtype());
}

}  // namespace

DotOperand dot_operand(NodeKernels& node, int i, const char* name, bool encoded, const std::vector<int>& batch,
                       const std::vector<int>& free, const std::vector<int>& contract) {
  DotOperand o;
  o.name = name;
  o.encoded = encoded;
  const Value v = node.node().inputs[static_cast<std::size_t>(i)];
  o.ref = encoded ? dense_ref(node.graph(), v) : node.in(i);
  o.batch = Walk(o.ref, batch), o.free = Walk(o.ref, free), o.contract = Walk(o.ref, contract);
  const bool aligned = encoded || node.is_aligned(o.ref, 4 * size_bytes(o.ref.dtype));
  if (aligned && o.batch.by_fours() && o.free.by_fours() && o.contract.in_fours())
    o.fours = DotOperand::Fours::Contract;
  if (aligned && o.batch.by_fours() && o.contract.by_fours() && o.free.in_fours()) o.fours = DotOperand::Fours::Free;
  return o;
}

DotAxesOf axes_of_dot(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const int a = g.shape(n.inputs[0]).rank(), b = g.shape(n.inputs[1]).rank();
  if (const auto* fused = n.op.get_if<ops::FusedDot>()) return axes_of(*fused, a, b);
  return axes_of(n.op.as<ops::DotGeneral>(), a, b);
}

const Graph* epilogue_of(const Graph& g, NodeId id) {
  const auto* fused = g.node(id).op.get_if<ops::FusedDot>();
  return fused ? fused->epilogue.get() : nullptr;
}

const char* epilogue_refuses(const Graph& g, NodeId id) {
  const Graph* body = epilogue_of(g, id);
  if (!body) return nullptr;
  for (const Node& n : body->nodes()) {
    if (n.kind() == OpKind::Input) {
      if (!computes(n.shape().dtype())) return "WGSL has no type for the dtype of an operand or result";
    } else if (n.kind() == OpKind::Constant) {
      if (!computes(n.shape().dtype()) || !n.shape().num_elements_dim().is_static(1))
        return "its epilogue has a constant that is not a scalar of a WGSL dtype";
    } else if (const char* why = step_refuses(*body, n)) {
      return why;
    }
  }
  return nullptr;
}

Dot::Dot(NodeKernels& of, bool encoded)
    : node(of), accumulator(accumulator_of(of.graph(), of.id())), type(compute_type(accumulator)) {
  const DotAxesOf axes = axes_of_dot(node.graph(), node.id());
  x = dot_operand(node, 0, "x", false, axes.lhs_batch, axes.lhs_free, axes.lhs_contract);
  w = dot_operand(node, 1, "w", encoded, axes.rhs_batch, axes.rhs_free, axes.rhs_contract);
  batches = x.batch.extent(), m = x.free.extent(), n = w.free.extent(), k = x.contract.extent();
}

Dot::Dot(NodeKernels& of, DotOperand lhs, DotOperand rhs)
    : node(of),
      x(std::move(lhs)),
      w(std::move(rhs)),
      batches(x.batch.extent()),
      m(x.free.extent()),
      n(w.free.extent()),
      k(x.contract.extent()),
      accumulator(x.ref.dtype),
      type(compute_type(accumulator)) {}

// -- reads --

DotReader::DotReader(KernelBuilder& k, const Dot& dot, const DotOperand& operand)
    : k_(k), operand_(operand), type_(dot.type) {
  if (operand.encoded) decoder_.emplace(k, operand.ref.value.node, operand.name);
}
std::string DotReader::batch(std::string_view b) { return operand_.batch.at(k_, operand_.name + "_batch", b); }
std::string DotReader::free(std::string_view i) { return operand_.free.at(k_, operand_.name + "_free", i); }
std::string DotReader::contract(std::string_view i) { return operand_.contract.at(k_, operand_.name + "_inner", i); }

std::string DotReader::element(std::string_view index) {
  if (decoder_) return settled(k_, operand_.ref.dtype, decoder_->element(index));
  const std::string loaded = k_.load(operand_.ref, index);
  return compute_type(operand_.ref.dtype) == type_ ? loaded : concat_text(type_, "(", loaded, ")");
}

// Four decoded elements, rounded to the dtype of the Dequantize.
std::string DotReader::settled_four(const std::string& v) {
  if (operand_.ref.dtype == DType::F32) return v;
  const std::string name = operand_.name + "_settled";
  std::string lanes;
  for (int e = 0; e < 4; ++e)
    lanes += concat_text(e ? ", " : "", settled(k_, operand_.ref.dtype, concat_text("v.", "xyzw"[e])));
  k_.global(concat_text("fn ", name, "(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(", lanes, "); }\n"));
  return concat_text(name, "(", v, ")");
}

std::string DotReader::four(std::string_view index) {
  if (decoder_) return settled_four(decoder_->four(index));
  const std::string loaded = load_quad(k_, operand_.ref, operand_.name + "_load", index);
  return compute_type(operand_.ref.dtype) == type_ ? loaded : concat_text("vec4<", type_, ">(", loaded, ")");
}

int DotReader::group() const { return decoder_ && fours() == DotOperand::Fours::Contract ? decoder_->group() : 0; }

std::string DotReader::four(std::string_view index, std::string_view scale) {
  return settled_four(decoder_->four(index, scale));
}

// -- writes --

DotWriter::DotWriter(KernelBuilder& k, const Dot& dot, Ref to, bool finishes)
    : k_(k), dot_(dot), to_(std::move(to)), finishes_(finishes) {
  if (finishes_) define_finish();
}

// fn finish(acc, b, m, n): the epilogue on one element.
void DotWriter::define_finish() {
  NodeKernels& node = dot_.node;
  const Graph* body = epilogue_of(node.graph(), node.id());
  if (!body) return;
  calls_ = true;
  const DotAxesOf axes = axes_of_dot(node.graph(), node.id());
  const int nb = static_cast<int>(axes.lhs_batch.size()), nm = static_cast<int>(axes.lhs_free.size()),
            rank = node.out().rank();
  std::vector<int> of_batch, of_m, of_n;
  for (int a = 0; a < rank; ++a) (a < nb ? of_batch : a < nb + nm ? of_m : of_n).push_back(a);
  std::string text = concat_text("let s0 = ", settled(k_, dot_.accumulator, "acc"), ";\n");
  std::vector<Term> terms(body->num_nodes());
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < body->num_nodes(); ++i) {
    const Node& n = body->node(NodeId{i});
    const DType t = n.shape().dtype();
    if (n.kind() == OpKind::Input) {
      const std::size_t number = next++;
      terms[i] = {concat_text("x", number), t};
      if (number == 0) {
        terms[i].text = "s0";
        continue;
      }
      const Value v = node.node().inputs[number + 1];
      if (auto same = literal_of(k_, node.graph(), v)) {
        terms[i].text = *same;
        continue;
      }
      const Ref r = broadcast_to(node.value(v), node.out().dims);
      const std::string name = concat_text("e", number);
      std::string index = Walk(r, of_batch).at(k_, name + "_b", "b");
      index +=
          concat_text(" + ", Walk(r, of_m).at(k_, name + "_m", "m"), " + ", Walk(r, of_n).at(k_, name + "_n", "n"));
      text += concat_text("let x", number, " = ", k_.load(r, index), ";\n");
    } else if (n.kind() == OpKind::Constant) {
      terms[i] = {*literal_of(k_, *body, Value(NodeId{i})), t};
    } else {
      std::vector<Term> in;
      for (Value v : n.inputs) in.push_back(terms[v.node.index]);
      terms[i] = {concat_text("t", i), t};
      text += concat_text("let t", i, " = ", settled(k_, t, step_text(k_, n.op, in, t)), ";\n");
    }
  }
  k_.global(concat_text("fn finish(acc: ", dot_.type, ", b: u32, m: u32, n: u32) -> ", compute_type(to_.dtype), " {\n",
                        text, "return ", terms[body->outputs()[0].node.index].text, ";\n}\n"));
}

std::string DotWriter::finished(std::string_view value) {
  if (calls_) return concat_text("finish(", value, ", b, m, n)");
  return std::string(value);
}

std::string DotWriter::put(std::string_view value) {
  const std::string row = InOrder{"(b * ", k_.size(Size(dot_.m)), " + m) * ", k_.size(Size(dot_.n)), " + n"};
  return k_.store(to_, row, finished(value));
}

std::string DotWriter::put_four(std::string_view value) {
  const auto lane = [&](int e) {
    const std::string v = concat_text(value, ".", "xyzw"[e]);
    return calls_ ? concat_text("finish(", v, ", b, m, n", e ? concat_text(" + ", e, "u") : std::string(), ")") : v;
  };
  const std::string columns = k_.size(Size(dot_.n)),
                    row = concat_text("(b * ", k_.size(Size(dot_.m)), " + m) * ", columns, " + n");
  std::string text = concat_text("let to = ", row, ";\n");
  if (divided(dot_.n, 4) && dot_.node.is_aligned(to_, 4 * size_bytes(to_.dtype))) {
    text += concat_text("let four = vec4<", compute_type(to_.dtype), ">(", lane(0), ", ", lane(1), ", ", lane(2), ", ",
                        lane(3), ");\n");
    text += concat_text("if (n < ", columns, ") {\n", store_quad(k_, to_, "to", "four"), "}\n");
  } else {
    for (int e = 0; e < 4; ++e) {
      const std::string plus = e ? concat_text(" + ", e, "u") : std::string();
      text += concat_text("if (n", plus, " < ", columns, ") {\n", k_.store(to_, "to" + plus, lane(e)), "}\n");
    }
  }
  return concat_text("{\n", text, "}\n");
}

bool stores_fours(const Dot& dot) {
  const Ref out = dot.node.out();
  if (size_bytes(out.dtype) == 4) return true;
  return divided(dot.n, 4) && dot.node.is_aligned(out, 4 * size_bytes(out.dtype));
}

void finish_dot(const Dot& dot, const Ref& parts) {
  const Ref out = dot.node.out();
  map_elements(dot.node, "finish_dot", {out}, [&](KernelBuilder& k, const std::string& i) {
    DotWriter writer(k, dot);
    const std::string total = k.size(Size(out.elements()));
    k << "var sum = " << k.load(parts, i) << ";\n";
    if (!parts.dims[0].is_static(1))
      k << "for (var s = 1u; s < " << k.size(Size(parts.dims[0])) << "; s++) { sum = sum + "
        << k.load(parts, concat_text("s * ", total, " + ", i)) << "; }\n";
    k << k.split(i, {dot.batches, dot.m, dot.n}, {"b", "m", "n"});
    return std::vector<std::string>{writer.finished("sum")};
  });
}

}  // namespace rlx::codegen
