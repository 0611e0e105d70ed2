// Op structs of random numbers: bits from a key and a counter, and token sampling.
#pragma once

#include <cstdint>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"
#include "rlx/tensor/dtype.h"
#include "rlx/tensor/shape.h"

// clang-format off
namespace rlx {

namespace ops {

/// Uniform random bits: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011) of the key and a 64-bit counter. The counter of an element is its row-major position in `dims`, plus `first`.
/// The two words of a counter, high word first, give the 64 bits of U64; U32 is the xor of both words, U16 and U8 are
/// its low bits. So an element depends on the key and its position alone, and equals jax.random.bits
/// (jax_threefry_partitionable, the default since 0.5.0). Inputs: key U32 [.., 2], [first U64, [] or [..]]. Result:
/// [.., dims].
struct RngBits { RLX_OP(RngBits); Dims dims{}; DType dtype = DType::U32; };
/// A token drawn from each row of logits [B, V] (float), and its log-probability. The filters apply in this order.
/// mask_bits: token v is removed if bit v % 32 of word v / 32 is 0. The logits are divided by `temperature`. top_k
/// keeps the k largest, the first of equals (k <= 0: all). top_p keeps the fewest of the most probable tokens whose
/// probabilities sum to at least top_p (top_p >= 1: all). min_p keeps tokens of at least min_p times the largest
/// probability, and always the most probable token. The token drawn is the argmax of logit / temperature + Gumbel noise
/// over what is left (the Gumbel-max method); the noise of token v comes from element v of RngBits{[V]} with the key of
/// the row. Temperature 0 gives the argmax, the first of equals. logprob is the log-softmax of the masked logits,
/// before temperature and the other filters. A row without a logit above -infinity gives -1 and -infinity; NaN counts
/// as the largest. temperature, top_p and min_p are floats, top_k is I32, each [] or [B]. Inputs: logits, temperature,
/// top_k, top_p, key U32 [B, 2], [min_p], [mask_bits U32 [B, ceil(V / 32)]]. Results: token I32 [B], logprob F32 [B]
/// (F64 for F64 logits). Composite.
struct Sample { RLX_OP(Sample); OperandMask present{}; };

}  // namespace ops
}  // namespace rlx
// clang-format on
