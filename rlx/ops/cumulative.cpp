// Cumulative: running sum, product, maximum or minimum along an axis.
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

struct CumulativeRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& x = c.input(0);
    const auto& op = c.op<ops::Cumulative>();
    if (auto error = c.check_axis(op.axis, x)) return *error;
    const bool ordered = op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min;
    if (is_storage_only(x.dtype())) return c.dtype_error("cannot compute with ", x, "; cast it first");
    if (ordered && is_complex(x.dtype())) return c.dtype_error("complex values have no order: ", x);
    if (!ordered && x.dtype() == DType::Bool) return c.dtype_error("x is Bool ", x, "; cast it to an integer or float dtype first");
    return Shapes{x};
  }
  static void reference(const RefArgs& a) {
    const auto& op = a.op<ops::Cumulative>();
    const AxisSplit s = split_at(a.in(0).dims(), op.axis);
    visit_accumulator(a.in(0).dtype(), [&]<class A>(A) {
      std::vector<A> v = load_all<A>(a.in(0));
      A identity{};
      if (op.fn == CumulativeKind::Prod) identity = A(1);
      if (op.fn == CumulativeKind::Max || op.fn == CumulativeKind::Min)
        identity = extreme_identity<A>(a.in(0).dtype(), op.fn == CumulativeKind::Max);
      for (std::int64_t o = 0; o < s.outer; ++o)
        for (std::int64_t k = 0; k < s.inner; ++k) {
          A running = identity;
          for (std::int64_t step = 0; step < s.extent; ++step) {
            const std::int64_t i = op.reverse ? s.extent - 1 - step : step;
            A& at = v[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)];
            const A before = running;
            running = combine(op.fn, running, at);
            at = op.exclusive ? before : running;
          }
        }
      store_all(a.out(), v);
    });
  }
  static void samples(SampleSet& s) {
    for (int i = 0; i < static_cast<int>(std::size(EnumNames<CumulativeKind>::values)); ++i) {
      const auto fn = static_cast<CumulativeKind>(i);
      const std::string name(enum_name(fn));
      // The exclusive maximum starts at -inf, which finite differences cannot digest.
      const bool ordered = fn == CumulativeKind::Max || fn == CumulativeKind::Min;
      s.add(name + " last", {Shape({2, 4}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
      s.add(name + " reverse", {Shape({3, 2}, DType::F64)}, ops::Cumulative{fn, 0, false, true});
      s.add(name + " middle", {Shape({2, 3, 2}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
      s.add(name + " one", {Shape({1}, DType::F32)}, ops::Cumulative{fn, 0, false, false});
      s.add(name + " half", {Shape({4}, DType::BF16)}, ops::Cumulative{fn, 0, false, false});
      if (ordered) {
        s.add_discrete(name + " exclusive", {Shape({4}, DType::F32)}, ops::Cumulative{fn, 0, true, false});
        s.add_discrete(name + " exclusive reverse", {Shape({2, 3}, DType::F32)}, ops::Cumulative{fn, 1, true, true});
        s.add_discrete(name + " bool", {SampleInput(Shape({5}, DType::Bool), Fill::Boolean)}, ops::Cumulative{fn, 0, true, false});
      } else {
        s.add(name + " exclusive", {Shape({4}, DType::F32)}, ops::Cumulative{fn, 0, true, false});
        s.add(name + " exclusive reverse", {Shape({2, 3}, DType::F32)}, ops::Cumulative{fn, 1, true, true});
        s.add(name + " complex", {Shape({3}, DType::C128)}, ops::Cumulative{fn, 0, false, false});
      }
      s.add_discrete(name + " empty", {Shape({2, 0}, DType::F32)}, ops::Cumulative{fn, 1, false, false});
      s.add_discrete(name + " i32", {SampleInput(Shape({5}, DType::I32), Fill::Small)}, ops::Cumulative{fn, 0, true, false});
    }
  }
  static constexpr AttrField attrs[] = {field<&ops::Cumulative::fn>("fn", AttrPlace::Mnemonic), field<&ops::Cumulative::axis>("axis"),
                                        field<&ops::Cumulative::exclusive>("exclusive"), field<&ops::Cumulative::reverse>("reverse")};

 private:
  template <class A>
  static A combine(CumulativeKind fn, A running, A v) {
    switch (fn) {
      case CumulativeKind::Sum: return wrapping_add(running, v);
      case CumulativeKind::Prod: return wrapping_mul(running, v);
      case CumulativeKind::Max:
      case CumulativeKind::Min:
        if constexpr (std::is_arithmetic_v<A>) return beats(v, running, fn == CumulativeKind::Max) ? v : running;
        break;
    }
    return running;
  }
};

}  // namespace

constinit const OpDef ops::Cumulative::def{
    .kind = kind, .name = "cumulative", .inputs = inputs("x"), .attrs = CumulativeRules::attrs, .level = Level::Mir,
    .traits = OpTrait::Reduction, .infer = CumulativeRules::infer, .decompose = none("a primitive"), .reference = CumulativeRules::reference,
    .cost = flops_per_element<1>, .samples = CumulativeRules::samples};

}  // namespace rlx
