// Checks of numeric attributes: the dtype of the computation must represent them.
#pragma once

#include <cmath>
#include <optional>

#include "rlx/ir/op_def.h"

namespace rlx {

/// Whether `v` is finite and becomes neither infinite nor 0 in the dtype that computes values of dtype `t`: F64 for
/// F64, else F32.
inline bool is_representable_for(DType t, double v) {
  if (t == DType::F64) return std::isfinite(v);
  const auto rounded = static_cast<float>(v);
  return std::isfinite(rounded) && (rounded != 0 || v == 0);
}

/// Error unless `eps` is finite, not negative, and representable for values of dtype `t`.
inline std::optional<Diagnostic> check_representable_eps(const InferContext& c, double eps, DType t) {
  if (!(eps >= 0) || !std::isfinite(eps)) return c.attr_error("eps must be a finite number >= 0, got ", eps);
  if (!is_representable_for(t, eps))
    return c.attr_error("eps ", eps, " becomes infinite or 0 in f32, in which x is computed");
  return std::nullopt;
}

}  // namespace rlx
