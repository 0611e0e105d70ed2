// Uniform numbers and binding ranges of a bound program.
#include "rlx/codegen/kernel.h"

#include <algorithm>

namespace rlx::codegen {

std::uint32_t evaluate(const Number& n, const LirModule& program, std::size_t start) {
  std::int64_t v = 0;
  switch (n.kind) {
    case Number::Kind::Extent: v = n.dim.evaluate(program.symbols); break;
    case Number::Kind::Stride: {
      const LirValue& where = program.plan.at(n.value);
      const Shape& s = program.graph.shape(n.value);
      v = 1;
      if (!where.strides.empty())
        v = where.strides[static_cast<std::size_t>(n.axis)];
      else
        for (int a = n.axis + 1; a < s.rank(); ++a) v *= s.dim(a).value();
      break;
    }
    case Number::Kind::Offset:
      check(program.plan.at(n.value).offset >= start, "a value begins before its binding");
      v = static_cast<std::int64_t>(program.plan.at(n.value).offset - start);
      break;
  }
  check(v >= 0 && v <= 0xffffffffll, "a number of a kernel does not fit u32");
  return static_cast<std::uint32_t>(v);
}

ByteRange range_of(const Binding& b, const LirBufferPlan& plan) {
  ByteRange r{~std::size_t{0}, 0};
  for (Value v : b.values) {
    const LirValue& where = plan.at(v);
    r.begin = std::min(r.begin, where.offset);
    r.end = std::max(r.end, where.offset + where.bytes);
  }
  r.begin = r.begin / kBindingAlignment * kBindingAlignment;
  return r;
}

}  // namespace rlx::codegen
