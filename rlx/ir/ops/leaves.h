// Op structs of leaves: the values a program starts from.
#pragma once

#include <string>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/packed_layout.h"
#include "rlx/tensor/tensor.h"

// clang-format off
namespace rlx {

namespace ops {

/// A run-time tensor, bound by name at each run.
struct Input {
  RLX_OP(Input);
  std::string name{};
  Dims dims{};
  DType dtype = DType::F32;
  LazyField<PackedLayout> form{};  // LIR bodies only: the packed layout of the weight operand
};
/// A weight, bound by name after compiling.
struct Param {
  RLX_OP(Param);
  std::string name{};
  Dims dims{};
  DType dtype = DType::F32;
  ParamMode mode = ParamMode::Frozen;
  LazyField<PackedLayout> form{};  // LIR only: the packed layout of the prepared bytes
};
/// An embedded tensor.
struct Constant { RLX_OP(Constant); Tensor value{}; };
/// A persistent value: reads what the last run (or `init`) left; `graph.set_state` declares the value after the run.
struct State { RLX_OP(State); std::string name{}; Dims dims{}; DType dtype = DType::F32; Tensor init{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
