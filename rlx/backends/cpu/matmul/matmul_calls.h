// Products whose operands lie where another row says: in the program's values, or in its own memory.
#pragma once

#include "rlx/backends/cpu/entries.h"
#include "rlx/backends/cpu/matmul/matmul_kernels.h"
#include "rlx/backends/cpu/quant/int8_kernels.h"

namespace rlx::cpu {

/// Where an operand lies: a value of the node, or bytes of its workspace.
struct ProductSource {
  const View* view = nullptr;
  const void* bytes = nullptr;
};

/// Adds the steps of a product whose result is the node's from element `at` on; of complex numbers in units of them.
/// The dtypes say which product it is; sums are as wide as the result.
void add_number_product(LowerContext& c, const MatmulOperands& product, const ProductSource& a, const ProductSource& b,
                        std::int64_t at);
/// The same of bytes with sums in I32; k and the number of products follow from the axes.
void add_byte_product(LowerContext& c, const ByteGemm& product, const ProductSource& a, const ProductSource& b,
                      std::int64_t at);

/// `field` is where the operand lies.
template <class T>
void point_source(LowerContext& c, T*& field, const ProductSource& from) {
  if (from.view != nullptr)
    c.point(field, *from.view);
  else
    field = static_cast<T*>(from.bytes);
}

}  // namespace rlx::cpu
