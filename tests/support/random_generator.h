// The generator of random programs: a pool of values to which random ops are applied. Each family of ops is in its own
// file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/random_program.h"

namespace rlx::test {

/// Generates one program.
class Generator {
 public:
  Generator(std::uint64_t seed, const ProgramOptions& options) : options_(options), dice_(seed) {
    out_.seed = seed;
    out_.specials = options.specials;
  }
  RandomProgram make();

 private:
  static constexpr DType kFloats[] = {DType::F32, DType::F32, DType::F32, DType::F32,
                                      DType::F64, DType::F16, DType::BF16};
  static constexpr DType kWhole[] = {DType::I32, DType::I64, DType::I32, DType::I8, DType::U8,
                                     DType::I16, DType::U16, DType::U32, DType::U64};

  std::string next(const char* kind);
  Dim random_dim();
  Dims random_dims();
  std::int64_t elements(const Dims& dims) const;
  Expr keep(Expr e);
  /// A leaf of a shape: input, frozen or mutable param, constant or state.
  Expr leaf(const Shape& shape);
  Tensor constant(const Shape& shape);
  Expr whole_leaf(const Shape& shape, std::int64_t low, std::int64_t high);

  // -- choosing operands --
  using Wanted = std::function<bool(const Expr&)>;
  Expr pick(const Wanted& wanted);
  Expr pick_float(int min_rank = 0);
  Expr pick_any(int min_rank = 0);
  /// An operand that broadcasts with x: a value of the pool, a leaf with a part of its shape, or a number.
  Operand partner(const Expr& x, bool same_dtype = true);
  std::int64_t axis_of(const Expr& x);
  std::vector<std::int64_t> axes_of(const Expr& x);
  ActivationKind function(std::int64_t first);

  void step();  // one of the functions below
  void state();
  void choose_outputs();

  // -- random_elementwise.cpp --
  void activation();
  void binary();
  void compare();
  void convert();

  // -- random_shapes.cpp --
  void reshape();
  void move();
  void join();

  // -- random_indexing.cpp --
  Expr indices(const Dims& dims, const Dim& extent);
  void index();
  void window();

  // -- random_products.cpp --
  void reduce();
  void scan();
  void product();
  /// Matmuls with quantized weights.
  void quantised();

  // -- random_layers.cpp --
  void norm();
  void attention();
  void positions();
  void block();
  void layer();

  // -- random_calls.cpp --
  /// A new leaf whose values are drawn like an operand of a sample.
  Expr drawn_leaf(const SampleInput& in);
  /// The elements of `x`, which is not empty, as a value of `shape`: truncated or repeated.
  Expr fitted(const Expr& x, const Shape& shape);
  Expr operand(const SampleInput& in);
  void call();

  // -- random_functions.cpp --
  Expr float_of(const Dims& dims, DType t, Fill fill = Fill::Normal, std::int64_t bound = 1);
  void function_call();  // one of the functions below
  void convolution();
  void pool_call();
  void matrices();
  void transforms();
  void draws();
  void losses();
  void small_functions();

  // -- random_control.cpp --
  /// A few ops on `x`, a value of the body `b`, and on values of the enclosing graph. The result has the shape and
  /// dtype of x.
  Expr body_value(Graph& b, Expr x, int depth = 0);
  void control();

  const ProgramOptions options_;
  Dice dice_;
  Graph g_;
  RandomProgram out_;
  std::vector<Dim> symbols_;
  std::vector<Expr> pool_, states_;
  int names_ = 0;
};

}  // namespace rlx::test
