// Samples of TriangularSolve.
#include "rlx/ir/ops/linalg.h"
#include "rlx/ops/factor_samples.h"
#include "rlx/testing/op_samples.h"

namespace rlx::testing {

template <>
void samples<ops::TriangularSolve>(SampleSet& s) {
  const auto add = [&](const char* name, Dims a, Dims b, DType t, ops::TriangularSolve op) {
    s.add(name, {dominant(Shape(std::move(a), t)), Shape(std::move(b), t)}, op);
  };
  add("lower", {4, 4}, {4, 3}, DType::F32, {});
  add("upper", {3, 3}, {3, 2}, DType::F64, {true, false});
  add("transposed", {2, 3, 3}, {2, 3, 1}, DType::F64, {true, true, true});
  add("upper transposed", {3, 3}, {3, 2}, DType::F32, {true, false, true});
  add("unit diagonal", {3, 3}, {3, 2}, DType::F64, {true, true, false, false, true});
  add("right", {3, 3}, {2, 3}, DType::F64, {false, true});
  add("right upper", {2, 4, 4}, {2, 5, 4}, DType::F32, {false, false});
  add("right transposed", {3, 3}, {2, 3}, DType::F64, {false, true, true});
  add("right upper transposed", {3, 3}, {2, 3}, DType::F64, {false, false, true, false, true});
  add("complex", {3, 3}, {3, 2}, DType::C64, {});
  add("complex adjoint", {3, 3}, {3, 2}, DType::C128, {true, true, true, true});
  add("complex conjugate", {3, 3}, {3, 2}, DType::C128, {true, false, false, true});
  add("complex right adjoint", {2, 3, 3}, {2, 2, 3}, DType::C64, {false, true, true, true});
  add("one", {1, 1}, {1, 1}, DType::F32, {});
  s.add_discrete("no columns", {dominant(Shape({3, 3}, DType::F32)), Shape({3, 0}, DType::F32)},
                 ops::TriangularSolve{});
  s.add_discrete("nothing", {Shape({0, 0}, DType::F32), Shape({0, 2}, DType::F32)}, ops::TriangularSolve{});
}

}  // namespace rlx::testing
