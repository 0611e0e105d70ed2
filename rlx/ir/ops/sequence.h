// Op structs of recurrent layers and state-space scans.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rlx/ir/op_kind.h"
#include "rlx/ir/operands.h"

// clang-format off
namespace rlx {

/// The order in which a recurrence takes its steps. Bidirectional runs both orders and concatenates their results.
enum class RecurrentDirection : std::uint8_t { Forward, Reverse, Bidirectional };
template <> struct EnumNames<RecurrentDirection> {
  static constexpr std::string_view values[] = {"forward", "reverse", "bidirectional"};
};

namespace ops {

/// A plain recurrent layer, ONNX RNN, torch.nn.RNN: h = f(x w^T + h r^T + b_w + b_r) at each step. Inputs: x [S, B, I]
/// (batch_first: [B, S, I]), [w [D, G H, I]], r [D, G H, H], [bias [D, 2 G H]: b_w, then b_r], [lengths I32 or I64
/// [B]], [h0 [D, B, H]]. G = 1 is the number of gates; D is 2 for both directions, else 1. Results: y [S, D, B, H]
/// (batch_first: [B, S, D, H]), and h [D, B, H] after the last step. Without w, x is already projected: x w^T plus the
/// biases, [S, B, D G H]. Sequence b has lengths[b] steps, clamped to [0, S]. Later steps keep h and give zero rows,
/// and the reverse direction begins at the last step of the sequence. `activations` are f per direction, or one for
/// both; the default is tanh. `alpha` and `beta` are their parameters, one per activation or none. `clip` clamps the
/// inputs of the activations to [-clip, clip]. F16 and BF16 are computed in F32.
struct Rnn {
  RLX_OP(Rnn);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// A gated recurrent unit, ONNX GRU, torch.nn.GRU: as Rnn with G = 3 gates in the order z, r, n (PyTorch's order is r,
/// z, n: see rlx/functions/sequence.h). z = f(x w_z + h r_z + b), r = f(x w_r + h r_r + b), n = g(x w_n + (r h) r_n +
/// b), h' = z h + (1 - z) n. With `linear_before_reset` (PyTorch) n = g(x w_n + b_wn + r (h r_n + b_rn)). `activations`
/// are f, g; the default is sigmoid, tanh. Without w, bias is b_rn [D, H] with linear_before_reset, and absent
/// otherwise.
struct Gru {
  RLX_OP(Gru);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false, linear_before_reset = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// A long short-term memory layer, ONNX LSTM, torch.nn.LSTM: as Rnn with G = 4 gates in the order i, o, f, c (PyTorch's
/// order is i, f, c, o). After h0 there are the inputs [c0 [D, B, H]] and [peepholes p [D, 3 H] of i, o, f]. i = f(x
/// w_i + h r_i + p_i c + b), and the forget gate f likewise, or 1 - i with `input_forget`; c' = f c + i g(x w_c + h r_c
/// + b); o = f(x w_o + h r_o + p_o c' + b); h' = o h(c'). `activations` are the functions f, g, h; the default is
/// sigmoid, tanh, tanh. Results: y, h, c. Without w there is no bias.
struct Lstm {
  RLX_OP(Lstm);
  RecurrentDirection direction = RecurrentDirection::Forward;
  bool batch_first = false, input_forget = false;
  std::vector<ActivationKind> activations{};
  std::vector<double> alpha{}, beta{};
  std::optional<double> clip{};
  OperandMask present{};
};
/// The selective scan of Mamba: per channel h_t = exp(delta_t a) h_{t-1} + delta_t b_t x_t, y_t = sum over n of c_t h_t
/// (+ d x_t). Inputs: x, delta [B, S, H], a [H, N], b, c [B, S, N], [d [H]], [z [B, S, H]], [delta_bias [H]], [state
/// [B, H, N]]. delta_bias is added to delta, then `delta_softplus` applies softplus. With z, y is multiplied by
/// silu(z). Without a state the initial state is zeros. Results: y [B, S, H] and the last state [B, H, N]. The state
/// has the accumulator dtype of x, F32 for F16 and BF16. a, d and delta_bias have that dtype or x's.
struct SelectiveScan { RLX_OP(SelectiveScan); bool delta_softplus = false; OperandMask present{}; };
/// The scan of Mamba-2 (SSD), with a state matrix h [P, N] per head: h_t = exp(dt_t a) h_{t-1} + dt_t x_t b_t^T, y_t =
/// h_t c_t (+ d x_t). Inputs: x [B, S, H, P], dt [B, S, H], a [H], b, c [B, S, G, N] with H a multiple of G, [d [H] or
/// [H, P]], [z [B, S, H, P]], [dt_bias [H]], [state [B, H, P, N]]. dt_bias is added to dt, then `dt_softplus` applies
/// softplus. With z, y is multiplied by silu(z). Results: y [B, S, H, P], the last state. The decomposition takes
/// `chunk` steps at a time, as matmuls; chunk 1 takes single steps. Dtypes are those of SelectiveScan.
struct Mamba2 {
  RLX_OP(Mamba2);
  bool dt_softplus = false;
  std::int64_t chunk = 64;
  OperandMask present{};
};
/// The gated delta rule, with a state matrix S [K, V] per head. Each step is S = exp(g) S, u = (v - k^T S) beta, S = S
/// + k u^T, y = scale q^T S; scale defaults to K^-1/2. Inputs: q, k [B, S, G, K], v [B, S, H, V] with H a multiple of
/// G, g, beta [B, S, H], [state [B, H, K, V]]. The caller normalizes q and k. Results: y [B, S, H, V], the last state.
/// The decomposition takes `chunk` steps at a time (a power of two), as matmuls; chunk 1 takes single steps. Dtypes are
/// those of SelectiveScan; g and beta have x's dtype or the state's.
struct GatedDeltaNet {
  RLX_OP(GatedDeltaNet);
  std::optional<double> scale{};
  std::int64_t chunk = 32;
  OperandMask present{};
};

}  // namespace ops
}  // namespace rlx
// clang-format on
