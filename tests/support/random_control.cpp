// Random branches and loops.
#include "tests/support/random_generator.h"

namespace rlx::test {

Expr Generator::body_value(Graph& b, Expr x, int depth) {
  for (std::int64_t i = 1 + dice_.below(3); i-- > 0;) {
    const DType t = x.dtype();
    switch (dice_.below(8)) {
      case 0: x = b.tanh(x); break;
      case 1: x = x * 0.5 + 0.25; break;
      case 2: x = b.cast(x + partner(x), t); break;
      case 3:
        if (x.rank() > 0) x = b.softmax(x, -1);
        break;
      case 4:
        if (x.rank() > 0) x = b.cast(b.matmul(b.tanh(x), leaf(Shape({x.dim(-1), x.dim(-1)}, t))), t);
        break;
      case 5:
        if (x.rank() > 0) x = x - b.mean(x, {x.rank() - 1}, true);
        break;
      case 6:  // loop-invariant, of any value of the enclosing graph
        x = b.cast(x + b.cast(b.mean(b.tanh(pick_float()), {}, false), t), t);
        break;
      default:
        if (depth == 0)
          x = b.cond(
              leaf(Shape({}, DType::Bool)), {x},
              [&](Graph& then, const ExprList& in) { return ExprList{body_value(then, in[0], 1)}; },
              [&](Graph& otherwise, const ExprList& in) { return ExprList{otherwise.neg(in[0])}; })[0];
    }
  }
  return x;
}
void Generator::control() {
  const Expr x = pick_float();
  const auto rows = [&](std::int64_t n) { return leaf(Shape(Dims{Dim(n)}, x.dtype())); };
  switch (dice_.below(5)) {
    case 0:
      keep(g_.cond(
          leaf(Shape({}, DType::Bool)), {x},
          [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; },
          [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; })[0]);
      return;
    case 1:
      keep(g_.checkpoint({x}, [&](Graph& b, const ExprList& in) { return ExprList{body_value(b, in[0])}; })[0]);
      return;
    case 2: {  // the iteration count is a value
      const Expr limit = whole_leaf(Shape({}, DType::I64), 0, 5);
      WhileOptions options;
      if (dice_.chance(60)) options.max_iterations = dice_.below(5);
      const LoopResult r = g_.while_loop(
          {x, g_.constant(Tensor::scalar_i64(DType::I64, 0))},
          [&](Graph& b, const ExprList& carries) { return b.lt(carries[1], limit); },
          [&](Graph& b, const ExprList& carries) {
            const ExprList ys = options.max_iterations ? ExprList{b.tanh(carries[0])} : ExprList();
            return LoopStep({body_value(b, carries[0]), carries[1] + 1}, ys);
          },
          options);
      keep(r.carries[0]);
      keep(r.carries[1]);
      if (!r.ys.empty()) keep(r.ys[0]);
      return;
    }
    default: {  // over rows, which are combined with the carry
      const std::int64_t length = dice_.below(5);
      ScanOptions options;
      options.reverse = dice_.chance(30), options.checkpoint = dice_.chance(30);
      const LoopResult r = g_.scan(
          {x}, {rows(length)},
          [&](Graph& b, const ExprList& carries, const ExprList& row) {
            return LoopStep(ExprList{body_value(b, carries[0] * 0.5 + row[0])}, ExprList{carries[0] * row[0]});
          },
          options);
      keep(r.carries[0]);
      keep(r.ys[0]);
    }
  }
}

}  // namespace rlx::test
