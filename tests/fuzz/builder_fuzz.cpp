// Fuzz target: every op with attributes and operands that nobody would write, through the graph's own building calls.
// Only rlx::Error may come out, never an internal one, and what was accepted is sound and survives both file forms.
#include <bit>
#include <limits>

#include "rlx/ir/serial/serialize.h"
#include "rlx/ir/text.h"
#include "tests/fuzz/dice_entry.h"
#include "tests/fuzz/graph_samples.h"

namespace {

using namespace rlx;
using test::Dice;

std::int64_t integer(Dice& dice) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                         kHigh = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kValues[] = {0, 1,    -1,    2,    3,         -2,        4,
                                             7, 1000, kHigh, kLow, kHigh - 1, 1LL << 31, 1LL << 40};
  return dice.chance(60) ? dice.below(5) - 1 : dice.of(kValues);
}
double real(Dice& dice) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kValues[] = {0,    -0.0, 1, -1, 0.5, 1e300, 5e-324, std::numeric_limits<double>::quiet_NaN(),
                                       kInf, -kInf};
  return dice.of(kValues);
}
Dim dim(Dice& dice, bool operand) {
  if (dice.chance(15)) return Dim::symbol("n") * Dim(dice.below(3)) + Dim(dice.below(2));
  return operand ? Dim(dice.below(6)) : Dim(integer(dice));
}
Dims dims(Dice& dice, bool operand = false) {
  Dims out(static_cast<std::size_t>(dice.below(5)));
  for (Dim& d : out) d = dim(dice, operand);
  return out;
}
AttrValue attribute(Dice& dice, const AttrField& f, const AttrValue& given, const Subgraph& body) {
  switch (f.type) {
    case AttrType::Bool: return dice.chance(50);
    case AttrType::I64: return integer(dice);
    case AttrType::F64: return real(dice);
    case AttrType::Enum:
      return static_cast<std::int64_t>(dice.below(static_cast<std::int64_t>(f.enum_names.size()) + 2)) - 1;
    case AttrType::DType: return static_cast<DType>(dice.below(kNumDTypes));
    case AttrType::Body:
    case AttrType::OptBody: return dice.chance(30) ? Subgraph() : body;
    case AttrType::OptF64: return dice.chance(50) ? AttrValue(real(dice)) : AttrValue();
    case AttrType::OptI64: return dice.chance(50) ? AttrValue(integer(dice)) : AttrValue();
    case AttrType::OptDType:
      return dice.chance(50) ? AttrValue(static_cast<DType>(dice.below(kNumDTypes))) : AttrValue();
    case AttrType::Operands: return dice.below(16);
    case AttrType::I64List: {
      std::vector<std::int64_t> list(static_cast<std::size_t>(dice.below(5)));
      for (auto& x : list) x = integer(dice);
      return list;
    }
    case AttrType::DimList: return dims(dice);
    case AttrType::Tensor: return Tensor::zeros(Shape({Dim(dice.below(4))}, DType::F32));
    case AttrType::String: return std::string(dice.chance(50) ? "x" : "");
    default: return given;
  }
}

// Any graph with no leaves but inputs and constants.
Subgraph some_body(Dice& dice) {
  auto body = std::make_shared<Graph>("body");
  std::vector<Expr> pool;
  for (std::int64_t i = dice.below(4); i-- > 0;)
    pool.push_back(
        body->input(concat_text("b", i), Shape(dims(dice, true), dice.chance(80) ? DType::F32 : DType::I32)));
  if (pool.empty()) pool.push_back(body->scalar(1));
  for (std::int64_t i = dice.below(5); i-- > 0;) {
    const Expr a = dice.any(pool), b = dice.any(pool);
    const auto next = attempt([&] { return dice.chance(50) ? body->tanh(a) : a + b; });
    if (next.ok()) pool.push_back(next.value());
  }
  body->set_outputs({pool.back()});
  return body;
}

template <class Call>
bool only_errors(const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& e) {
    check(e.code() != ErrorCode::Internal, e.what());
    return false;
  }
}

void run(Dice& dice) {
  Graph g("built");
  g.symbol("n", {.min = 0, .max = 9, .divisor = 1});
  std::vector<Expr> pool;
  for (int i = 0; i < 3; ++i)
    pool.push_back(g.input(concat_text("x", i), Shape(dims(dice, true), static_cast<DType>(dice.below(kNumDTypes)))));
  const auto& defs = all_op_defs();
  for (std::int64_t i = 4 + dice.below(12); i-- > 0;) {
    const OpDef& def = *defs[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(defs.size())))];
    if (def.kind == OpKind::Custom || def.is_leaf()) continue;  // leaves: by their own calls
    only_errors([&] {
      auto op = make_default_op(def.kind);
      for (const AttrField& f : def.attrs) f.set(op.get(), attribute(dice, f, f.get(op.get()), some_body(dice)));
      std::vector<Value> operands;
      const InputSpec& spec = def.inputs;
      const int said =
          spec.present ? spec.required + std::popcount(spec.present_in(op.get()) & spec.optional_bits) : spec.count;
      const std::int64_t n = spec.variadic || dice.chance(10) ? dice.below(4) : said;
      for (std::int64_t k = 0; k < n; ++k) operands.push_back(dice.any(pool).value());
      const Expr e = g.add(OpBox(def.kind, std::shared_ptr<const void>(std::move(op))), std::move(operands));
      for (std::uint32_t r = 0; r < g.node(e.value().node).num_results(); ++r) pool.push_back(e.result(r));
    });
    only_errors([&] {  // the calls that users write, on whatever there is
      const Expr a = dice.any(pool), b = dice.any(pool);
      const std::int64_t axis = integer(dice);
      switch (dice.below(12)) {
        case 0: pool.push_back(a + b); break;
        case 1: pool.push_back(g.matmul(a, b)); break;
        case 2: pool.push_back(g.reshape(a, dims(dice))); break;
        case 3: pool.push_back(g.narrow(a, axis, dim(dice, false), dim(dice, false))); break;
        case 4: pool.push_back(g.softmax(a, axis)); break;
        case 5: pool.push_back(g.gather(a, b, axis)); break;
        case 6: pool.push_back(g.unsqueeze(a, axis)); break;
        case 7: pool.push_back(g.squeeze(a, axis)); break;
        case 8: pool.push_back(g.top_k(a, integer(dice)).values); break;
        case 9: pool.push_back(g.sum(a, {integer(dice), integer(dice)}, dice.chance(50))); break;
        case 10: pool.push_back(g.concat({a, b, a}, axis)); break;
        default: pool.push_back(g.where(a, b, integer(dice) > 0 ? Operand(1) : Operand(0.5)));
      }
    });
  }
  only_errors([&] { g.set_state("x0", dice.any(pool)); });
  g.set_outputs({pool.back(), dice.any(pool)});
  fuzz::expect_sound(g);
  check(same_graph(parse_text(print_text(g), "again"), g),
        concat_text("a built graph survives its text\n", print_text(g)));
  check(same_graph(from_bytes(to_bytes(g)), g), "a built graph survives its binary form");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::roll(data, size, run);
}
