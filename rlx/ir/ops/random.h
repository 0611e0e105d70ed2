// Op structs of random numbers: bits from a key and a counter, and tokens drawn by them.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/dtype.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// Uniform random bits: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011) of the key and a 64-bit counter, which is the element's row-major position in `dims`, plus `first`. The two
/// words of a counter, high one first, make 64 bits; U32 is the one xor the other, U16 and U8 its low bits. So every
/// element depends on key and place alone, and equals jax.random.bits (jax_threefry_partitionable, the default since
/// 0.5.0). Inputs: key U32 [.., 2], [first U64, [] or [..]]. Result: [.., dims].
struct RngBits { RLX_OP(RngBits); Dims dims{}; DType dtype = DType::U32; };
/// A token for each row of logits [B, V] (float), and the logarithm of its probability. In this order: tokens whose bit
/// in mask_bits (bit v % 32 of word v / 32) is 0 go; logits are divided by `temperature`; top_k (unless <= 0) keeps as
/// many of the largest, the first of equals; top_p (unless >= 1) keeps the fewest of the likeliest whose probabilities
/// add up to it; min_p keeps what is at least min_p times as likely as the likeliest, which always stays. Of what is
/// left the largest of logit / temperature + Gumbel noise is drawn, the noise of token v being that of element v of
/// RngBits{[V]}(key of the row). Temperature 0: the first of the largest logits. logprob is that of the softmax of the
/// masked logits, before temperature and cuts. A row without a token whose logit is above -infinity gives -1 and
/// -infinity; NaN counts as the largest. Settings are [] or [B]: temperature, top_p, min_p float, top_k I32.
/// Inputs: logits, temperature, top_k, top_p, key U32 [B, 2], [min_p], [mask_bits U32 [B, ceil(V / 32)]]. Results:
/// token I32 [B], logprob F32 [B] (F64 of F64). Composite.
struct Sample { RLX_OP(Sample); OperandMask present{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
