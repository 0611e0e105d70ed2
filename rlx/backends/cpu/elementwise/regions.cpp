// Elementwise ops and regions through the tape: F32, I32, Bool, and F16 and BF16, where each op of a region rounds its
// result.
#include <algorithm>
#include <array>
#include <numbers>

#include "rlx/backends/cpu/elementwise/tape_few.h"
#include "rlx/backends/cpu/elementwise/typed.h"
#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/functions.h"
#include "rlx/ir/ops/elementwise.h"
#include "rlx/ir/ops/fused.h"
#include "rlx/ir/ops/leaves.h"

namespace rlx::cpu {
namespace {

/// Register type of a dtype; Bool is F32 0 or 1.
enum class Register : std::uint8_t { F, I, B, None };
Register register_of(DType t) {
  switch (t) {
    case DType::F32:
    case DType::BF16:
    case DType::F16: return Register::F;
    case DType::I32: return Register::I;
    case DType::Bool: return Register::B;
    default: return Register::None;
  }
}
bool has_half_bits(DType t) { return t == DType::BF16 || t == DType::F16; }

std::optional<TapeType> tape_type(DType t) {
  switch (t) {
    case DType::F32: return TapeType::F32;
    case DType::I32: return TapeType::I32;
    case DType::Bool: return TapeType::Bool;
    case DType::BF16: return TapeType::BF16;
    case DType::F16: return TapeType::F16;
    case DType::U8: return TapeType::U8;
    case DType::I8: return TapeType::I8;
    default: return std::nullopt;
  }
}

/// The tape function of an activation, if it has one. Others, and parameters other than the defaults, use the generic
/// loops.
std::optional<TapeOp> float_op(const ops::Activation& op) {
  using A = ActivationKind;
  if (!has_own_params(op)) return std::nullopt;
  switch (op.fn) {
#define RLX_CASE(Kind, ...) \
  case A::Kind: return TapeOp::Kind;
    RLX_FOR_EACH_FORMULA(RLX_CASE)
#undef RLX_CASE
    case A::Relu: return TapeOp::Relu;
    case A::Sqrt: return TapeOp::Sqrt;
    case A::Rsqrt: return TapeOp::Rsqrt;
    case A::Neg: return TapeOp::Neg;
    case A::Abs: return TapeOp::Abs;
    case A::Sin: return TapeOp::Sin;
    case A::Cos: return TapeOp::Cos;
    case A::Tan: return TapeOp::Tan;
    case A::Atan: return TapeOp::Atan;
    case A::Round: return TapeOp::Round;
    case A::Recip: return TapeOp::Recip;
    case A::Floor: return TapeOp::Floor;
    case A::Ceil: return TapeOp::Ceil;
    case A::Sign: return TapeOp::Sign;
    case A::Elu: return TapeOp::Elu;
    case A::HardSwish: return TapeOp::HardSwish;
    case A::HardSigmoid: return TapeOp::HardSigmoid;
    case A::Softsign: return TapeOp::Softsign;
    case A::Square: return TapeOp::Square;
    case A::Lgamma: return TapeOp::Lgamma;
    case A::Asin: return TapeOp::Asin;
    case A::Acos: return TapeOp::Acos;
    case A::Cbrt: return TapeOp::Cbrt;
    case A::Trunc: return TapeOp::Trunc;
    default: return std::nullopt;
  }
}

/// The same for I32.
std::optional<TapeOp> integer_op(ActivationKind fn) {
  switch (fn) {
    case ActivationKind::Neg: return TapeOp::NegI;
    case ActivationKind::Abs: return TapeOp::AbsI;
    case ActivationKind::Sign: return TapeOp::SignI;
    case ActivationKind::Not: return TapeOp::NotI;
    case ActivationKind::Popcount: return TapeOp::PopcountI;
    case ActivationKind::Clz: return TapeOp::ClzI;
    default: return std::nullopt;
  }
}

std::optional<TapeOp> binary_op(BinaryKind fn, Register r) {
  using B = BinaryKind;
  if (r == Register::F) {
    switch (fn) {
      case B::Add: return TapeOp::Add;
      case B::Sub: return TapeOp::Sub;
      case B::Mul: return TapeOp::Mul;
      case B::Div: return TapeOp::Div;
      case B::Max: return TapeOp::Max;
      case B::Min: return TapeOp::Min;
      case B::Pow: return TapeOp::Pow;
      case B::Mod: return TapeOp::Mod;
      case B::Atan2: return TapeOp::Atan2;
      case B::Rem: return TapeOp::Rem;
      case B::Hypot: return TapeOp::Hypot;
      case B::LogAddExp: return TapeOp::LogAddExp;
      default: return std::nullopt;
    }
  }
  if (r == Register::B) {
    switch (fn) {
      case B::BitAnd: return TapeOp::And;
      case B::BitOr: return TapeOp::Or;
      case B::BitXor: return TapeOp::Xor;
      default: return std::nullopt;
    }
  }
  switch (fn) {
    case B::Add: return TapeOp::AddI;
    case B::Sub: return TapeOp::SubI;
    case B::Mul: return TapeOp::MulI;
    case B::Div: return TapeOp::DivI;
    case B::Max: return TapeOp::MaxI;
    case B::Min: return TapeOp::MinI;
    case B::Mod: return TapeOp::ModI;
    case B::BitAnd: return TapeOp::AndI;
    case B::BitOr: return TapeOp::OrI;
    case B::BitXor: return TapeOp::XorI;
    case B::Shl: return TapeOp::ShlI;
    case B::Shr: return TapeOp::ShrI;
    case B::Rem: return TapeOp::RemI;
    default: return std::nullopt;
  }
}

TapeOp compare_op(CompareKind fn, bool integer) {
  switch (fn) {
    case CompareKind::Eq: return integer ? TapeOp::EqI : TapeOp::Eq;
    case CompareKind::Ne: return integer ? TapeOp::NeI : TapeOp::Ne;
    case CompareKind::Lt: return integer ? TapeOp::LtI : TapeOp::Lt;
    case CompareKind::Le: return integer ? TapeOp::LeI : TapeOp::Le;
    case CompareKind::Gt: return integer ? TapeOp::GtI : TapeOp::Gt;
    case CompareKind::Ge: break;
  }
  return integer ? TapeOp::GeI : TapeOp::Ge;
}

/// Estimated ns per element.
double op_cost(TapeOp op) {
  switch (op) {
#define RLX_CASE(Kind, name, ulp_f32, ulp_f64, ulp_portable, cost_f32, cost_f64) \
  case TapeOp::Kind: return cost_f32;
    RLX_FOR_EACH_FORMULA(RLX_CASE)
#undef RLX_CASE
    case TapeOp::Elu:
    case TapeOp::Sin:
    case TapeOp::Asin:
    case TapeOp::Acos:
    case TapeOp::Cos: return 0.25;
    case TapeOp::Cbrt:
    case TapeOp::LogAddExp:
    case TapeOp::Tan:
    case TapeOp::Atan:
    case TapeOp::Atan2:
    case TapeOp::Pow:
    case TapeOp::Mod:
    case TapeOp::Rem: return 0.6;
    case TapeOp::DivI:
    case TapeOp::ModI:
    case TapeOp::RemI: return 1.5;
    case TapeOp::Lgamma: return 3;
    default: return 0.04;
  }
}

/// Writes a tape for a list of elementwise nodes. `ok()` is false when a node has no tape instruction.
class TapeWriter {
 public:
  /// An operand: a tape value, or a constant.
  struct Operand {
    int value = -1;
    bool is_constant = false;
    double number = 0;
    DType dtype = DType::F32;
    bool only_stored = false;  // an 8-bit integer that only a store converts from float; nothing else may read it
  };

  /// The operands of one op, at most three.
  struct Operands {
    Operand at[3];
    std::size_t count = 0;
    Operands() = default;
    Operands(std::initializer_list<Operand> list) {
      for (const Operand& o : list) add(o);
    }
    void add(const Operand& o) {
      check(count < std::size(at), "an op of a tape has more than three operands");
      at[count++] = o;
    }
    std::size_t size() const { return count; }
    Operand& operator[](std::size_t i) { return at[i]; }
    const Operand& operator[](std::size_t i) const { return at[i]; }
    Operand* begin() { return at; }
    Operand* end() { return at + count; }
    const Operand* begin() const { return at; }
    const Operand* end() const { return at + count; }
  };

  bool ok() const { return ok_; }
  double cost() const { return cost_; }
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  const std::vector<TapeInstr>& instrs() const { return instrs_; }
  const std::vector<TapeType>& input_types() const { return input_types_; }
  const std::vector<TapeOutput>& outputs() const { return outputs_; }

  Operand input(DType t) {
    const auto type = tape_type(t);
    if (!type || num_inputs() == kTapeMaxInputs || !ssa_.empty()) {
      ok_ = false;
      return {};
    }
    input_types_.push_back(*type);
    return {num_inputs() - 1, false, 0, t};
  }
  /// A constant of one element, if registers can hold it.
  std::optional<Operand> constant(const Graph& g, Value v) {
    const auto* c = g.node(v.node).op.get_if<ops::Constant>();
    if (!c || c->value.num_elements() != 1 || register_of(c->value.dtype()) == Register::None) return std::nullopt;
    return Operand{-1, true, c->value.dtype() == DType::I32 ? static_cast<double>(c->value.at_i64(0)) : c->value.at(0),
                   c->value.dtype()};
  }

  /// Adds an elementwise node over `in`. F16 and BF16 results are left unrounded, because a store rounds them.
  Operand node(const Node& n, const Operands& in) {
    const DType out = n.shape().dtype();
    for (const Operand& o : in)
      if (o.only_stored) return fail();
    if (const auto* cast = n.op.get_if<ops::Cast>()) return convert(in[0], cast->to);
    for (const Operand& o : in)
      if (register_of(o.dtype) == Register::None) return fail();
    const Register r = register_of(in[0].dtype);
    if (n.kind() == OpKind::Bitcast) {  // registers hold bits
      const bool words = dtype_bits(in[0].dtype) == 32 && dtype_bits(out) == 32 && register_of(out) != Register::None;
      if (!words) return fail();
      Operand bits = in[0].is_constant ? emit(TapeOp::Copy, in[0].dtype, {in[0]}) : in[0];
      bits.dtype = out;
      return bits;
    }
    if (const auto* op = n.op.get_if<ops::Activation>()) {
      if (r == Register::F) {
        if (op->fn == ActivationKind::LeakyRelu) return leaky_relu(in[0], function_params(*op).alpha, out);
        if (op->fn == ActivationKind::Sinc) return sinc(in[0], out);
        const auto fn = float_op(*op);
        return fn ? emit(*fn, out, {in[0]}) : fail();
      }
      if (r == Register::B) return op->fn == ActivationKind::Not ? emit(TapeOp::Not, out, {in[0]}) : fail();
      if (const auto fn = integer_op(op->fn)) return emit(*fn, out, {in[0]});
      switch (op->fn) {
        case ActivationKind::Square: return emit(TapeOp::MulI, out, {in[0], in[0]});
        case ActivationKind::Relu: return emit(TapeOp::MaxI, out, {in[0], {-1, true, 0, DType::I32}});
        default: return fail();
      }
    }
    if (const auto* op = n.op.get_if<ops::Binary>()) {
      const auto fn = binary_op(op->fn, r);
      return fn ? emit(*fn, out, in) : fail();
    }
    if (const auto* op = n.op.get_if<ops::Compare>()) return emit(compare_op(op->fn, r == Register::I), out, in);
    if (n.kind() == OpKind::Where) return emit(TapeOp::Where, out, in);
    if (n.kind() == OpKind::Clamp) {
      if (r == Register::B) return fail();
      const bool integer = r == Register::I;
      Operand low = emit(integer ? TapeOp::MaxI : TapeOp::Max, out, {in[0], in[1]});
      return ok_ ? emit(integer ? TapeOp::MinI : TapeOp::Min, out, {low, in[2]}) : fail();
    }
    return fail();
  }

  /// The value of `v` after a store to F16 or BF16 and a load.
  Operand rounded(const Operand& v) {
    return emit(v.dtype == DType::BF16 ? TapeOp::RoundBF16 : TapeOp::RoundF16, v.dtype, {v});
  }

  // For slopes up to 1 it is max(x, slope x); other slopes use the generic loop.
  Operand leaky_relu(const Operand& x, double slope, DType out) {
    if (!(slope >= 1e-30 && slope <= 1)) return fail();  // a slope that F32 rounds to 0 gives NaN for -inf
    const Operand scaled = emit(TapeOp::Mul, out, {x, {-1, true, slope, DType::F32}});
    return emit(TapeOp::Max, out, {x, scaled});
  }

  // sin(pi x) / (pi x) by the distance to the next integer; the sign is flipped for odd integers.
  Operand sinc(const Operand& x, DType out) {
    const auto number = [](double v) { return Operand{-1, true, v, DType::F32}; };
    const Operand n = emit(TapeOp::Round, out, {x});
    const Operand turn = emit(TapeOp::Mul, out, {emit(TapeOp::Sub, out, {x, n}), number(std::numbers::pi)});
    const Operand half = emit(TapeOp::Mul, out, {n, number(0.5)});
    const Operand odd = emit(TapeOp::Sub, out, {half, emit(TapeOp::Floor, out, {half})});
    const Operand sign = emit(TapeOp::Add, out, {emit(TapeOp::Mul, out, {odd, number(-4)}), number(1)});
    const Operand wave = emit(TapeOp::Mul, out, {emit(TapeOp::Sin, out, {turn}), sign});
    const Operand y = emit(TapeOp::Div, out, {wave, emit(TapeOp::Mul, out, {x, number(std::numbers::pi)})});
    return emit(TapeOp::Where, out, {emit(TapeOp::Eq, DType::Bool, {x, number(0)}), number(1), y});
  }

  Operand emit(TapeOp op, DType out, Operands in) {
    if (!ok_) return {};
    // One operand may be immediate; the others are loaded into registers.
    bool immediate = false;
    for (Operand& o : in) {
      if (!o.is_constant) continue;
      if (!immediate && in.size() > 1) {
        immediate = true;
        continue;
      }
      o = append(TapeOp::Copy, o.dtype, {o});
    }
    return append(op, out, in);
  }

  /// Stores `v` as `t`. Call it after the last instruction.
  void output(Operand v, DType t) {
    const auto type = tape_type(t);
    if (!type || num_outputs_ == kTapeMaxOutputs) {
      ok_ = false;
      return;
    }
    if (v.only_stored) v = unbounded(v, t == DType::I8 ? -128 : 0, t == DType::I8 ? 127 : 255);
    if (v.is_constant || v.value < num_inputs()) v = append(TapeOp::Copy, t, {v});
    outputs_.push_back({*type, 0});
    output_values_.push_back(v.value);
    ++num_outputs_;
  }

  /// Assigns registers. A register is free again after the last use of its value.
  void finish() {
    if (!ok_ || ssa_.empty()) {
      ok_ = false;
      return;
    }
    join();
    const int values = num_inputs() + static_cast<int>(ssa_.size());
    std::vector<int> last(static_cast<std::size_t>(values), -1), assigned(static_cast<std::size_t>(values), -1);
    for (std::size_t k = 0; k < ssa_.size(); ++k)
      for (int v : ssa_[k].operands())
        if (v >= 0) last[static_cast<std::size_t>(v)] = static_cast<int>(k);
    for (int v : output_values_) last[static_cast<std::size_t>(v)] = values;
    std::array<bool, kTapeMaxRegisters> taken{};
    for (int i = 0; i < num_inputs(); ++i) {
      assigned[static_cast<std::size_t>(i)] = i;
      taken[static_cast<std::size_t>(i)] = true;
    }
    for (std::size_t k = 0; k < ssa_.size(); ++k) {
      const auto value = static_cast<std::size_t>(num_inputs()) + k;
      const auto free = static_cast<std::size_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
      if (free == taken.size()) {
        ok_ = false;
        return;
      }
      taken[free] = true;
      assigned[value] = static_cast<int>(free);
      TapeInstr instr = ssa_[k].instr;
      instr.dst = static_cast<std::uint8_t>(free);
      std::uint8_t* fields[] = {&instr.a, &instr.b, &instr.c};
      for (std::size_t i = 0; i < ssa_[k].operands().size(); ++i) {
        const int v = ssa_[k].values[i];
        *fields[i] = v < 0 ? kTapeImm : static_cast<std::uint8_t>(assigned[static_cast<std::size_t>(v)]);
      }
      for (int v : ssa_[k].operands())
        if (v >= num_inputs() && last[static_cast<std::size_t>(v)] == static_cast<int>(k))
          taken[static_cast<std::size_t>(assigned[static_cast<std::size_t>(v)])] = false;
      if (last[value] < 0) taken[free] = false;
      instrs_.push_back(instr);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i].reg = static_cast<std::uint8_t>(assigned[static_cast<std::size_t>(output_values_[i])]);
  }

 private:
  struct Ssa {
    TapeInstr instr;
    int values[3] = {};  // -1: the immediate
    int count = 0;
    std::span<const int> operands() const { return {values, static_cast<std::size_t>(count)}; }
  };

  Operand fail() {
    ok_ = false;
    return {};
  }

  /// `v` without clamps that a store to the range [low, high] does anyway.
  Operand unbounded(Operand v, float low, float high) const {
    while (v.value >= num_inputs()) {
      const Ssa& s = ssa_[static_cast<std::size_t>(v.value - num_inputs())];
      const bool number = s.count == 2 && s.values[0] >= 0 && s.values[1] < 0;
      const bool low_bound = s.instr.op == TapeOp::Max && s.instr.imm <= low;
      const bool high_bound = s.instr.op == TapeOp::Min && s.instr.imm >= high;
      if (!number || !(low_bound || high_bound)) return v;
      v.value = s.values[0];
    }
    return v;
  }

  /// The TapeThen that fuses `s` into the instruction that computes its operand `place`; None when there is none.
  TapeThen as_then(const Ssa& s, int place) const {
    switch (s.instr.op) {
      case TapeOp::Add: return TapeThen::Add;
      case TapeOp::Mul: return TapeThen::Mul;
      case TapeOp::Sub: return place == 0 ? TapeThen::Sub : TapeThen::SubFrom;
      // Division by one number, or by an input that may be one, is faster as its own instruction (divide_by).
      case TapeOp::Div:
        return place == 1 ? TapeThen::DivInto : s.values[1] < num_inputs() ? TapeThen::None : TapeThen::Div;
      case TapeOp::RoundBF16: return TapeThen::RoundBF16;
      case TapeOp::RoundF16: return TapeThen::RoundF16;
      default: return TapeThen::None;
    }
  }
  bool may_go_first(const Ssa& s) const {
    switch (s.instr.op) {
      case TapeOp::Add:
      case TapeOp::Sub:
      case TapeOp::Mul: return true;
      case TapeOp::Div: return s.values[1] >= num_inputs();
      default: return false;
    }
  }

  /// Joins an instruction with the only reader of its result. The intermediate value stays in a register; a pass
  /// through L1 costs as much as two or three such operations (an Adam step 1.07x on Zen 5).
  void join() {
    const std::size_t n = ssa_.size();
    const auto first = static_cast<std::size_t>(num_inputs());
    std::vector<int> uses(n, 0), now(n, -1);  // now: new index of a remaining instruction
    for (const Ssa& s : ssa_)
      for (const int v : s.operands())
        if (v >= num_inputs()) ++uses[static_cast<std::size_t>(v) - first];
    for (const int v : output_values_)
      if (v >= num_inputs()) uses[static_cast<std::size_t>(v) - first] = 2;
    std::vector<bool> gone(n, false);
    for (Ssa& s : ssa_) {
      for (int place = s.count; s.count <= 2 && place-- > 0;) {
        const int v = s.values[place];
        if (v < num_inputs()) continue;
        const std::size_t k = static_cast<std::size_t>(v) - first;
        const Ssa& before = ssa_[k];
        const TapeThen then = as_then(s, place);
        if (then == TapeThen::None || uses[k] != 1 || before.count != 2 || !may_go_first(before)) continue;
        Ssa both = before;
        both.instr.then = then;
        both.instr.imm_then = s.instr.imm;
        both.values[both.count++] = s.count == 1 ? -1 : s.values[1 - place];
        s = both;
        gone[k] = true;
      }
    }
    // Removes instructions that are no longer read, such as clamps that a store does.
    std::vector<bool> read(n, false);
    for (const int v : output_values_)
      if (v >= num_inputs()) read[static_cast<std::size_t>(v) - first] = true;
    for (std::size_t k = n; k-- > 0;) {
      gone[k] = gone[k] || !read[k];
      for (const int v : ssa_[k].operands())
        if (v >= num_inputs() && !gone[k]) read[static_cast<std::size_t>(v) - first] = true;
    }
    std::vector<Ssa> left;
    for (std::size_t k = 0; k < n; ++k) {
      if (gone[k]) continue;
      now[k] = static_cast<int>(left.size());
      left.push_back(ssa_[k]);
    }
    const auto renumber = [&](int& v) {
      if (v >= num_inputs()) v = num_inputs() + now[static_cast<std::size_t>(v) - first];
    };
    for (Ssa& s : left)
      for (int i = 0; i < s.count; ++i) renumber(s.values[i]);
    for (int& v : output_values_) renumber(v);
    ssa_ = std::move(left);
  }

  Operand append(TapeOp op, DType out, const Operands& in) {
    Ssa s;
    s.instr.op = op;
    for (const Operand& o : in) {
      s.values[s.count++] = o.is_constant ? -1 : o.value;
      if (o.is_constant) {
        s.instr.imm = static_cast<float>(o.number);
        s.instr.imm_i = o.dtype == DType::I32 ? static_cast<std::int32_t>(o.number) : 0;
        // Three-operand and copy instructions take the float field: an integer is passed as its bits.
        if (o.dtype == DType::I32 && (op == TapeOp::Where || op == TapeOp::Copy))
          s.instr.imm = std::bit_cast<float>(s.instr.imm_i);
      }
    }
    if (op == TapeOp::Elu) s.instr.imm = 1.0F;  // the alpha of Elu
    cost_ += op_cost(op);
    ssa_.push_back(std::move(s));
    return {num_inputs() + static_cast<int>(ssa_.size()) - 1, false, 0, out};
  }

  Operand convert(Operand x, DType to) {
    const Register target = register_of(to);
    Register from = register_of(x.dtype);
    if ((to == DType::I8 || to == DType::U8) && from == Register::F) {
      x.dtype = to;
      x.only_stored = true;
      return x;
    }
    if (target == Register::None) return fail();
    if (to == DType::BF16 && x.dtype == DType::I32) return fail();  // a conversion through f32 would round twice
    if (x.is_constant) x = emit(TapeOp::Copy, x.dtype, {x});
    if (from == Register::None) {  // 8-bit integers are loaded as floats and can only be converted
      if (x.dtype != DType::U8 && x.dtype != DType::I8) return fail();
      from = Register::F;
    }
    const DType t = to;
    if (from == target || (from == Register::B && target == Register::F)) {
      x.dtype = t;
      return x;
    }
    switch (target) {
      case Register::F: return emit(TapeOp::I32ToF32, t, {x});
      case Register::I: return emit(from == Register::B ? TapeOp::BoolToI32 : TapeOp::F32ToI32, t, {x});
      default: break;
    }
    if (from == Register::I) return emit(TapeOp::NeI, t, {x, {-1, true, 0, DType::I32}});
    return emit(TapeOp::Ne, t, {x, {-1, true, 0, DType::F32}});
  }

  bool ok_ = true;
  double cost_ = 0.1;
  std::vector<TapeType> input_types_;
  std::vector<Ssa> ssa_;
  std::vector<int> output_values_;
  int num_outputs_ = 0;
  std::vector<TapeInstr> instrs_;
  std::vector<TapeOutput> outputs_;
};

/// The tape of a node, and the operand that each tape input reads.
struct Written {
  TapeWriter tape;
  std::vector<int> operands;
};

Written write_single(const Graph& g, NodeId id) {
  Written w;
  const Node& n = g.node(id);
  TapeWriter::Operands in;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (auto c = w.tape.constant(g, n.inputs[i])) {
      in.add(*c);
      continue;
    }
    in.add(w.tape.input(g.shape(n.inputs[i]).dtype()));
    w.operands.push_back(static_cast<int>(i));
  }
  if (!w.tape.ok()) return w;
  auto result = w.tape.node(n, in);
  if (w.tape.ok()) w.tape.output(result, n.shape().dtype());
  w.tape.finish();
  return w;
}

/// True when the results of `n`, an F16 or BF16 node, are exactly representable before rounding.
bool keeps_16bit(const Graph& g, const Node& n) {
  if (const auto* op = n.op.get_if<ops::Activation>()) {
    using A = ActivationKind;
    constexpr A kExact[] = {A::Neg, A::Abs, A::Relu, A::Sign, A::Floor, A::Ceil, A::Round, A::Trunc};
    return std::find(std::begin(kExact), std::end(kExact), op->fn) != std::end(kExact);
  }
  if (const auto* op = n.op.get_if<ops::Binary>()) return op->fn == BinaryKind::Max || op->fn == BinaryKind::Min;
  if (n.kind() == OpKind::Cast) {
    const DType from = g.shape(n.inputs[0]).dtype();
    return from == n.shape().dtype() || dtype_bits(from) <= 8;
  }
  return n.kind() == OpKind::Where || n.kind() == OpKind::Clamp;
}

Written write_region(const Graph& g, NodeId id) {
  Written w;
  const Graph& body = *g.node(id).op.as<ops::ElementwiseRegion>().body;
  std::vector<TapeWriter::Operand> values(body.num_nodes());
  std::vector<bool> read(body.num_nodes(), false);
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i)
    for (Value v : body.node(NodeId{i}).inputs) read[v.node.index] = true;
  for (std::uint32_t i = 0; i < body.num_nodes(); ++i) {
    const Node& n = body.node(NodeId{i});
    if (n.kind() == OpKind::Input) {
      w.operands.push_back(static_cast<int>(w.operands.size()));
      values[i] = w.tape.input(n.shape().dtype());
    } else if (n.kind() == OpKind::Constant) {
      auto c = w.tape.constant(body, Value(NodeId{i}));
      if (!c) return w.tape.output({}, DType::C128), w;
      values[i] = *c;
    } else {
      if (n.inputs.size() > 3) return w.tape.output({}, DType::C128), w;
      TapeWriter::Operands in;
      for (Value v : n.inputs) in.add(values[v.node.index]);
      values[i] = w.tape.node(n, in);
      // A store does the rounding.
      if (w.tape.ok() && read[i] && has_half_bits(n.shape().dtype()) && !keeps_16bit(body, n))
        values[i] = w.tape.rounded(values[i]);
    }
    if (!w.tape.ok()) return w;
  }
  for (Value v : body.outputs()) w.tape.output(values[v.node.index], body.shape(v).dtype());
  w.tape.finish();
  return w;
}

const char* tape_refuses(const Graph& g, NodeId id) {
  return refuse_unless(g.shape(id).rank() <= kTapeMaxRank, "it has more axes than the kernel supports");
}
const char* single_refuses(const Graph& g, NodeId id) {
  if (const char* why = tape_refuses(g, id)) return why;
  // A single Bool op runs byte by byte, with four times as many elements per vector as tape registers have.
  if (g.node(id).kind() == OpKind::Binary && g.shape(id).dtype() == DType::Bool)
    return "binary ops of bools have their own kernel";
  return refuse_unless(write_single(g, id).tape.ok(),
                       "the elementwise kernel has no instruction for this function and dtype");
}
const char* region_refuses(const Graph& g, NodeId id) {
  if (const char* why = tape_refuses(g, id)) return why;
  return refuse_unless(
      write_region(g, id).tape.ok(),
      "one of its ops has no instruction for its dtype, or it has too many operands, results or values");
}

struct TapeStep {
  Tape tape;
  std::vector<TapeInstr> instrs;
  const void* inputs[kTapeMaxInputs] = {};
  void* outputs[kTapeMaxOutputs] = {};
  std::int64_t per_chunk = 256;
  void (*run)(const Tape&, const void* const*, void* const*, std::int64_t, std::int64_t) = nullptr;
};
void run_tape(const TapeStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.per_chunk;
  s.run(s.tape, s.inputs, s.outputs, begin, std::min(s.tape.num_elements, begin + s.per_chunk));
}

/// Adds the task of a written tape. Tape input i reads `views[i]` from element `element[i]` on.
void add_tape(LowerContext& c, const TapeWriter& w, const std::vector<View>& views,
              const std::vector<std::int64_t>& element) {
  const View y = c.out();
  if (y.elements() == 0) return;
  check(w.ok(), "an accepted op cannot be written as a tape");
  auto& s = c.keep<TapeStep>();
  s.instrs = w.instrs();
  Tape& t = s.tape;
  t.rank = y.rank();
  std::copy(y.dims.begin(), y.dims.end(), t.dims);
  t.num_inputs = w.num_inputs();
  for (std::size_t i = 0; i < views.size(); ++i) {
    t.inputs[i].type = w.input_types()[i];
    const auto strides = broadcast_strides(views[i], y.dims);
    std::copy(strides.begin(), strides.end(), t.inputs[i].strides);
    c.point(s.inputs[i], views[i], element[i]);
  }
  t.num_outputs = static_cast<int>(w.outputs().size());
  for (std::size_t i = 0; i < w.outputs().size(); ++i) {
    t.outputs[i] = w.outputs()[i];
    const View out = c.out(static_cast<int>(i));
    check(out.dense(), "the result of an elementwise kernel is not row-major");
    c.point(s.outputs[i], out);
  }
  t.instrs = s.instrs.data();
  t.num_instrs = static_cast<int>(s.instrs.size());
  tape_prepare(t);
  s.run = c.kernels().tape_run;
  constexpr double kChunkNs = 8000;
  constexpr std::int64_t kBlock = 1024;  // the kernel's largest block
  const auto blocks = static_cast<std::int64_t>(kChunkNs / (w.cost() * kBlock));
  s.per_chunk = c.grain(kBlock * std::max<std::int64_t>(1, blocks));
  c.step<run_tape>(s, (t.num_elements + s.per_chunk - 1) / s.per_chunk, w.cost() * static_cast<double>(t.num_elements));
}

void lower_written(LowerContext& c, const Written& w) {
  std::vector<View> views;
  for (int i : w.operands) views.push_back(c.in(i));
  add_tape(c, w.tape, views, std::vector<std::int64_t>(views.size(), 0));
}
void lower_single(LowerContext& c) {
  // Single F16 and BF16 ops that run in one pass without tape registers: sign ops on bits, arithmetic, comparisons,
  // casts.
  const OpKind kind = c.node().kind();
  const bool half = dtype_bits(c.in(0).dtype) == 16 || dtype_bits(c.out().dtype) == 16;
  if ((kind == OpKind::Compare || kind == OpKind::Cast ||
       (half && (kind == OpKind::Activation || kind == OpKind::Binary))) &&
      lower_typed(c))
    return;
  lower_written(c, write_single(c.graph(), c.id()));
}
void lower_region(LowerContext& c) {
  if (!lower_typed(c)) lower_written(c, write_region(c.graph(), c.id()));
}

// up * silu(gate) on the two halves of the last axis, as two input views of one operand.
const char* swiglu_refuses(const Graph& g, NodeId id) {
  if (const char* why = tape_refuses(g, id)) return why;
  return refuse_unless_f32(g, id);
}
void lower_swiglu(LowerContext& c) {
  View half = c.in(0);
  half.dims.back() /= 2;
  const std::int64_t n = half.dims.back() * half.strides.back();
  TapeWriter w;
  const auto up = w.input(DType::F32), gate = w.input(DType::F32);
  w.output(w.emit(TapeOp::Mul, DType::F32, {up, w.emit(TapeOp::Silu, DType::F32, {gate})}), DType::F32);
  w.finish();
  const bool gate_first = c.op<ops::FusedSwiGLU>().gate_first;
  add_tape(c, w, {half, half}, {gate_first ? n : 0, gate_first ? 0 : n});
}

bool any_strides(const Graph&, NodeId, int) { return true; }
// Element i of the result depends only on element i of an operand of the same shape.
bool same_elements(const Graph& g, NodeId id, int operand, int result) {
  const Shape &x = in_shape(g, id, operand), &y = g.shape(Value(id, static_cast<std::uint32_t>(result)));
  return x.dims() == y.dims() && dtype_bits(x.dtype()) == dtype_bits(y.dtype());
}

constexpr KernelEntry kRegionsEntries[] = {
    {OpKind::Activation, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::Binary, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::Compare, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::Where, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::Cast, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::Clamp, "tape", single_refuses, lower_single, any_strides, same_elements},
    {OpKind::ElementwiseRegion, "tape_region", region_refuses, lower_region, any_strides, same_elements},
    {OpKind::FusedSwiGLU, "tape_swiglu", swiglu_refuses, lower_swiglu, any_strides},
};

}  // namespace

std::span<const KernelEntry> tape_entries() { return kRegionsEntries; }

std::optional<TapeOp> tape_op_of(const Node& n, DType t) {
  const Register r = register_of(t);
  if (const auto* op = n.op.get_if<ops::Binary>()) return binary_op(op->fn, r);
  const auto* op = n.op.get_if<ops::Activation>();
  if (!op) return std::nullopt;
  return r == Register::F ? float_op(*op) : r == Register::I ? integer_op(op->fn) : std::nullopt;
}

}  // namespace rlx::cpu
